"""The tables of the page: every score with its interval, and the pairs of methods."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sisod.analysis.bootstrap import bootstrap_intervals
from sisod.analysis.comparison import Comparison, compare_many
from sisod.analysis.groups import size_bias
from sisod.analysis.object_counts import needs_predicted
from sisod.analysis.scores import OBJECT_SCORES, direction, heading, score_keys, title
from sisod.common.exceptions import InputError, pluralize
from sisod.common.grid import Better, Grid, best_rows, interval_text, number
from sisod.evaluation.notes import undefined_notes
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.report.page.differences import (
    Differences,
    ForestPanel,
    best_method,
    forest_panels,
    read_differences,
)
from sisod.report.page.headline import headline
from sisod.report.summary import shown_keys
from sisod.scoring.metrics import METRICS, is_custom

# metrics of the section on objects
OBJECT_COLUMNS = (
    *("object_recall", "object_recall_small", "object_precision", "object_precision_small"),
    *("false_objects", "false_area", "object_f1", "object_f1_small", "pq", "bsi_f_binary"),
)
_COMPARED = ("mae", "si_mae", "f_mean", "si_f_mean", "found")
_BIAS = "size_bias"
_OBJECT_HEADINGS = {"false_objects": "false", "object_precision": "precision"}  # in the main table
_MOST_COLUMNS = 16  # of the main table, if the user chose the metrics


@dataclass(frozen=True)
class ScoreCell:
    """One value of the page.

    Attributes:
        value: NaN where undefined.
        low, high: its 95 % interval, NaN if there is none.
        best: whether it is the best of its column, as printed.
        to_best: the difference to the best method, if it cannot be told from it; else empty.
        images: number of images on which it is defined; None for scores over objects.
        digits: after the decimal point; 0 for counts.
        tip: explanation of a value without an interval.
        undefined: explanation of NaN.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    best: bool = False
    to_best: str = ""
    images: int | None = None
    digits: int = 4
    tip: str = "no interval: the metric cannot be resampled, or too few images define it"
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
        return title(self.key) if self.key in METRICS or self.key in OBJECT_SCORES else self.heading


@dataclass(frozen=True)
class ColumnGroup:
    """Columns under one heading, such as the plain and the size-invariant form of a metric."""

    heading: str
    columns: tuple[Column, ...]

    def label(self, column: Column) -> str:
        """The name of a column by itself, for a screen reader; it has the words of its heading."""
        if column.heading in ("count", column.title):  # of objects, not one of their metrics
            return f"{self.heading}, {column.heading}"
        return column.title if column.heading == "SI" else f"{column.title}, {column.heading}"

    @property
    def better(self) -> Better:
        """The better direction if it is the same for all columns."""
        directions = {column.better for column in self.columns}
        return directions.pop() if len(directions) == 1 else "none"


