"""Is A better than B, or was it the choice of images? Paired bootstrap, sign test, Holm's correction."""

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
    interval,
    read_score,
    resample,
    score_keys,
    title,
)
from sisod.common.arguments import check_whole, shown
from sisod.common.errors import InputError, UsageError, printable, shorten_list
from sisod.common.grid import Format, Grid, number, plain, render

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from sisod.evaluation.result import Evaluation

Values = NDArray[np.float64]
RESAMPLES = 10_000
_LEVEL = 1e-12  # values that differ by less, the rounding of a sum, are equal
_FEW = 20  # images; with fewer an interval says little


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods compared two by two on the same images.

    Attributes:
        methods: their names, in the order given.
        table: one row per metric and pair of methods: `metric`, `a`, `b` (names), `value_a`, `value_b`,
            `difference` (a less b) and its 95 % interval `low`, `high`, `a_leads` and `b_leads` (the
            shares of resamples), `a_wins`, `b_wins`, `ties` (images, of those where both are defined),
            `p` of the sign test, and `p_holm`, corrected for the number of pairs within the metric.
        intervals: one row per method and metric: `method`, `metric`, `value`, `low`, `high`.
        images: how many the methods were compared on.
        resamples: how many there were.
        seed: of the draws.
        notes: what a reader should know before believing it: undefined metrics, very few images.
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
            "pairs": plain(self.table),
            "intervals": plain(self.intervals),
        }
        return render(self.grid(), self.table, content, kind)

    def caption(self) -> str:
        """Return what the numbers rest on, in one line."""
        return f"{self.images} images, {self.resamples} resamples of whole images, seed {self.seed}"

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

    Whole images are drawn with replacement, the same ones for both, so that what is hard for both does
    not count as a difference; objects of one image stay together.

    Args:
        a: a result.
        b: another, of the same images under the same protocol.
        metrics: None for the paper's columns and `found`, the share of objects found; `"all"`,
            `"paper"`, or a list of keys; `object_` + a column of the object table is its mean over all
            objects.
        resamples: how often images are drawn.
        seed: of the draws; the same seed gives the same numbers.
        names: what to call the two.
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
    """Compare every two of several results; see `compare`. Sign tests are corrected after Holm."""
    import polars as pl

    if len(evaluations) < 2:
        raise UsageError(f"expected two or more results to compare, got {len(evaluations)}")
    orders = check_same_images(evaluations)
    available = _common(score_keys(evaluation) for evaluation in evaluations.values())
    keys = chosen_keys(metrics, available)
    scores = {
        name: [read_score(evaluation, key, orders[name]) for key in keys]
        for name, evaluation in evaluations.items()
    }
    drawn = resample([score for found in scores.values() for score in found], resamples, seed)
    values = dict(zip(scores, np.split(drawn, len(scores), axis=1), strict=True))
    rows = [
        row
        for place, key in enumerate(keys)
        for row in _pair_rows(
            key, {name: (scores[name][place], values[name][:, place]) for name in scores}
        )
    ]
    intervals = [
        {"method": name} | _interval_row(score, values[name][:, place])
        for name, found in scores.items()
        for place, score in enumerate(found)
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

    By default of everything that can be resampled: image-level metrics, `f_max` and `si_f_max` (other
    maxima of mean curves cannot, their curves are not kept for each image), and scores over objects.
    """
    import polars as pl

    keys = chosen_keys("all" if metrics is None else metrics, score_keys(evaluation))
    scores = [read_score(evaluation, key) for key in keys]
    drawn = resample(scores, resamples, seed)
    return pl.DataFrame([_interval_row(score, drawn[:, i]) for i, score in enumerate(scores)])


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p of an exact sign test: images where both are equal are left out before.

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
    return min(1.0, 2 * total / (1 << count))  # whole numbers: exact, however many images


def holm(p_values: ArrayLike) -> Values:
    """Return p values corrected for their number after Holm; NaN stays NaN and does not count.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or ((p < 0) | (p > 1)).any():
        raise UsageError(f"p_values must be a row of numbers in [0, 1], got {shown(p_values)}")
    corrected = np.full(len(p), math.nan)
    places = np.flatnonzero(~np.isnan(p))
    order = places[np.argsort(p[places], kind="stable")]
    stepped = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return corrected


def check_same_images(evaluations: "Mapping[str, Evaluation]") -> dict[str, NDArray[np.int64]]:
    """Refuse results that cannot be paired; return what sorts each one's images like the first's."""
    if not evaluations:
        raise UsageError("there are no results to compare; pass at least one")
    first, *others = evaluations
    base = evaluations[first]
    names = base.images["image"].to_list()
    orders = {first: np.arange(len(names))}
    for other in others:
        evaluation = evaluations[other]
        place = {name: i for i, name in enumerate(evaluation.images["image"].to_list())}
        _check_names(first, names, other, place)
        if evaluation.protocol != base.protocol:
            raise InputError(
                f"{first!r} was scored under the protocol {base.protocol.name!r} and {other!r} under "
                f"{evaluation.protocol.name!r}; evaluate both under one"
            )
        orders[other] = np.array([place[name] for name in names])
        _check_truths(first, base, other, evaluation, orders[other])
    return orders


def _check_names(first: str, names: list[str], other: str, place: Mapping[str, int]) -> None:
    only_first = [name for name in names if name not in place]
    known = set(names)
    only_other = [name for name in place if name not in known]
    if not only_first and not only_other:
        return
    said = [
        f"{len(missing)} only in {whose!r} ({shorten_list(missing)})"
        for whose, missing in ((first, only_first), (other, only_other))
        if missing
    ]
    raise InputError(
        f"{first!r} and {other!r} are of different images: {', '.join(said)}; evaluate both on the same"
    )


def _check_truths(
    first: str, base: "Evaluation", other: str, evaluation: "Evaluation", order: NDArray[np.int64]
) -> None:
    columns = ("height", "width", "n_objects")
    here = np.stack([base.images[key].to_numpy() for key in columns], axis=1)
    there = np.stack([evaluation.images[key].to_numpy() for key in columns], axis=1)[order]
    differ = np.flatnonzero((here != there).any(axis=1))
    if len(differ):
        name = printable(base.images["image"][int(differ[0])])
        raise InputError(
            f"{first!r} and {other!r} were scored against different ground truths: {len(differ)} "
            f"images, {name} the first, differ in size or number of objects; evaluate them again"
        )


def _common(available: Any) -> tuple[str, ...]:
    first, *others = available
    return tuple(key for key in first if all(key in other for other in others))


def _pair_rows(key: str, found: Mapping[str, tuple[Score, Values]]) -> list[dict[str, Any]]:
    rows = [_pair_row(key, a, found[a], b, found[b]) for a, b in combinations(found, 2)]
    corrected = holm([row["p"] for row in rows]).tolist()
    return [row | {"p_holm": p} for row, p in zip(rows, corrected, strict=True)]


def _pair_row(
    key: str, a: str, of_a: tuple[Score, Values], b: str, of_b: tuple[Score, Values]
) -> dict[str, Any]:
    (score_a, drawn_a), (score_b, drawn_b) = of_a, of_b
    low, high = interval(drawn_a - drawn_b)
    leads_a, leads_b, level = _tally(drawn_a - drawn_b, key)
    drawn = leads_a + leads_b + level
    wins_a, wins_b, ties = _tally(score_a.per_image - score_b.per_image, key)
    return {
        "metric": key,
        "a": a,
        "b": b,
        "value_a": score_a.value,
        "value_b": score_b.value,
        "difference": score_a.value - score_b.value,
        "low": low,
        "high": high,
        "a_leads": leads_a / drawn if drawn else math.nan,
        "b_leads": leads_b / drawn if drawn else math.nan,
        "a_wins": wins_a,
        "b_wins": wins_b,
        "ties": ties,
        "p": sign_test(wins_a, wins_b) if wins_a + wins_b + ties else math.nan,
    }


def _tally(differences: Values, key: str) -> tuple[int, int, int]:
    """How often a is better, b is better, they are level; where both are defined."""
    defined = differences[~np.isnan(differences)]
    ahead = defined if direction(key) == "up" else -defined
    wins, losses = int((ahead > _LEVEL).sum()), int((ahead < -_LEVEL).sum())
    return wins, losses, len(defined) - wins - losses


def _interval_row(score: Score, drawn: Values) -> dict[str, Any]:
    low, high = interval(drawn)
    return {"metric": score.key, "value": score.value, "low": low, "high": high}


def _notes(n_images: int, scores: Mapping[str, Sequence[Score]]) -> tuple[str, ...]:
    notes = []
    if n_images < _FEW:
        count = "1 image is" if n_images == 1 else f"{n_images} images are"
        notes.append(f"{count} too few for intervals to be trusted")
    for name, found in scores.items():
        undefined = [title(score.key) for score in found if math.isnan(score.value)]
        if undefined:
            notes.append(f"{printable(name)}: undefined on every image: {', '.join(undefined)}")
    return tuple(notes)


def _cells(row: Mapping[str, Any], *, many: bool) -> tuple[str, ...]:
    arrow = "↑" if direction(row["metric"]) == "up" else "↓"
    span = f"{number(row['low'], sign=True)} to {number(row['high'], sign=True)}"
    return (
        f"{title(row['metric'])} {arrow}",
        *((row["a"], row["b"]) if many else ()),
        number(row["value_a"]),
        number(row["value_b"]),
        number(row["difference"], sign=True),
        "-" if math.isnan(row["low"]) else span,
        "-" if math.isnan(row["a_leads"]) else f"{100 * row['a_leads']:.1f} %",
        str(row["a_wins"]),
        str(row["b_wins"]),
        _p_text(row["p"]),
        *((_p_text(row["p_holm"]),) if many else ()),
    )


def _p_text(p: float) -> str:
    return "-" if math.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}"
