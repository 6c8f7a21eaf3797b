"""Compare methods on the same images: paired bootstrap, sign test, Holm's correction."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.analysis.bootstrap import (
    Score,
    chosen_keys,
    direction,
    heading,
    interval,
    read_score,
    resample,
    title,
)
from sisod.common.arguments import check_whole, shown
from sisod.common.errors import InputError, UsageError, printable, shorten_list
from sisod.common.grid import Format, Grid, interval_text, json_rows, number, percent, render

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from sisod.evaluation.result import Evaluation

Values = NDArray[np.float64]
RESAMPLES = 10_000
_TOLERANCE = 1e-12  # smaller differences are the rounding of sums: a tie
_FEW_IMAGES = 20  # with fewer, an interval says little


@dataclass(frozen=True, eq=False)
class Comparison:
    """Pairwise comparison of methods on the same images.

    Attributes:
        methods: their names, in the given order.
        table: one row per metric and pair of methods: `metric`, `a`, `b` (names), `value_a`, `value_b`,
            `difference` (a minus b) and its 95 % interval `low`, `high`, `a_leads` and `b_leads` (the
            shares of resamples in which each is better), `a_wins`, `b_wins`, `ties` (numbers of images,
            where both are defined), `p` of the sign test, and `p_holm`, corrected for the number of
            pairs within the metric. Of a metric for which neither higher nor lower is better, nobody
            leads or wins: shares and p are NaN, numbers of images 0.
        intervals: one row per method and metric: `method`, `metric`, `value`, `low`, `high`.
        images: number of images.
        resamples: number of bootstrap resamples.
        seed: of the resampling.
        notes: warnings for the reader: undefined metrics, very few images.
    """

    methods: tuple[str, ...]
    table: "pl.DataFrame"
    intervals: "pl.DataFrame"
    images: int
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()

    def grid(self) -> Grid:
        """Return the table as text."""
        many = len(self.methods) > 2
        names = ("A", "B") if many else self.methods
        pair = ("A", "B", "value A", "value B") if many else names
        headings = (
            "metric", *pair, "difference", "95 % interval", f"{names[0]} leads",
            f"{names[0]} wins", f"{names[1]} wins", "p", *(("p, Holm",) * many),
        )  # fmt: skip
        rows = tuple(_cells(row, many=many) for row in self.table.iter_rows(named=True))
        return Grid(headings, rows, n_text=3 if many else 1)

    def render(self, kind: Format) -> str:
        """Return the table for a document or a program."""
        content = {
            "methods": list(self.methods),
            "images": self.images,
            "resamples": self.resamples,
            "seed": self.seed,
            "notes": list(self.notes),
            "pairs": json_rows(self.table),
            "intervals": json_rows(self.intervals),
        }
        return render(self.grid(), self.table.iter_rows(named=True), content, kind)

    def caption(self) -> str:
        """Return the numbers of images and resamples and the seed, in one line."""
        return f"{self.images} images, {self.resamples} bootstrap resamples, seed {self.seed}"

    def plot(self) -> "Figure":
        """Draw every difference with its interval; right of zero the first method is better."""
        from sisod.report.notebook import comparison_figure

        return comparison_figure(self)

    def _repr_html_(self) -> str:
        return self.grid().html("; ".join([self.caption(), *self.notes]))


def compare(
    a: "Evaluation",
    b: "Evaluation",
    *,
    metrics: str | Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare two results on the same images.

    Bootstrap over images: each resample draws whole images with replacement, the same ones for both, so
    that an image that is difficult for both does not count as a difference.

    Args:
        a: the first result.
        b: the second result, of the same images under the same protocol.
        metrics: None for the paper's columns, `found` (the share of objects found), `object_f1`,
            `false_objects` and `bsi_f_binary`, as far as both results have them; `"all"`, `"paper"`, or
            a list of keys; `object_` + a column of the object table is its mean over all objects.
        resamples: number of bootstrap resamples.
        seed: of the resampling; the same seed gives the same numbers.
        names: of the two results.
    """
    if isinstance(names, str) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise UsageError(f"names must be two texts, got {shown(names)}")
    if names[0] == names[1]:
        raise UsageError(f"both results are called {names[0]!r}; give them different names")
    return compare_many({names[0]: a, names[1]: b}, metrics=metrics, resamples=resamples, seed=seed)


