"""Scores a folder of maps against a folder of masks: `python examples/score_a_folder.py PRED GT`.

Without arguments it makes scenes and the maps of two imagined methods, and scores those: plain MAE and
F prefer A, which sees large objects only; the size-invariant forms prefer B, which finds them all.
"""

import sys
import tempfile
from pathlib import Path

import sisod
from sisod.analysis import bootstrap_intervals
from sisod.reproduction.demo import run_demo

KEYS = ("mae", "si_mae", "f_mean", "si_f_mean", "found")


def score(pred_dir: Path, gt_dir: Path) -> dict[str, tuple[float, float, float]]:
    """Return metric -> value and the ends of its 95 % interval over images."""
    result = sisod.evaluate(pred_dir, gt_dir, metrics="paper")
    rows = bootstrap_intervals(result, KEYS, resamples=2000).iter_rows(named=True)
    return {row["metric"]: (row["value"], row["low"], row["high"]) for row in rows}


def show(title: str, found: dict[str, tuple[float, float, float]]) -> None:
    """Print one line per metric."""
    print(title)
    for key, (value, low, high) in found.items():
        print(f"  {key:10} {value:.4f}  (95 % interval {low:.4f} to {high:.4f})")


def main(arguments: list[str]) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Score what was named, or made scenes."""
    if len(arguments) == 2:
        found = {arguments[0]: score(Path(arguments[0]), Path(arguments[1]))}
    else:
        with tempfile.TemporaryDirectory() as name:
            run_demo(Path(name), count=12)
            found = {method: score(Path(name, method), Path(name, "mask")) for method in ("A", "B")}
    for title, values in found.items():
        show(title, values)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
