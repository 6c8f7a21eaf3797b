"""The error breakdown of a result: the class of its objects and of its wrong pixels (docs/errors.md).

Every object and every wrong pixel is in exactly one class, so the classes add up to the whole.
"""

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from sisod.analysis.groups import SizeKind, group_edges, group_of, size_columns
from sisod.analysis.object_counts import predicted_tables
from sisod.common.arguments import check_choice
from sisod.evaluation.result import Evaluation
from sisod.scoring.counting.object_counts import OBJECT_CLASSES

if TYPE_CHECKING:
    import polars as pl

# class -> its name in tables and figures, from mild to severe
CLASS_TITLES = {
    "correct": "correct",
    "in_frame": "inside a frame",
    "partly_found": "partly found",
    "spilled": "spilled over",
    "merged": "merged",
    "split": "split",
    "missed": "missed",
    "false": "false object",
    "below_min_area": "below min. area",
}
ERROR_CLASSES = tuple(CLASS_TITLES)


def error_breakdown(
    evaluation: Evaluation,
    *,
    by: Literal["size"] | None = None,
    groups: SizeKind | ArrayLike = "log",
) -> "pl.DataFrame":
    """Return how many objects and how many wrong pixels are in each class, one row per class.

    Columns: `class`; `objects`, and `object_share`, their share of the objects of the ground truth and
    the false ones together; `false_negatives` and `false_positives` (pixels), their sum `pixels`,
    `pixel_share`, its share of all wrong pixels, and `image_share`, its share of all pixels. Null where
    a class has no objects or no pixels by definition; a share of nothing is NaN.

    With `by="size"` the columns `group`, `low` and `high` come first, there is one row per group and
    class, and shares of objects and of wrong pixels are those of the group. An object, and its missed
    pixels, belong to the group of its size, a predicted object and its false pixels to the group of its
    own. The class `below_min_area` has no objects and so no size: it is left out.

    Args:
        evaluation: the result.
        by: `"size"` for size groups.
        groups: a kind of `size_edges`, or a list of edges; only with `by`.
    """
    import polars as pl

    check_choice("by", by, (None, "size"))
    counts, predicted = predicted_tables(evaluation, "error breakdown")
    n_pixels = float(counts["pixels"].sum())
    if by is None:
        totals = _totals(evaluation.objects, predicted)
        totals["false_negatives"]["below_min_area"] = int(counts["fn_below_min_area"].sum())
        totals["false_positives"]["below_min_area"] = int(counts["fp_below_min_area"].sum())
        return _table(ERROR_CLASSES, totals, n_pixels)
    edges = group_edges(groups, evaluation.objects["share"].to_numpy())
    tables = [
        (table, group_of(table["share"].to_numpy(), edges)) for table in (evaluation.objects, predicted)
    ]
    labels, parts = size_columns(edges), []
    for group in range(len(edges) - 1):
        totals = _totals(*(table.filter(members == group) for table, members in tables))
        label = [pl.lit(values[group]).alias(name) for name, values in labels.items()]
        parts.append(_table(ERROR_CLASSES[:-1], totals, n_pixels).select(*label, "*"))
    return pl.concat(parts)


def _totals(objects: "pl.DataFrame", predicted: "pl.DataFrame") -> dict[str, dict[str, int]]:
    """Objects, false negatives and false positives of each class but `below_min_area`."""
    error = objects["error"].to_numpy().astype(str)
    missed_pixels = objects["missed_pixels"].to_numpy()
    numbers = {name: int((error == name).sum()) for name in OBJECT_CLASSES}
    misses = {name: int(missed_pixels[error == name].sum()) for name in ("missed", "split")}
    misses["partly_found"] = int(missed_pixels.sum()) - sum(misses.values())
    areas, spilled = predicted["area"].to_numpy(), predicted["spilled_pixels"].to_numpy()
    false_pixels = areas - np.rint(areas * predicted["precision"].to_numpy()).astype(np.int64)
    false, merges = predicted["false"].to_numpy(), predicted["holds"].to_numpy() >= 2
    others = ~false & ~merges
    return {
        "objects": numbers | {"false": int(false.sum())},
        "false_negatives": misses,
        "false_positives": {
            "false": int(areas[false].sum()),
            "merged": int(false_pixels[merges].sum()),
            "spilled": int(spilled[others].sum()),
            "in_frame": int((false_pixels - spilled)[others].sum()),
        },
    }


def _table(
    classes: tuple[str, ...], totals: dict[str, dict[str, int]], n_pixels: float
) -> "pl.DataFrame":
    import polars as pl

    columns = {name: [of_class.get(c) for c in classes] for name, of_class in totals.items()}
    table = pl.DataFrame(
        {"class": classes} | columns,
        schema={"class": pl.Enum(ERROR_CLASSES)} | dict.fromkeys(totals, pl.Int64),
    )
    wrong = pl.sum_horizontal("false_negatives", "false_positives")
    number, pixels = pl.col("objects"), pl.when(pl.col("class") != "correct").then(wrong)
    return table.select(
        *("class", "objects", (number / number.sum()).alias("object_share")),
        *("false_negatives", "false_positives", pixels.alias("pixels")),
        pixel_share=pixels / pixels.sum(),
        image_share=pixels / n_pixels,
    )
