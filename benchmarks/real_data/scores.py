"""Scores the maps of the runs, as trained and calibrated, and keeps the means over each test set.

    python -m benchmarks.real_data.scores --data ROOT --out DIR [NAME...]

DIR is the folder of `python -m benchmarks.real_data.runs`. Every finished run, or every named one, is
scored twice: as trained, and calibrated to the lowest cross-entropy on images of DUTS-TR that no run was
trained on (the name of such a row ends in `-bce`). What is scored already is skipped, and what was saved
of other runs is kept. The means go to `benchmarks/results/real_data/losses.json`, of which `losses.py`
makes the tables.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sisod
from benchmarks.real_data.runs import (
    COMPARED_RUNS,
    TABLES,
    TESTS,
    is_finished,
    make_experiment,
    record_of,
)
from benchmarks.timing import progress
from sisod.data.datasets import open_dataset

MEANS = TABLES / "losses.json"
CALIBRATED = "-bce"  # end of the name of a run that was calibrated
KEYS = (
    *("mae", "si_mae", "f_mean", "si_f_mean", "si_auc", "bsi_f_binary"),
    *("object_recall", "object_precision", "object_f1", "false_objects", "pq"),
    *("object_recall_small", "object_precision_small"),
    *("object_f1_max", "object_f1_max_small", "object_ap"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the maps of every finished run and keep the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(COMPARED_RUNS)}")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.runs if name not in COMPARED_RUNS]:
        parser.error(f"unknown runs {unknown}")
    saved = json.loads(MEANS.read_text()) if MEANS.exists() else {"means": {}, "fits": {}, "runs": {}}
    for name in options.runs or COMPARED_RUNS:
        if not is_finished(options.out, name):
            continue
        for row_name, test, result in score(name, options.data, options.out):
            scores = {key: round(result.summary[key], 6) for key in KEYS}
            saved["means"].setdefault(row_name, {})[test] = scores
        saved["fits"][name] = fit_of(options.out, name)
        saved["runs"][name] = record_of(name, options.out)
    row_names = [name + end for name in COMPARED_RUNS for end in ("", CALIBRATED)]
    order = {kind: row_names if kind == "means" else COMPARED_RUNS for kind in saved}
    content = {
        kind: {name: rows[name] for name in order[kind] if name in rows} for kind, rows in saved.items()
    }
    MEANS.write_text(json.dumps(content, indent=1) + "\n")


def score(name: str, data: Path, out: Path) -> Iterator[tuple[str, str, sisod.Evaluation]]:
    """Score a run as trained and calibrated; give name of the row, test set, result."""
    from benchmarks.calibrated import calibrate
    from sisod.training.experiment import score_experiment

    for test in TESTS:
        progress(f"{name} on {test}")
        folder = out / "predicted" / test / name
        if not folder.exists():
            masks = open_dataset(data / test).mask_dir
            sisod.evaluate(out / "maps" / test / name, masks, metrics=KEYS, out=folder, jobs=1)
        yield name, test, sisod.Evaluation.load(folder)
    experiment = make_experiment(name, data, out)
    calibrated = replace(
        calibrate(experiment, f"{name}{CALIBRATED}"),
        metrics={"default": KEYS},
        results="predicted/{dataset}/{name}",
    )
    progress(calibrated.name)
    results = score_experiment(calibrated, jobs=1, warn=progress)
    for (test, _), result in results.items():
        yield calibrated.name, test, result


def fit_of(out: Path, name: str) -> dict[str, Any]:
    """Return temperature, shift and number of images of a run's calibration."""
    record = json.loads((out / "calibrated" / f"{name}{CALIBRATED}" / "calibration.json").read_text())
    numbers = {key: round(record[key], 4) for key in ("temperature", "shift")}
    return numbers | {"images": len(record["images"])}


if __name__ == "__main__":
    main()
