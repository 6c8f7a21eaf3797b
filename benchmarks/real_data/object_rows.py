"""Scores what the maps of the runs find and invent, as trained and calibrated, and keeps the rows.

    python -m benchmarks.real_data.object_rows --data ROOT --out DIR [NAME...]

DIR is the folder of `python -m benchmarks.real_data.runs`. Every finished run, or every named one, is
scored twice: as trained, and calibrated to the lowest cross-entropy on images of DUTS-TR that no run was
trained on (the name of such a row ends in `-bce`). What is scored already is skipped, and what was saved
of other runs is kept. The rows of the runs with three seeds go to
`benchmarks/results/real_data/predicted.parquet`, the means of all to `parts.json`; `predicted.py` and
`parts.py` make the tables.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sisod
from benchmarks.real_data.runs import (
    PARTS_RUNS,
    TABLES,
    TESTS,
    is_finished,
    make_experiment,
    record_of,
    with_saved_rows,
)
from benchmarks.timing import progress
from sisod.analysis.groups import OBJECT_METRICS
from sisod.common.parquet import read_table, write_table
from sisod.data.datasets import open_dataset
from sisod.scoring.metrics import METRICS
from sisod.scoring.objects import N_THRESHOLDS

ROWS = TABLES / "predicted.parquet"
MEANS = TABLES / "parts.json"
SEEDS = (0, 1, 2)
SEEDED = (
    "plain",
    "si",
    "half",
    "shared",
    "cells",
    "tversky",
    "tversky-plain",
)  # losses whose rows of every image are kept
NETWORKS = ("ldf", "icon", "poolnet", "gatenet")
CALIBRATED = "-bce"  # end of the name of a run that was calibrated
IMAGE_KEYS = ("mae", "si_mae", "f_mean", "si_f_mean", "si_auc", "bsi_f_binary")
OBJECT_KEYS = (
    *("object_recall", "object_precision", "object_f1", "false_objects", "pq"),
    *("object_f1_max", "object_ap"),
    *("object_recall_small", "object_precision_small", "object_f1_max_small"),
)
KEYS = (*IMAGE_KEYS, *OBJECT_KEYS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the maps of every finished run and keep their rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(compared_runs())}")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.runs if name not in compared_runs()]:
        parser.error(f"unknown runs {unknown}")
    rows: list[pl.DataFrame] = []
    saved = json.loads(MEANS.read_text()) if MEANS.exists() else {"means": {}, "fits": {}, "runs": {}}
    for name in options.runs or compared_runs():
        if not is_finished(options.out, name):
            continue
        for row_name, test, result in score(name, options.data, options.out):
            scores = {key: round(result.summary[key], 6) for key in KEYS}
            saved["means"].setdefault(row_name, {})[test] = scores
            if name in seeded_runs():
                rows.append(compact(result, row_name, test))
        saved["fits"][name] = fit_of(options.out, name)
        saved["runs"][name] = record_of(name, options.out)
    if rows:
        write_table(with_saved_rows(pl.concat(rows), ROWS), ROWS, compression_level=19)
    order = {kind: _row_names() if kind == "means" else compared_runs() for kind in saved}
    content = {
        kind: {name: parts[name] for name in order[kind] if name in parts}
        for kind, parts in saved.items()
    }
    MEANS.write_text(json.dumps(content, indent=1) + "\n")


def _row_names() -> list[str]:
    return [name + end for name in compared_runs() for end in ("", CALIBRATED)]


def seeded_runs() -> tuple[str, ...]:
    """Return the runs whose rows of every image are kept."""
    return tuple(f"edn-{loss}-{seed}" for seed in SEEDS for loss in SEEDED)


def compared_runs() -> list[str]:
    """Return the runs that the comparison of losses shows."""
    plain = [f"{network}-plain-0" for network in NETWORKS]
    return list(dict.fromkeys([*seeded_runs(), *plain, *PARTS_RUNS]))


def score(name: str, data: Path, out: Path) -> Iterator[tuple[str, str, sisod.Evaluation]]:
    """Score a run as trained and calibrated; give name of the row, test set, result."""
    from sisod.training.experiment import score_experiment

    for test in TESTS:
        progress(f"{name} on {test}")
        folder = out / "predicted" / test / name
        if not folder.exists():
            masks = open_dataset(data / test).mask_dir
            sisod.evaluate(out / "maps" / test / name, masks, metrics=KEYS, out=folder, jobs=1)
        yield name, test, sisod.Evaluation.load(folder)
    calibrated = replace(
        make_experiment(name, data, out),
        name=f"{name}{CALIBRATED}",
        calibrate="bce",
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


def compact(evaluation: sisod.Evaluation, run: str, test: str) -> pl.DataFrame:
    """Return the counts as small integers, and the values of images to four digits."""
    assert evaluation.counts is not None
    values = evaluation.images.select(
        "image", *(pl.col(key).round(4).cast(pl.Float32) for key in IMAGE_KEYS)
    )
    shares = ("matched_iou", "iou")
    counts = evaluation.counts.with_columns(
        pl.col(pl.Float64).exclude(shares).cast(pl.Int32),
        pl.col(shares).cast(pl.Float32),
        pl.col(pl.Array(pl.Float64, N_THRESHOLDS)).cast(pl.Array(pl.UInt16, N_THRESHOLDS)),
    )
    names = [name + end for name in seeded_runs() for end in ("", CALIBRATED)]
    return values.join(counts, on="image").with_columns(
        pl.lit(run).cast(pl.Enum(names)).alias("run"),
        pl.lit(test).cast(pl.Enum(TESTS)).alias("dataset"),
    )


class SavedCounts:
    """The saved rows, as results for the analysis."""

    def __init__(self, path: Path = ROWS) -> None:
        self.rows = read_table(path)

    def result(self, run: str, test: str) -> sisod.Evaluation:
        """Return the result of a run on a test set."""
        rows = self.rows.filter((pl.col("run") == run) & (pl.col("dataset") == test)).drop(
            "run", "dataset"
        )
        names = [name for name in rows.columns if name not in ("image", *IMAGE_KEYS)]
        counts = {name: rows[name].to_numpy().astype(np.float64) for name in names}
        sums = {name: values.sum(axis=0) for name, values in counts.items()}
        images = rows.select("image", pl.col(IMAGE_KEYS).cast(pl.Float64)).with_columns(
            pl.lit(1).alias("height"), pl.lit(1).alias("width"),
            pl.Series("n_objects", counts["objects"].astype(np.int64)),
            *(pl.Series(key, METRICS[key].family.function(counts)) for key in OBJECT_KEYS),
        )  # fmt: skip
        summary = {key: float(images[key].drop_nans().mean()) for key in IMAGE_KEYS}  # type: ignore[arg-type]
        summary |= {key: float(METRICS[key].family.function(sums)) for key in OBJECT_KEYS}
        return sisod.Evaluation(
            summary=summary,
            defined={key: int(images[key].is_finite().sum()) for key in summary},
            images=images,
            objects=pl.DataFrame(
                schema={"image": pl.String} | dict.fromkeys(OBJECT_METRICS, pl.Float64)
            ),
            curves=pl.DataFrame(),
            image_curves=pl.DataFrame(),
            protocol=sisod.PROTOCOLS["default"],
            predicted=pl.DataFrame(),
            counts=pl.DataFrame({"image": rows["image"], **counts}),
        )

    def by_seed(self, loss: str, test: str, end: str = "") -> list[sisod.Evaluation]:
        """Return the results of a loss on a test set, one for each seed; `end` may be `CALIBRATED`."""
        return [self.result(f"edn-{loss}-{seed}{end}", test) for seed in SEEDS]


if __name__ == "__main__":
    main()
