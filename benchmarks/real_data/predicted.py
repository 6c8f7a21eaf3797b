"""What the maps of the EDN runs find and invent, counted in objects of the prediction.

    python -m benchmarks.real_data.predicted --data ROOT --out DIR   # scores the maps that `runs` left
    python -m benchmarks.real_data.predicted                         # the tables, from the saved rows

DIR is the folder of `python -m benchmarks.real_data.runs` for the runs `edn-plain-*` and `edn-si-*`. The
rows go to `benchmarks/results/real_data/predicted.parquet`, the tables beside it.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import sisod
from benchmarks.real_data.runs import TABLES, TESTS
from benchmarks.timing import markdown, progress
from sisod.analysis.comparison import compare
from sisod.analysis.groups import OBJECT_METRICS
from sisod.common.parquet import read_table, write_table
from sisod.data.datasets import open_dataset
from sisod.scoring.metrics import METRICS, arrow
from sisod.scoring.objects import N_THRESHOLDS

ROWS = TABLES / "predicted.parquet"
SEEDS = (0, 1, 2)
LOSSES = {"plain": "plain", "si": "size-invariant"}
IMAGE_KEYS = ("mae", "si_mae", "f_mean", "si_f_mean", "si_auc", "bsi_f_binary")
OBJECT_KEYS = (
    *("object_recall", "object_precision", "object_f1", "false_objects", "pq"),
    *("object_f1_max", "object_ap"),
    *("object_recall_small", "object_precision_small", "object_f1_max_small"),
)
_COMPARED = (
    "object_recall",
    "false_objects",
    "object_f1",
    "pq",
    "bsi_f_binary",
    "object_f1_max",
    "object_ap",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the maps if a folder of runs is given, then write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    if (options.data is None) != (options.out is None):
        parser.error("--data and --out are given together, or neither")
    if options.out is not None:
        gather(options.data, options.out)
    results = SavedCounts()
    for name, make in MAKERS.items():
        (TABLES / f"{name}.md").write_text(make(results) + "\n")


def gather(data: Path, out: Path) -> None:
    """Score the maps of every run on every test set and keep their rows."""
    parts = []
    for run in (f"edn-{loss}-{seed}" for seed in SEEDS for loss in LOSSES):
        for test in TESTS:
            progress(f"{run} on {test}")
            folder = out / "predicted" / test / run
            if not folder.exists():
                masks = open_dataset(data / test).mask_dir
                keys = (*IMAGE_KEYS, *OBJECT_KEYS)
                sisod.evaluate(out / "maps" / test / run, masks, metrics=keys, out=folder)
            parts.append(_compact(sisod.Evaluation.load(folder), run, test))
    write_table(pl.concat(parts), ROWS, compression_level=19)


def _compact(evaluation: sisod.Evaluation, run: str, test: str) -> pl.DataFrame:
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
    return values.join(counts, on="image").with_columns(
        pl.lit(run)
        .cast(pl.Enum([f"edn-{loss}-{seed}" for seed in SEEDS for loss in LOSSES]))
        .alias("run"),
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

    def by_seed(self, loss: str, test: str) -> list[sisod.Evaluation]:
        """Return the results of a loss on a test set, one for each seed."""
        return [self.result(f"edn-{loss}-{seed}", test) for seed in SEEDS]


def predicted(results: SavedCounts) -> str:
    """Return the means over seeds: what is found, what is invented, and both together."""
    keys = ("mae", "si_f_mean", "object_recall", "false_objects", "object_precision", "object_f1", "pq")
    return _means(results, (*keys, "bsi_f_binary", "object_f1_max", "object_ap"))


def predicted_small(results: SavedCounts) -> str:
    """Return the same for objects, and predicted objects, below 1 % of the image."""
    return _means(results, ("object_recall_small", "object_precision_small", "object_f1_max_small"))


def _means(results: SavedCounts, keys: Sequence[str]) -> str:
    rows = []
    for test in TESTS:
        means = {}
        for loss, title in LOSSES.items():
            summaries = [result.summary for result in results.by_seed(loss, test)]
            means[loss] = [float(np.mean([summary[key] for summary in summaries])) for key in keys]
            rows.append(
                [test if loss == "plain" else "", title, *(f"{mean:.3f}" for mean in means[loss])]
            )
        changes = np.subtract(means["si"], means["plain"])
        rows.append(["", "difference", *(f"{change:+.3f}" for change in changes)])
    return markdown(("data set", "loss", *(_title(key) for key in keys)), rows)


def predicted_paired(results: SavedCounts) -> str:
    """Return the differences of each seed with 95 % confidence intervals over images."""
    rows = []
    for test in TESTS[:2]:
        for seed in SEEDS:
            a, b = (results.result(f"edn-{loss}-{seed}", test) for loss in ("si", "plain"))
            table = compare(a, b, metrics=_COMPARED, resamples=2000).table
            by_key = {row["metric"]: row for row in table.iter_rows(named=True)}
            numbers = [
                [by_key[key][name] for name in ("difference", "low", "high")] for key in _COMPARED
            ]
            cells = [f"{change:+.3f} [{low:+.3f}, {high:+.3f}]" for change, low, high in numbers]
            rows.append([test, str(seed), *cells])
    return markdown(("data set", "seed", *(_title(key) for key in _COMPARED)), rows)


def predicted_best(results: SavedCounts) -> str:
    """Return the threshold of the largest object F1 of each seed, with recall and precision there."""
    rows = []
    for test in TESTS[:2]:
        for loss, title in LOSSES.items():
            for seed in SEEDS:
                recall, precision, f1 = curve(results.result(f"edn-{loss}-{seed}", test))
                best = int(np.nanargmax(f1))
                cells = [f"{value[best]:.3f}" for value in (f1, recall, precision)]
                rows.append([test, title, str(seed), f"{best / N_THRESHOLDS:.2f}", *cells])
    head = (
        "data set",
        "loss",
        "seed",
        "threshold",
        "largest object F1",
        "recall there",
        "precision there",
    )
    return markdown(head, rows)


def curve(result: sisod.Evaluation) -> tuple[NDArray[np.float64], ...]:
    """Return object recall, precision and F1 at every threshold."""
    from sisod.analysis import object_curve

    table = object_curve(result)
    return tuple(table[key].to_numpy() for key in ("recall", "precision", "f1"))


def _title(key: str) -> str:
    return f"{METRICS[key].title} {arrow(key)}"


def predicted_short(results: SavedCounts) -> str:
    """Return the main numbers in a sentence, for the README."""
    keys = ("object_recall", "false_objects", "object_f1_max")
    plain, si = (
        {
            key: float(np.mean([result.summary[key] for result in results.by_seed(loss, "MSOD")]))
            for key in keys
        }
        for loss in LOSSES
    )
    return (
        f"What it invents counts too: trained again, it finds {100 * plain['object_recall']:.0f} and "
        f"{100 * si['object_recall']:.0f} % of all objects of MSOD and\npredicts "
        f"{plain['false_objects']:.2f} and {si['false_objects']:.2f} objects per image where there is "
        f"nothing; the largest object F1 over all thresholds\nis {plain['object_f1_max']:.3f} and "
        f"{si['object_f1_max']:.3f}."
    )


MAKERS = {
    "predicted": predicted,
    "predicted_small": predicted_small,
    "predicted_paired": predicted_paired,
    "predicted_best": predicted_best,
    "predicted_short": predicted_short,
}


if __name__ == "__main__":
    main()
