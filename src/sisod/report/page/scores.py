"""The tables of the page: every score with its interval, ordinary beside size-invariant."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sisod.analysis.bootstrap import direction, score_keys, title
from sisod.analysis.comparison import Comparison, bootstrap_intervals, compare_many
from sisod.analysis.groups import size_bias
from sisod.analysis.ranks import rank_changes
from sisod.common.errors import InputError
from sisod.common.grid import number
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.scoring.metrics import METRICS

# what the first table shows, as far as it was evaluated; all else is in the table of everything
_FIRST = (
    ("mae", "si_mae"),
    ("f_mean", "si_f_mean"),
    ("f_max", "si_f_max"),
    ("f_max_image", "si_f_max_frame"),  # the paper's columns; only where the ones above are not there
    ("auc", "si_auc"),
    ("e_mean", "si_e_mean"),
    ("s", "si_s"),
)
_COMPARED = ("mae", "si_mae", "f_mean", "si_f_mean", "found")
_BIAS = "size_bias"


@dataclass(frozen=True)
class Cell:
    """One value as the page shows it.

    Attributes:
        value: NaN where undefined.
        low, high: its 95 % interval, NaN where there is none.
        best: whether it is the best of its column, as printed.
        images: on how many it is defined, None if that is not counted in images.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    best: bool = False
    images: int | None = None

    @property
    def text(self) -> str:
        """The value as printed."""
        return number(self.value)

    @property
    def interval(self) -> str:
        """The interval in words, or an empty text."""
        return _span(self.low, self.high)


@dataclass(frozen=True)
class Column:
    """One sortable column: its key, heading, and which direction is better ("" if neither)."""

    key: str
    heading: str
    better: str


@dataclass(frozen=True)
class Family:
    """Columns under one heading: the ordinary form and the size-invariant one."""

    heading: str
    columns: tuple[Column, ...]

    @property
    def better(self) -> str:
        """The direction that is better, if it is the same for all columns."""
        directions = {column.better for column in self.columns}
        return directions.pop() if len(directions) == 1 else ""


@dataclass(frozen=True)
class Pair:
    """Two methods by one metric, as the page shows them.

    Attributes:
        metric: its title.
        a, b: the methods.
        difference: a less b.
        interval: of the difference.
        clear: whether the interval leaves out zero.
        leads: how often a leads.
        p: of the sign test.
    """

    metric: str
    a: str
    b: str
    difference: str
    interval: str
    clear: str
    leads: str
    p: str


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The scores of every method on one data set."""

    dataset: str
    images: int
    objects: int
    families: tuple[Family, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    everything: tuple[tuple[Column, tuple[Cell, ...]], ...]
    comparison: Comparison | None
    notes: tuple[str, ...]


def score_table(dataset: str, results: Sequence[Result], *, resamples: int) -> ScoreTable:
    """Return everything the page says of one data set in numbers."""
    found = {result.method: result.evaluation for result in results}
    families = _families(list(found.values()))
    keys = [column.key for family in families for column in family.columns]
    notes: list[str] = []
    comparison = _compared(found, keys, notes, resamples)
    intervals = _intervals(found, keys, comparison, resamples)
    cells = {method: [_cell(e, key, intervals[method]) for key in keys] for method, e in found.items()}
    marked = {key: _best([cells[m][i] for m in found], key) for i, key in enumerate(keys)}
    rows = tuple(
        (method, tuple(_marked(cell, place in marked[key]) for cell, key in zip(row, keys, strict=True)))
        for place, (method, row) in enumerate(cells.items())
    )
    notes += _notes(found)
    return ScoreTable(
        dataset,
        max(evaluation.images.height for evaluation in found.values()),
        max(evaluation.objects.height for evaluation in found.values()),
        families,
        rows,
        _everything(found),
        comparison,
        tuple(notes),
    )


def rank_note(dataset: str, results: Sequence[Result]) -> str:
    """Say in a sentence how far MAE and SI-MAE agree on the order of the methods; "" if they cannot."""
    found = {result.method: result.evaluation for result in results}
    try:
        changes = rank_changes(found)
    except InputError:  # not the same images, or a metric was not asked for
        return ""
    pair = ("mae", "si_mae")
    if len(found) < 2 or math.isnan(changes.tau[pair]):
        return ""
    swaps = changes.swaps[pair]
    agree = f"Kendall's tau {number(changes.tau[pair], digits=2)}"
    if not swaps:
        return f"On {dataset}, MAE and SI-MAE rank the methods alike ({agree})."
    said = "; ".join(f"{a} before {b}" for a, b in swaps[:3])
    more = f" and {len(swaps) - 3} more" if len(swaps) > 3 else ""
    return f"On {dataset}, MAE puts {said}{more}; SI-MAE the other way round ({agree})."


def _families(evaluations: Sequence[Evaluation]) -> tuple[Family, ...]:
    known = [key for key in METRICS if any(key in e.summary for e in evaluations)]
    pairs = [pair for pair in _FIRST if set(pair) & set(known)]
    if {"f_max", "si_f_max"} & set(known):
        pairs = [pair for pair in pairs if pair[0] != "f_max_image"]
    if not pairs:
        plain_keys = dict.fromkeys(key.removeprefix("si_") for key in known)
        pairs = [(key, f"si_{key}") for key in plain_keys]
    families = []
    for pair in pairs:
        forms = [form for form in pair if form in known]
        plain = METRICS[forms[0]].title.removeprefix("SI-")
        columns = [
            Column(form, "SI" if form.startswith("si_") else "ordinary", METRICS[form].direction)
            for form in forms
        ]
        families.append(Family(plain, tuple(columns)))
    objects = (Column("found", "found", "up"), Column(_BIAS, "size bias", ""))
    return (*families, Family("Objects", objects))


def _compared(
    found: Mapping[str, Evaluation], keys: Sequence[str], notes: list[str], resamples: int
) -> Comparison | None:
    if len(found) < 2:
        return None
    common = [
        key
        for key in dict.fromkeys([*keys, *_COMPARED])
        if all(key in score_keys(evaluation) for evaluation in found.values())
    ]
    try:
        return compare_many(found, metrics=common, resamples=resamples) if common else None
    except InputError as error:
        notes.append(f"the methods are not compared with each other: {error}")
        return None


def compared_pairs(comparison: Comparison) -> list[Pair]:
    """Return the pairs of methods as text, by the metrics that tell the story."""
    return [
        Pair(
            metric=title(row["metric"]),
            a=row["a"],
            b=row["b"],
            difference=number(row["difference"], sign=True),
            interval=_span(row["low"], row["high"], sign=True) or "-",
            clear=_clear(row["low"], row["high"]),
            leads="-" if math.isnan(row["a_leads"]) else f"{100 * row['a_leads']:.1f} %",
            p="-" if math.isnan(row["p_holm"]) else f"{row['p_holm']:.2g}",
        )
        for row in comparison.table.iter_rows(named=True)
        if row["metric"] in _COMPARED
    ]


def _clear(low: float, high: float) -> str:
    if math.isnan(low):
        return "-"
    return "yes" if low > 0 or high < 0 else "no"


def _span(low: float, high: float, *, sign: bool = False) -> str:
    return "" if math.isnan(low) else f"{number(low, sign=sign)} to {number(high, sign=sign)}"


Intervals = dict[str, tuple[float, float, float]]  # metric -> value, low, high


def _intervals(
    found: Mapping[str, Evaluation],
    keys: Sequence[str],
    comparison: Comparison | None,
    resamples: int,
) -> dict[str, Intervals]:
    """Intervals from the comparison's draws; where there is none, from draws of their own."""
    intervals: dict[str, Intervals] = {}
    for method, evaluation in found.items():
        intervals[method] = {}
        if comparison is not None:
            table = comparison.intervals
            rows = [row for row in table.iter_rows(named=True) if row["method"] == method]
            intervals[method] = {row["metric"]: (row["value"], row["low"], row["high"]) for row in rows}
        available = score_keys(evaluation)
        left = [key for key in keys if key in available and key not in intervals[method]]
        if left:
            table = bootstrap_intervals(evaluation, left, resamples=resamples)
            intervals[method] |= {
                row["metric"]: (row["value"], row["low"], row["high"])
                for row in table.iter_rows(named=True)
            }
    return intervals


