"""The tables of the page: every score with its interval, and the pairs of methods."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sisod.analysis.bootstrap import heading, score_keys, title
from sisod.analysis.comparison import Comparison, bootstrap_intervals, compare_many
from sisod.analysis.groups import size_bias
from sisod.analysis.ranks import rank_changes
from sisod.common.errors import InputError
from sisod.common.grid import Better, Grid, best_rows, interval_text, number, percent
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.scoring.metrics import METRICS, is_custom

# columns of the main table, as far as they were evaluated; the others are in the table of all metrics
_MAIN = (
    ("mae", "si_mae"),
    ("f_mean", "si_f_mean"),
    ("f_max", "si_f_max"),
    ("f_max_image", "si_f_max_frame"),  # the paper's columns, used if the pair above was not evaluated
    ("auc", "si_auc"),
    ("e_mean", "si_e_mean"),
    ("s", "si_s"),
)
# metrics of the section on objects
OBJECT_COLUMNS = (
    *("object_recall", "object_recall_small", "object_precision", "object_precision_small"),
    *("false_objects", "false_area", "object_f1", "object_f1_small", "pq", "bsi_f_binary"),
)
_COMPARED = ("mae", "si_mae", "f_mean", "si_f_mean", "found")
_BIAS = "size_bias"
_PAIR_HEADINGS = (
    "metric", "first", "second", "difference", "95 % interval", "excludes zero", "first leads", "p"
)  # fmt: skip


@dataclass(frozen=True)
class ScoreCell:
    """One value of the page.

    Attributes:
        value: NaN where undefined.
        low, high: its 95 % interval, NaN if there is none.
        best: whether it is the best of its column, as printed.
        images: number of images on which it is defined; None for scores over objects.
        digits: after the decimal point; 0 for counts.
        tip: explanation of a value without an interval.
        undefined: explanation of NaN.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    best: bool = False
    images: int | None = None
    digits: int = 4
    tip: str = "no interval: the metric cannot be resampled"
    undefined: str = "undefined on every image"

    @property
    def text(self) -> str:
        """The value as printed."""
        return number(self.value, digits=self.digits)

    @property
    def interval(self) -> str:
        """The interval as printed; empty if there is none."""
        return "" if math.isnan(self.low) else interval_text(self.low, self.high)


@dataclass(frozen=True)
class Column:
    """A sortable column: its key, its heading, and the better direction."""

    key: str
    heading: str
    better: Better

    @property
    def title(self) -> str:
        """The full name of the metric, as in every table of the command line."""
        return METRICS[self.key].title if self.key in METRICS else self.heading


@dataclass(frozen=True)
class ColumnGroup:
    """Columns under one heading, such as the ordinary and the size-invariant form of a metric."""

    heading: str
    columns: tuple[Column, ...]

    @property
    def better(self) -> Better:
        """The better direction if it is the same for all columns."""
        directions = {column.better for column in self.columns}
        return directions.pop() if len(directions) == 1 else "none"


