"""What calibration does to trained networks: fitted on left-out images of DUTS-TR, scored on MSOD.

    python -m benchmarks.real_data.calibration --data ROOT --out DIR

DIR/runs holds finished runs of `benchmarks.real_data.runs`, which are not changed. The calibrated
copies, maps and results go to DIR; finished ones are kept. The rows go to
`benchmarks/results/calibration.{json,md}`.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.calibrated import calibrate
from benchmarks.real_data.runs import make_experiment
from benchmarks.timing import RESULTS, machine, progress
from sisod.analysis.reliability import ReliabilityCurve
from sisod.common.grid import Grid
from sisod.training.calibration.fit import OBJECTIVES

if TYPE_CHECKING:
    from sisod.training.experiment import Experiment

RUNS = tuple(f"edn-{loss}-{seed}" for seed in range(3) for loss in ("plain", "si"))
DRAWN = "edn-si-0-bce"  # whose reliability is drawn
FIGURE = RESULTS.parents[1] / "docs" / "calibration.svg"
TEST = "MSOD"
KEYS = ("mae", "si_mae", "f_mean", "si_f_mean", "auc", "si_auc", "e_mean")
TITLES = ("MAE", "SI-MAE", "F", "SI-F", "AUC", "SI-AUC", "E")
ERRORS = ("mae", "bce", "ece", "si_ece")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, calibrate and score, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    rows = {name: measure(name, options.data, options.out) for name in RUNS}
    record = json.loads((options.out / "calibrated" / DRAWN / "calibration.json").read_text())
    versions = machine(("sisod", "torch", "numpy"))
    content = {"rows": rows, "reliability": record["reliability"], "machine": versions}
    (RESULTS / "calibration.json").write_text(json.dumps(content, indent=2) + "\n")
    (RESULTS / "calibration.md").write_text(page(content))
    draw(content)


def measure(name: str, data: Path, out: Path) -> dict[str, Any]:
    """Return the scores of a run as it is and calibrated to both objectives, and the two fits."""
    whole = make_experiment(name, data, out)
    tests = tuple(test for test in whole.tests if test.name == TEST)
    raw = replace(whole, name=f"{name}-raw", tests=tests, metrics={"default": KEYS})
    measured: dict[str, Any] = {"raw": {"scores": _scores(raw)}}
    for objective in OBJECTIVES:
        calibrated = calibrate(raw, f"{name}-{objective}", objective)
        scores = _scores(calibrated)
        record = json.loads((calibrated.training.out / "calibration.json").read_text())
        kept = ("temperature", "shift", "before", "after")
        fit = {key: record[key] for key in kept} | {"images": len(record["images"])}
        measured[objective] = {"scores": scores, "fit": fit}
    return measured


def _scores(experiment: "Experiment") -> dict[str, float]:
    from sisod.training.experiment import score_experiment

    progress(experiment.name)
    [evaluation] = score_experiment(experiment, jobs=1, warn=progress).values()
    return {key: round(evaluation.summary[key], 6) for key in KEYS}


def draw(content: dict[str, Any]) -> None:
    """Draw the reliability before and after."""
    from sisod.report.drawing.studies import reliability_figure
    from sisod.report.style import save_figure

    stored = content["reliability"]
    titles = {"pixels": "pixels, every image alike", "objects": "objects, every frame alike"}
    panels = {
        title: {when: ReliabilityCurve.from_json(stored[when][kind]) for when in ("before", "after")}
        for kind, title in titles.items()
    }
    save_figure(reliability_figure(panels), FIGURE)


def page(content: dict[str, Any]) -> str:
    """Return the tables: differences of the losses, scores on the test set, errors of the fits."""
    rows = content["rows"]
    scores, fits = [], []
    for name, measured in rows.items():
        for kind, row in measured.items():
            fit, numbers = row.get("fit"), ("-", "-")
            if fit is not None:
                numbers = f"{fit['temperature']:.2f}", f"{fit['shift']:+.2f}"
                pairs = (f"{fit['before'][key]:.4f} → {fit['after'][key]:.4f}" for key in ERRORS)
                fits.append((name, kind, *pairs))
            scores.append((name, kind, *numbers, *(f"{row['scores'][key]:.4f}" for key in KEYS)))
    differences = tuple((kind, *_differences(rows, kind)) for kind in ("raw", "bce", "mae"))
    tables = {
        f"Size-invariant less plain on {TEST}: mean of three seeds (lowest to highest).": Grid(
            ("calibrated to", *TITLES), differences, n_text=1
        ),
        f"Scores on {TEST}.": Grid(
            ("run", "calibrated to", "temperature", "shift", *TITLES), tuple(scores), n_text=2
        ),
        "Errors on the images of the fit, before and after.": Grid(
            ("run", "calibrated to", "MAE", "BCE", "ECE", "SI-ECE"), tuple(fits), n_text=2
        ),
    }
    return "\n".join(f"{title}\n\n{grid.markdown()}\n" for title, grid in tables.items())


def _differences(rows: dict[str, Any], kind: str) -> list[str]:
    """Return the difference of the two losses in each score, over the seeds."""
    cells = []
    for key in KEYS:
        values = [
            rows[name][kind]["scores"][key] - rows[name.replace("-si-", "-plain-")][kind]["scores"][key]
            for name in rows
            if "-si-" in name
        ]
        cells.append(f"{sum(values) / len(values):+.4f} ({min(values):+.4f} to {max(values):+.4f})")
    return cells


if __name__ == "__main__":
    main()
