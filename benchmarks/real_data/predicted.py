"""What the maps of the EDN runs find and invent, counted in objects of the prediction.

`python -m benchmarks.real_data.predicted` makes the tables from the rows that `object_rows.py` saved.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import sisod
from benchmarks.real_data.object_rows import SEEDS, SavedCounts
from benchmarks.real_data.runs import TABLES, TESTS
from benchmarks.timing import markdown
from sisod.analysis.comparison import compare
from sisod.scoring.metrics import METRICS, arrow
from sisod.scoring.objects import N_THRESHOLDS

LOSSES = {"plain": "plain", "si": "size-invariant"}
_COMPARED = (
    "object_recall",
    "false_objects",
    "object_f1",
    "pq",
    "bsi_f_binary",
    "object_f1_max",
    "object_ap",
)


def main() -> None:
    """Write the tables."""
    results = SavedCounts()
    for name, make in MAKERS.items():
        (TABLES / f"{name}.md").write_text(make(results) + "\n")


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
        f"The price is objects that it invents: with the plain and the size-invariant loss it finds "
        f"{100 * plain['object_recall']:.0f} and {100 * si['object_recall']:.0f} %\nof all objects of "
        f"MSOD and predicts {plain['false_objects']:.2f} and {si['false_objects']:.2f} objects an image "
        f"where there is nothing; the\nlargest object F1 over all thresholds is "
        f"{plain['object_f1_max']:.3f} and {si['object_f1_max']:.3f} (other runs of the same seeds)."
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