def compare_many(
    evaluations: "Mapping[str, Evaluation]",
    *,
    metrics: str | Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare every pair of several results; see `compare`. Holm's method corrects the sign tests."""
    import polars as pl

    if len(evaluations) < 2:
        raise UsageError(f"expected two or more results to compare, got {len(evaluations)}")
    orders = check_same_images(evaluations)
    keys = chosen_keys(metrics, list(evaluations.values()))
    scores = {
        name: [read_score(evaluation, key, orders[name]) for key in keys]
        for name, evaluation in evaluations.items()
    }
    drawn = resample([score for row in scores.values() for score in row], resamples, seed)
    values = dict(zip(scores, np.split(drawn, len(scores), axis=1), strict=True))
    rows = [
        row
        for i, key in enumerate(keys)
        for row in _pair_rows(key, {name: (scores[name][i], values[name][:, i]) for name in scores})
    ]
    intervals = [
        {"method": name} | _interval_row(score, values[name][:, i])
        for name, row in scores.items()
        for i, score in enumerate(row)
    ]
    n_images = next(iter(evaluations.values())).images.height
    return Comparison(
        methods=tuple(evaluations),
        table=pl.DataFrame(rows),
        intervals=pl.DataFrame(intervals),
        images=n_images,
        resamples=resamples,
        seed=seed,
        notes=_notes(n_images, scores),
    )


def bootstrap_intervals(
    evaluation: "Evaluation",
    metrics: str | Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> "pl.DataFrame":
    """Return the 95 % interval of every score of one result: `metric`, `value`, `low`, `high`.

    By default of every score that can be resampled: image-level metrics, metrics of objects, means over
    objects, `f_max` and `si_f_max` (not the other maxima of mean curves, whose curves are not saved for
    each image).
    """
    import polars as pl

    keys = chosen_keys("all" if metrics is None else metrics, [evaluation])
    scores = [read_score(evaluation, key) for key in keys]
    drawn = resample(scores, resamples, seed)
    return pl.DataFrame([_interval_row(score, drawn[:, i]) for i, score in enumerate(scores)])


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p of an exact sign test; ties are not counted.

    Example:
        Five of five: 2 / 2^5.

        >>> sign_test(5, 0)
        0.0625
    """
    wins, losses = check_whole("wins", wins, least=0), check_whole("losses", losses, least=0)
    count, fewer = wins + losses, min(wins, losses)
    ways = total = 1
    for k in range(fewer):
        ways = ways * (count - k) // (k + 1)
        total += ways
    return min(1.0, 2 * total / (1 << count))  # integers: exact for any number of images


def holm(p_values: ArrayLike) -> Values:
    """Return p values corrected by Holm's method; NaN stays NaN and does not count.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or ((p < 0) | (p > 1)).any():
        raise UsageError(
            f"p_values must be a one-dimensional array of numbers in [0, 1], got {shown(p_values)}"
        )
    corrected = np.full(len(p), math.nan)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    stepped = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return corrected


def check_same_images(evaluations: "Mapping[str, Evaluation]") -> dict[str, NDArray[np.int64]]:
    """Refuse results of different images; return the order that sorts each like the first."""
    if not evaluations:
        raise UsageError("there are no results to compare; pass at least one")
    first, *others = evaluations
    base = evaluations[first]
    names = base.images["image"].to_list()
    orders = {first: np.arange(len(names))}
    for other in others:
        evaluation = evaluations[other]
        index = {name: i for i, name in enumerate(evaluation.images["image"].to_list())}
        _check_names(first, names, other, index)
        if evaluation.protocol != base.protocol:
            raise InputError(
                f"{first!r} was scored under the protocol {base.protocol.name!r} and {other!r} under "
                f"{evaluation.protocol.name!r}; evaluate both under one"
            )
        orders[other] = np.array([index[name] for name in names])
        _check_truths(first, base, other, evaluation, orders[other])
    return orders


def _check_names(first: str, names: list[str], other: str, index: Mapping[str, int]) -> None:
    only_first = [name for name in names if name not in index]
    known = set(names)
    only_other = [name for name in index if name not in known]
    if not only_first and not only_other:
        return
    differences = [
        f"{len(missing)} only in {whose!r} ({shorten_list(missing)})"
        for whose, missing in ((first, only_first), (other, only_other))
        if missing
    ]
    raise InputError(
        f"{first!r} and {other!r} are of different images: {', '.join(differences)}; "
        "evaluate both on the same"
    )


def _check_truths(
    first: str, base: "Evaluation", other: str, evaluation: "Evaluation", order: NDArray[np.int64]
) -> None:
    columns = ("height", "width", "n_objects")
    sizes = np.stack([base.images[key].to_numpy() for key in columns], axis=1)
    other_sizes = np.stack([evaluation.images[key].to_numpy() for key in columns], axis=1)[order]
    differ = np.flatnonzero((sizes != other_sizes).any(axis=1))
    if len(differ):
        name = printable(base.images["image"][int(differ[0])])
        raise InputError(
            f"{first!r} and {other!r} were scored against different ground truths: {len(differ)} "
            f"images differ in size or number of objects, the first is {name}; evaluate them again"
        )


def _pair_rows(key: str, methods: Mapping[str, tuple[Score, Values]]) -> list[dict[str, Any]]:
    rows = [_pair_row(key, a, methods[a], b, methods[b]) for a, b in combinations(methods, 2)]
    corrected = holm([row["p"] for row in rows]).tolist()
    return [row | {"p_holm": p} for row, p in zip(rows, corrected, strict=True)]


def _pair_row(
    key: str, a: str, scores_a: tuple[Score, Values], b: str, scores_b: tuple[Score, Values]
) -> dict[str, Any]:
    (score_a, drawn_a), (score_b, drawn_b) = scores_a, scores_b
    low, high = interval(drawn_a - drawn_b)
    leads_a, leads_b, level = _count_wins(drawn_a - drawn_b, key)
    defined = leads_a + leads_b + level
    wins_a, wins_b, ties = _count_wins(score_a.per_image - score_b.per_image, key)
    return {
        "metric": key,
        "a": a,
        "b": b,
        "value_a": score_a.value,
        "value_b": score_b.value,
        "difference": score_a.value - score_b.value,
        "low": low,
        "high": high,
        "a_leads": leads_a / defined if defined else math.nan,
        "b_leads": leads_b / defined if defined else math.nan,
        "a_wins": wins_a,
        "b_wins": wins_b,
        "ties": ties,
        "p": sign_test(wins_a, wins_b) if wins_a + wins_b + ties else math.nan,
    }


def _count_wins(differences: Values, key: str) -> tuple[int, int, int]:
    """Counts of a better, b better, ties, where both are defined; 0 if no direction is better."""
    if direction(key) == "none":
        return 0, 0, 0
    defined = differences[~np.isnan(differences)]
    gains = defined if direction(key) == "up" else -defined
    wins, losses = int((gains > _TOLERANCE).sum()), int((gains < -_TOLERANCE).sum())
    return wins, losses, len(defined) - wins - losses


def _interval_row(score: Score, drawn: Values) -> dict[str, Any]:
    low, high = interval(drawn)
    return {"metric": score.key, "value": score.value, "low": low, "high": high}


def _notes(n_images: int, scores: Mapping[str, Sequence[Score]]) -> tuple[str, ...]:
    notes = []
    if n_images < _FEW_IMAGES:
        count = "1 image is" if n_images == 1 else f"{n_images} images are"
        notes.append(f"{count} too few for intervals to be trusted")
    for name, row in scores.items():
        undefined = [title(score.key) for score in row if math.isnan(score.value)]
        if undefined:
            notes.append(f"{printable(name)}: undefined on every image: {', '.join(undefined)}")
    return tuple(notes)


def _cells(row: Mapping[str, Any], *, many: bool) -> tuple[str, ...]:
    wins = [str(row[key]) for key in ("a_wins", "b_wins")]
    if direction(row["metric"]) == "none":
        wins = ["-", "-"]
    return (
        heading(row["metric"]),
        *((row["a"], row["b"]) if many else ()),
        number(row["value_a"]),
        number(row["value_b"]),
        number(row["difference"], sign=True),
        interval_text(row["low"], row["high"], sign=True),
        percent(row["a_leads"]),
        *wins,
        _p_text(row["p"]),
        *((_p_text(row["p_holm"]),) if many else ()),
    )


def _p_text(p: float) -> str:
    return "-" if math.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}"