Row = tuple[str, tuple[ScoreCell, ...]]  # a method and its cells


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The scores of every method on one data set.

    `intervals` has those of `OBJECT_COLUMNS` too. `ranked` is False if the methods cannot be compared:
    then no value is the best. `undefined` says on how many images metrics of the table are undefined.
    """

    dataset: str
    images: int
    objects: int
    groups: tuple[ColumnGroup, ...]
    rows: tuple[Row, ...]
    all_metrics: Grid
    comparison: Comparison | None
    differences: Differences
    forest: list[ForestPanel]
    headline: str
    intervals: "dict[str, Intervals]"
    ranked: bool
    notes: tuple[str, ...]
    undefined: str


def score_table(dataset: str, results: Sequence[Result], *, resamples: int) -> ScoreTable:
    """Return the scores of one data set with their intervals."""
    evaluations = {result.method: result.evaluation for result in results}
    groups = _column_groups(list(evaluations.values()))
    keys = [column.key for group in groups for column in group.columns]
    pairs = _forms(keys, _known_keys(list(evaluations.values())))
    resampled = list(dict.fromkeys([*keys, *OBJECT_COLUMNS, *(key for pair in pairs for key in pair)]))
    comparison, obstacle = _compare(evaluations, resampled, resamples)
    intervals = _intervals(evaluations, resampled, comparison, resamples)
    differences = read_differences(comparison)
    rows = rows_of_columns(
        groups,
        evaluations,
        lambda method, key: _cell(evaluations[method], key, intervals[method]),
        differences,
        ranked=not obstacle,
    )
    notes = [f"the methods are not compared with each other: {obstacle}"] if obstacle else []
    counts = [  # metrics without any value are in the notes
        (dataset, name, {k: n for k, n in e.defined.items() if n}, e.images.height)
        for name, e in evaluations.items()
    ]
    return ScoreTable(
        dataset,
        max(evaluation.images.height for evaluation in evaluations.values()),
        max(evaluation.objects.height for evaluation in evaluations.values()),
        groups,
        rows,
        _all_metrics(evaluations, ranked=not obstacle),
        comparison,
        differences,
        forest_panels([key for key in keys if key != _BIAS], list(evaluations), differences),
        headline(dataset, pairs, comparison, differences),
        intervals,
        not obstacle,
        (*notes, *_notes(evaluations)),
        "; ".join(undefined_notes(counts, [key for key in keys if key in METRICS])),
    )


def _forms(keys: Sequence[str], known: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of forms that were evaluated and of which at least one is in the main table."""
    main = [key for key in keys if key in METRICS]
    either = [key for key in known if {key, f"si_{key}", key.removeprefix("si_")} & set(main)]
    return [pair for pair in form_pairs(either) if all(pair)]


def _column_groups(evaluations: Sequence[Evaluation]) -> tuple[ColumnGroup, ...]:
    keys = _main_keys(_known_keys(evaluations))
    groups = []
    for pair in form_pairs([key for key in keys if not needs_predicted(key)]):
        forms = [form for form in pair if form]
        columns = [
            Column(form, "SI" if METRICS[form].size_invariant else "plain", direction(form))
            for form in forms
        ]
        groups.append(ColumnGroup(_group_heading(forms), tuple(columns)))
    objects = [
        Column(
            key, _OBJECT_HEADINGS.get(key, METRICS[key].title.removeprefix("Object ")), direction(key)
        )
        for key in keys
        if needs_predicted(key) and key != "object_recall"
    ]
    found = Column("found", "found", "up")  # the same as object_recall, and known for every result
    return (*groups, ColumnGroup("Objects", (found, *objects, Column(_BIAS, "size bias", "zero"))))


def _group_heading(forms: Sequence[str]) -> str:
    """The title that forms of a metric share, and the endings in which they differ."""
    titles = dict.fromkeys(METRICS[form].title.removeprefix("SI-") for form in forms)
    first, *others = titles
    return ", ".join([first, *(other.rsplit(" ", 1)[-1] for other in others)])


def _known_keys(evaluations: Sequence[Evaluation]) -> list[str]:
    return list(dict.fromkeys(key for evaluation in evaluations for key in evaluation.summary))