def _cell(evaluation: Evaluation, key: str, intervals: Intervals) -> Cell:
    if key == _BIAS:
        return Cell(size_bias(evaluation))
    value, low, high = intervals.get(key, (math.nan, math.nan, math.nan))
    if key in METRICS:
        return Cell(evaluation.summary.get(key, math.nan), low, high, images=evaluation.defined.get(key))
    return Cell(value, low, high)


def _best(cells: Sequence[Cell], key: str) -> set[int]:
    """Places of the best values as printed; none where there is nothing to compare with."""
    texts = {place: cell.text for place, cell in enumerate(cells) if not math.isnan(cell.value)}
    if len(texts) < 2:
        return set()
    if key == _BIAS:  # nearest to zero
        winner = min(texts.values(), key=lambda text: abs(float(text)))
    else:
        winner = (max if direction(key) == "up" else min)(texts.values(), key=float)
    return {place for place, text in texts.items() if text == winner}


def _marked(cell: Cell, best: bool) -> Cell:  # noqa: FBT001  (the mark itself)
    return Cell(cell.value, cell.low, cell.high, best, cell.images)


def _everything(found: Mapping[str, Evaluation]) -> tuple[tuple[Column, tuple[Cell, ...]], ...]:
    keys = [key for key in METRICS if any(key in e.summary for e in found.values())]
    table = []
    for key in keys:
        cells = [Cell(e.summary.get(key, math.nan), images=e.defined.get(key)) for e in found.values()]
        best = _best(cells, key)
        marked = tuple(_marked(cell, place in best) for place, cell in enumerate(cells))
        table.append((Column(key, METRICS[key].title, METRICS[key].direction), marked))
    return tuple(table)


def _notes(found: Mapping[str, Evaluation]) -> list[str]:
    first = next(iter(found.values()))
    notes = []
    if first.images.height == 1:
        notes.append("one image: there is nothing to resample, intervals have no width")
    if first.objects.height == 0:
        notes.append("no image has an object: most metrics are undefined")
    elif int(first.images["n_objects"].to_numpy().max()) < 2:
        notes.append(
            "no image has more than one object: size-invariance among the objects of an image "
            "cannot show here"
        )
    for method, evaluation in found.items():
        none = [METRICS[key].title for key, value in evaluation.summary.items() if math.isnan(value)]
        if none:
            listed = ", ".join(none[:6]) + (f" and {len(none) - 6} more" if len(none) > 6 else "")
            notes.append(f"{method}: undefined on every image: {listed}")
        missing = len(evaluation.run.get("inputs", {}).get("missing", []))
        if missing:
            notes.append(f"{method}: {missing} images had no prediction and were left out")
    return notes