Row = tuple[str, tuple[ScoreCell, ...]]  # a method and its cells


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The scores of every method on one data set; `intervals` has those of `OBJECT_COLUMNS` too."""

    dataset: str
    images: int
    objects: int
    groups: tuple[ColumnGroup, ...]
    rows: tuple[Row, ...]
    all_metrics: Grid
    comparison: Comparison | None
    intervals: "dict[str, Intervals]"
    notes: tuple[str, ...]


def score_table(dataset: str, results: Sequence[Result], *, resamples: int) -> ScoreTable:
    """Return the scores of one data set with their intervals."""
    evaluations = {result.method: result.evaluation for result in results}
    groups = _column_groups(list(evaluations.values()))
    keys = [column.key for group in groups for column in group.columns]
    notes: list[str] = []
    resampled = [*keys, *OBJECT_COLUMNS]
    comparison = _compare(evaluations, resampled, notes, resamples)
    intervals = _intervals(evaluations, resampled, comparison, resamples)
    rows = rows_of_columns(
        groups, evaluations, lambda method, key: _cell(evaluations[method], key, intervals[method])
    )
    notes += _notes(evaluations)
    return ScoreTable(
        dataset,
        max(evaluation.images.height for evaluation in evaluations.values()),
        max(evaluation.objects.height for evaluation in evaluations.values()),
        groups,
        rows,
        _all_metrics(evaluations),
        comparison,
        intervals,
        tuple(notes),
    )


def rank_note(dataset: str, results: Sequence[Result]) -> str:
    """Say in a sentence whether MAE and SI-MAE rank the methods differently; "" if undefined."""
    evaluations = {result.method: result.evaluation for result in results}
    try:
        changes = rank_changes(evaluations)
    except InputError:  # different images, or a metric was not evaluated
        return ""
    pair = ("mae", "si_mae")
    if len(evaluations) < 2 or math.isnan(changes.tau[pair]):
        return ""
    swaps = changes.swaps[pair]
    tau = f"Kendall's tau {number(changes.tau[pair], digits=2)}"
    if not swaps:
        return f"On {dataset}, MAE and SI-MAE rank the methods in the same order ({tau})."
    order = ", ".join(f"{a} before {b}" for a, b in swaps[:3])
    more = f" and {len(swaps) - 3} more" if len(swaps) > 3 else ""
    return f"On {dataset}, MAE ranks {order}{more}; SI-MAE ranks them in the opposite order ({tau})."


def _column_groups(evaluations: Sequence[Evaluation]) -> tuple[ColumnGroup, ...]:
    known = [key for key in METRICS if any(key in e.summary for e in evaluations)]
    pairs = [pair for pair in _MAIN if set(pair) & set(known)]
    if {"f_max", "si_f_max"} & set(known):
        pairs = [pair for pair in pairs if pair[0] != "f_max_image"]
    if not pairs:
        plain_keys = dict.fromkeys(key.removeprefix("si_") for key in known)
        pairs = [(key, f"si_{key}") for key in plain_keys]
    else:  # whoever adds a metric wants to see it
        custom = dict.fromkeys(METRICS[key].family.key for key in known if is_custom(key))
        pairs += [(key, f"si_{key}") for key in custom]
    groups = []
    for pair in pairs:
        forms = [form for form in pair if form in known]
        plain = METRICS[forms[0]].title.removeprefix("SI-")
        columns = [
            Column(form, "SI" if form.startswith("si_") else "ordinary", METRICS[form].direction)
            for form in forms
        ]
        groups.append(ColumnGroup(plain, tuple(columns)))
    objects = [Column("found", "found", "up"), Column(_BIAS, "size bias", "zero")]
    if "false_objects" in known:
        objects.insert(1, Column("false_objects", "false", "down"))
    return (*groups, ColumnGroup("Objects", tuple(objects)))


def _compare(
    evaluations: Mapping[str, Evaluation], keys: Sequence[str], notes: list[str], resamples: int
) -> Comparison | None:
    if len(evaluations) < 2:
        return None
    common = [
        key
        for key in dict.fromkeys([*keys, *_COMPARED])
        if all(key in score_keys(evaluation) for evaluation in evaluations.values())
    ]
    try:
        return compare_many(evaluations, metrics=common, resamples=resamples) if common else None
    except InputError as error:
        notes.append(f"the methods are not compared with each other: {error}")
        return None


def pairs_grid(comparison: Comparison) -> Grid:
    """Return the comparison of each pair of methods by the main metrics."""
    rows = tuple(
        (
            title(row["metric"]),
            row["a"],
            row["b"],
            number(row["difference"], sign=True),
            interval_text(row["low"], row["high"], sign=True),
            _excludes_zero(row["low"], row["high"]),
            percent(row["a_leads"]),
            "-" if math.isnan(row["p_holm"]) else f"{row['p_holm']:.2g}",
        )
        for row in comparison.table.iter_rows(named=True)
        if row["metric"] in _COMPARED
    )
    return Grid(_PAIR_HEADINGS, rows, n_text=3)


def _excludes_zero(low: float, high: float) -> str:
    if math.isnan(low):
        return "-"
    return "yes" if low > 0 or high < 0 else "no"


Intervals = dict[str, tuple[float, float, float]]  # metric -> value, low, high


def _intervals(
    evaluations: Mapping[str, Evaluation],
    keys: Sequence[str],
    comparison: Comparison | None,
    resamples: int,
) -> dict[str, Intervals]:
    """Intervals of the comparison; for other scores, from a bootstrap of their own."""
    intervals: dict[str, Intervals] = {}
    for method, evaluation in evaluations.items():
        intervals[method] = {}
        if comparison is not None:
            table = comparison.intervals
            rows = [row for row in table.iter_rows(named=True) if row["method"] == method]
            intervals[method] = {row["metric"]: (row["value"], row["low"], row["high"]) for row in rows}
        available = score_keys(evaluation)
        missing = [key for key in keys if key in available and key not in intervals[method]]
        if missing:
            table = bootstrap_intervals(evaluation, missing, resamples=resamples)
            intervals[method] |= {
                row["metric"]: (row["value"], row["low"], row["high"])
                for row in table.iter_rows(named=True)
            }
    return intervals


def _cell(evaluation: Evaluation, key: str, intervals: Intervals) -> ScoreCell:
    if key == _BIAS:
        tip = "Spearman's correlation of the F of objects with their size; 0 is best"
        return ScoreCell(size_bias(evaluation), tip=tip)
    value, low, high = intervals.get(key, (math.nan, math.nan, math.nan))
    if key in METRICS:
        value = evaluation.summary.get(key, math.nan)
    return ScoreCell(value, low, high, images=evaluation.defined.get(key))


def rows_of_columns(
    groups: Sequence[ColumnGroup], methods: Collection[str], cell: Callable[[str, str], ScoreCell]
) -> tuple[Row, ...]:
    """Return the rows of a table, the best of each column marked.

    Args:
        groups: the columns.
        methods: the rows.
        cell: the function that returns the cell of a method and a column's key.
    """
    columns = [
        _mark_best([cell(method, column.key) for method in methods], column.better)
        for group in groups
        for column in group.columns
    ]
    return tuple(zip(methods, zip(*columns, strict=True), strict=True))


def _mark_best(cells: Sequence[ScoreCell], better: Better) -> tuple[ScoreCell, ...]:
    best = best_rows([cell.text for cell in cells], better)
    return tuple(replace(cell, best=row in best) for row, cell in enumerate(cells))


def _all_metrics(evaluations: Mapping[str, Evaluation]) -> Grid:
    rows, bold = [], set()
    keys = [key for key in METRICS if any(key in e.summary for e in evaluations.values())]
    for row, key in enumerate(keys):
        cells = [number(e.summary.get(key, math.nan)) for e in evaluations.values()]
        rows.append((heading(key), *cells))
        bold |= {(row, 1 + column) for column in best_rows(cells, METRICS[key].direction)}
    return Grid(("metric", *evaluations), tuple(rows), n_text=1, bold=frozenset(bold))


def _notes(evaluations: Mapping[str, Evaluation]) -> list[str]:
    first = next(iter(evaluations.values()))
    notes = []
    if first.images.height == 1:
        notes.append("one image: resampling changes nothing, so intervals have no width")
    if first.objects.height == 0:
        notes.append("no image has an object: most metrics are undefined")
    elif int(first.images["n_objects"].to_numpy().max()) < 2:
        notes.append(
            "no image has more than one object: the data set cannot show how objects of one image "
            "are weighted"
        )
    for method, evaluation in evaluations.items():
        undefined = [
            METRICS[key].title
            for key, value in evaluation.summary.items()
            if math.isnan(value) and METRICS[key].family.kind != "objects"  # they have their own section
        ]
        if undefined:
            more = f" and {len(undefined) - 6} more" if len(undefined) > 6 else ""
            notes.append(f"{method}: undefined on every image: {', '.join(undefined[:6])}{more}")
        missing = len(evaluation.run.get("inputs", {}).get("missing", []))
        if missing:
            notes.append(f"{method}: {missing} images had no prediction and were left out")
    return notes
