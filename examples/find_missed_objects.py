"""Lists the objects a method missed, smallest first: `python examples/find_missed_objects.py RESULT`.

RESULT is a folder that `sisod evaluate` wrote; no image is read again. Without it, synthetic scenes are
scored first. An object is missed if less than half of the salient pixels in its frame are above 0.5.
"""

import sys
import tempfile
from pathlib import Path

import polars as pl

import sisod
from sisod.analysis.groups import FOUND, by_size, size_bias
from sisod.reproduction.demo import run_demo


def missed(result: sisod.Evaluation) -> pl.DataFrame:
    """Return the missed objects: image, box, share of the image, recall and IoU of each."""
    columns = ("image", "y0", "x0", "y1", "x1", "share", "recall_binary", "iou_binary")
    return result.objects.filter(pl.col("recall_binary") < FOUND).select(columns).sort("share")


def show(result: sisod.Evaluation) -> None:
    """Print the number of missed objects, the share found by size, and the ten smallest ones."""
    lost = missed(result)
    print(f"{lost.height} of {result.objects.height} objects missed; size bias {size_bias(result):+.2f}")
    for row in by_size(result, groups="log").filter(pl.col("objects") > 0).iter_rows(named=True):
        print(f"  {row['group']:>10} of the image: {row['objects']:4} objects, {row['found']:.0%} found")
    for row in lost.head(10).iter_rows(named=True):
        box = tuple(row[key] for key in ("y0", "x0", "y1", "x1"))
        print(f"  {row['image']}: {100 * row['share']:.2f} % of the image, box {box}")


def main(arguments: list[str]) -> sisod.Evaluation:
    """Show the given result, or one on synthetic scenes."""
    if arguments:
        result = sisod.Evaluation.load(arguments[0])
    else:
        with tempfile.TemporaryDirectory() as name:
            run_demo(Path(name), count=12)
            result = sisod.evaluate(Path(name, "A"), Path(name, "mask"))
    show(result)
    return result


if __name__ == "__main__":
    main(sys.argv[1:])