def _main_keys(known: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that 'sisod evaluate' prints; the others are in the table of all metrics.

    Of its second table, of objects, which is a section of its own, only the false objects.
    """
    if len(known) <= _MOST_COLUMNS:  # chosen by the user
        return tuple(known)
    first = (shown_keys(known, chosen=False) or [tuple(known)])[0][:_MOST_COLUMNS]
    # whoever adds a metric wants to see it
    more = (key for key in known if key == "false_objects" or is_custom(key))
    return tuple(dict.fromkeys((*first, *more)))


def form_pairs(keys: Sequence[str]) -> list[tuple[str, str]]:
    """Return each plain metric with its size-invariant form; "" for a form that is not there.

    Example:
        >>> form_pairs(["mae", "si_mae", "f_max_image", "si_f_max_frame", "e_mean"])
        [('mae', 'si_mae'), ('f_max_image', 'si_f_max_frame'), ('e_mean', '')]
    """
    partners = {key: f"si_{key}" for key in keys}
    if "si_f_max_image" not in keys:  # the paper compares it with the maximum over frames
        partners["f_max_image"] = "si_f_max_frame"
    with_partner = {partners[key] for key in keys}
    return [
        ("", key)
        if METRICS[key].size_invariant
        else (key, partners[key] if partners[key] in keys else "")
        for key in keys
        if key not in with_partner
    ]


def _compare(
    evaluations: Mapping[str, Evaluation], keys: Sequence[str], resamples: int
) -> tuple[Comparison | None, str]:
    """Compare the methods; return also why that is impossible, such as different protocols."""
    common = [
        key
        for key in dict.fromkeys([*keys, *_COMPARED])
        if all(key in score_keys(evaluation) for evaluation in evaluations.values())
    ]
    if len(evaluations) < 2 or not common:
        return None, ""
    try:
        return compare_many(evaluations, metrics=common, resamples=resamples), ""
    except InputError as error:
        return None, str(error)


Intervals = dict[str, tuple[float, float, float]]  # metric -> value, low, high


def _intervals(
    evaluations: Mapping[str, Evaluation],
    keys: Sequence[str],
    comparison: Comparison | None,
    resamples: int,
) -> dict[str, Intervals]:
    """Intervals of the comparison; for other scores, from a bootstrap of their own."""
    intervals: dict[str, Intervals] = {method: {} for method in evaluations}
    for row in comparison.intervals.iter_rows(named=True) if comparison is not None else ():
        intervals[row["method"]][row["metric"]] = (row["value"], row["low"], row["high"])
    for method, evaluation in evaluations.items():
        available = score_keys(evaluation)
        missing = [key for key in keys if key in available and key not in intervals[method]]
        if missing:
            table = bootstrap_intervals(evaluation, missing, resamples=resamples)
            for row in table.iter_rows(named=True):
                intervals[method][row["metric"]] = (row["value"], row["low"], row["high"])
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
    groups: Sequence[ColumnGroup],
    methods: Collection[str],
    cell: Callable[[str, str], ScoreCell],
    differences: Differences,
    *,
    ranked: bool,
) -> tuple[Row, ...]:
    """Return the rows of a table; the best of each column, and what cannot be told from it, is marked.

    Args:
        groups: the columns.
        methods: the rows.
        cell: the function that returns the cell of a method and a column's key.
        differences: those of the methods.
        ranked: whether the methods can be compared; if not, nothing is marked.
    """
    columns = []
    for column in (column for group in groups for column in group.columns):
        cells = {method: cell(method, column.key) for method in methods}
        columns.append(_mark_best(column, cells, differences) if ranked else tuple(cells.values()))
    return tuple(zip(methods, zip(*columns, strict=True), strict=True))


def _mark_best(
    column: Column, cells: Mapping[str, ScoreCell], differences: Differences
) -> tuple[ScoreCell, ...]:
    best = best_rows([cell.text for cell in cells.values()], column.better)
    leader = best_method(column.key, list(cells), differences)
    marked = []
    for row, (method, cell) in enumerate(cells.items()):
        one = differences.get((column.key, method, leader))
        tied = row not in best and one is not None and one.verdict == "undecided"
        to_best = f"{leader} by {one.text}" if tied and one is not None else ""
        marked.append(replace(cell, best=row in best, to_best=to_best))
    return tuple(marked)


def _all_metrics(evaluations: Mapping[str, Evaluation], *, ranked: bool) -> Grid:
    rows, bold = [], set()
    keys = _known_keys(list(evaluations.values()))
    for row, key in enumerate(keys):
        cells = [number(e.summary.get(key, math.nan)) for e in evaluations.values()]
        rows.append((heading(key), *cells))
        best = best_rows(cells, direction(key)) if ranked else set()
        bold |= {(row, 1 + column) for column in best}
    return Grid(("metric", *evaluations), tuple(rows), n_text=1, bold=frozenset(bold))


def _notes(evaluations: Mapping[str, Evaluation]) -> list[str]:
    first = next(iter(evaluations.values()))
    notes = []
    if first.images.height == 1:
        notes.append("one image: there are no intervals, and no difference can be decided")
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
            verb = "was" if missing == 1 else "were"
            notes.append(
                f"{method}: {pluralize(missing, 'image')} had no prediction and {verb} left out"
            )
        if calibration := evaluation.run.get("inputs", {}).get("calibration"):
            notes.append(
                f"{method}: calibrated maps, temperature {calibration['temperature']:g}, "
                f"shift {calibration['shift']:+g}"
            )
    return notes
