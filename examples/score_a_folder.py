"""Scores a folder of maps against a folder of masks: `python examples/score_a_folder.py PRED GT`.

Without arguments it scores two simulated methods on synthetic scenes: plain MAE and F prefer A, which
finds large objects only; the size-invariant forms prefer B, which finds all objects.
"""

import sys
import tempfile
from pathlib import Path

import sisod
from sisod.analysis import bootstrap_intervals
from sisod.reproduction.demo import run_demo

KEYS = ("mae", "si_mae", "f_mean", "si_f_mean", "found")


def score(pred_dir: Path, gt_dir: Path) -> dict[str, tuple[float, float, float]]:
    """Return for each metric its value and the ends of its 95 % bootstrap interval over images."""
    result = sisod.evaluate(pred_dir, gt_dir, metrics="paper")
    rows = bootstrap_intervals(result, KEYS, resamples=2000).iter_rows(named=True)
    return {row["metric"]: (row["value"], row["low"], row["high"]) for row in rows}


def show(title: str, scores: dict[str, tuple[float, float, float]]) -> None:
    """Print one line per metric."""
    print(title)
    for key, (value, low, high) in scores.items():
        print(f"  {key:10} {value:.4f}  (95 % interval {low:.4f} to {high:.4f})")


def main(arguments: list[str]) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Score the given folders, or synthetic scenes."""
    if len(arguments) == 2:
        results = {arguments[0]: score(Path(arguments[0]), Path(arguments[1]))}
    else:
        with tempfile.TemporaryDirectory() as name:
            run_demo(Path(name), count=12)
            results = {method: score(Path(name, method), Path(name, "mask")) for method in ("A", "B")}
    for title, scores in results.items():
        show(title, scores)
    return results


if __name__ == "__main__":
    main(sys.argv[1:])
