"""The tables of the page: every score of a data set with its interval, and what objects were found."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sisod.analysis.bootstrap import bootstrap_intervals
from sisod.analysis.comparison import Comparison, compare_many
from sisod.analysis.groups import size_bias
from sisod.analysis.object_counts import needs_predicted
from sisod.analysis.scores import OBJECT_SCORES, direction, heading, score_keys, title
from sisod.common.exceptions import InputError
from sisod.common.grid import Better, Grid, best_rows, interval_text, number
from sisod.evaluation.notes import undefined_notes
from sisod.evaluation.results import Result
from sisod.report.differences import (
    Differences,
    ForestPanel,
    best_method,
    forest_panels,
    headline,
    read_differences,
)
from sisod.report.missing import dataset_notes, missing_objects
from sisod.report.summary import shown_keys
from sisod.scoring.counting.object_counts import COUNTS
from sisod.scoring.metrics import METRICS, is_custom

_COMPARED = ("mae", "si_mae", "f_mean", "si_f_mean", "found")
_BIAS = "size_bias"
_BIAS_TIP = "Spearman's correlation of the F of objects with their size; 0 is best"
_OBJECT_HEADINGS = {"false_objects": "false", "object_precision": "precision"}  # in the main table
_UNDEFINED = (math.nan, math.nan, math.nan)
_MOST_COLUMNS = 16  # of the main table, if the user chose the metrics
# the section on objects: heading of a group -> its columns, a count or a metric, and the heading
_OBJECT_GROUPS = {
    "Found objects": {"found": "count", "object_recall": "recall", "object_recall_small": "small"},
    "Predicted objects": {
        "predicted": "count",
        "object_precision": "precision",
        "object_precision_small": "small",
    },
    "False objects": {"false": "count", "false_objects": "per image", "false_area": "area"},
    "Both": {
        "object_f1": "F1",
        "object_f1_small": "F1 small",
        "pq": "PQ",
        "bsi_f_binary": "BSI-F binary",
    },
}
# count -> its better direction, and what stands beside it
_COUNTS: dict[str, tuple[Better, str]] = {
    "found": ("up", "of {objects:,} objects in the ground truth"),
    "predicted": ("none", "{precise:,} of them are salient in at least half of their pixels"),
    "false": ("down", "of {predicted:,} predicted objects"),
}
_OBJECT_COLUMNS = [key for group in _OBJECT_GROUPS.values() for key in group if key not in _COUNTS]


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


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """A sortable table of one data set.

    Attributes:
        dataset: its name.
        images: how many it has.
        groups: the columns.
        rows: a method and its cells.
        notes: sentences above the table.
    """

    dataset: str
    images: int
    groups: tuple[ColumnGroup, ...]
    rows: tuple[tuple[str, tuple[ScoreCell, ...]], ...]
    notes: tuple[str, ...]


class DatasetScores:
    """All scores of the methods on one data set, as the page shows them.

    The methods are compared once, with the same resamples for all tables. `obstacle` says why they
    cannot be, such as different protocols: then no value is the best.

    Args:
        dataset: its name.
        results: those of this data set.
        resamples: number of bootstrap resamples.
    """

    def __init__(self, dataset: str, results: Sequence[Result], *, resamples: int) -> None:
        self.dataset = dataset
        self.results = results
        self.resamples = resamples
        self.evaluations = {result.method: result.evaluation for result in results}
        self.methods = list(self.evaluations)
        every = self.evaluations.values()
        self.images = max(evaluation.images.height for evaluation in every)
        self.n_objects = max(evaluation.objects.height for evaluation in every)
        self.known = list(dict.fromkeys(key for evaluation in every for key in evaluation.summary))
        self.groups = _column_groups(_main_keys(self.known))
        self.keys = [column.key for group in self.groups for column in group.columns]
        self.pairs = _evaluated_forms(self.keys, self.known)
        forms = (key for pair in self.pairs for key in pair)
        self.resampled = list(dict.fromkeys([*self.keys, *_OBJECT_COLUMNS, *forms]))
        self.comparison, self.obstacle = self._compare()
        self.differences = read_differences(self.comparison)

    def _compare(self) -> tuple[Comparison | None, str]:
        """The comparison of the methods, or why it is impossible."""
        common = [
            key
            for key in dict.fromkeys([*self.resampled, *_COMPARED])
            if all(key in score_keys(evaluation) for evaluation in self.evaluations.values())
        ]
        if len(self.methods) < 2 or not common:
            return None, ""
        try:
            return compare_many(self.evaluations, metrics=common, resamples=self.resamples), ""
        except InputError as error:
            return None, str(error)

    @cached_property
    def intervals(self) -> dict[tuple[str, str], tuple[float, float, float]]:
        """Method and metric -> value, low, high; of other scores, from a bootstrap of their own."""
        rows = [] if self.comparison is None else list(self.comparison.intervals.iter_rows(named=True))
        compared = {row["metric"] for row in rows}
        for method, evaluation in self.evaluations.items():
            available = score_keys(evaluation)
            keys = [key for key in self.resampled if key in available and key not in compared]
            if keys:
                table = bootstrap_intervals(evaluation, keys, resamples=self.resamples)
                rows += [row | {"method": method} for row in table.iter_rows(named=True)]
        return {(r["method"], r["metric"]): (r["value"], r["low"], r["high"]) for r in rows}

    @cached_property
    def scores(self) -> ScoreTable:
        """The main table: plain metrics beside their size-invariant forms."""
        notes = (
            [f"the methods are not compared with each other: {self.obstacle}"] if self.obstacle else []
        )
        rows = self._rows(self.groups, self.methods, self._score, self.differences)
        notes += dataset_notes(self.evaluations)
        return ScoreTable(self.dataset, self.images, self.groups, rows, tuple(notes))

    def _score(self, method: str, key: str) -> ScoreCell:
        evaluation = self.evaluations[method]
        if key == _BIAS:
            return ScoreCell(size_bias(evaluation), tip=_BIAS_TIP)
        value, low, high = self.intervals.get((method, key), _UNDEFINED)
        if key in METRICS:
            value = evaluation.summary.get(key, math.nan)
        return ScoreCell(value, low, high, images=evaluation.defined.get(key))

    @cached_property
    def objects(self) -> ScoreTable:
        """Objects found, predicted and false; no rows if no method has predicted objects."""
        sums = {
            method: {count: float(evaluation.counts[count].sum()) for count in COUNTS}
            for method, evaluation in self.evaluations.items()
            if evaluation.counts is not None
        }
        groups = tuple(
            ColumnGroup(name, tuple(Column(key, text, _better(key)) for key, text in columns.items()))
            for name, columns in _OBJECT_GROUPS.items()
        )
        differences = {key: one for key, one in self.differences.items() if key[0] not in _COUNTS}
        rows = self._rows(
            groups, sums, lambda method, key: self._object_score(method, key, sums[method]), differences
        )
        notes = tuple(missing_objects(self.results, curves=False))
        return ScoreTable(self.dataset, self.images, groups, rows, notes)

    def _object_score(self, method: str, key: str, sums: Mapping[str, float]) -> ScoreCell:
        if key in _COUNTS:
            tip = _COUNTS[key][1].format(**{name: int(value) for name, value in sums.items()})
            return ScoreCell(sums[key], digits=0, tip=tip)
        _, low, high = self.intervals.get((method, key), _UNDEFINED)
        if METRICS[key].family.kind == "objects":
            arrays = {name: np.asarray(value) for name, value in sums.items()}
            value = float(METRICS[key].family.function(arrays))
            return ScoreCell(value, low, high, undefined="undefined: there are no such objects")
        summary = self.evaluations[method].summary  # a mean over images, which the counts do not hold
        if key not in summary:
            return ScoreCell(math.nan, undefined="not evaluated")
        return ScoreCell(summary[key], low, high)

    def _rows(
        self,
        groups: Sequence[ColumnGroup],
        methods: Collection[str],
        score: Callable[[str, str], ScoreCell],
        differences: Differences,
    ) -> tuple[tuple[str, tuple[ScoreCell, ...]], ...]:
        """The rows of a table; the best of each column, and what cannot be told from it, is marked."""
        columns = []
        for column in (column for group in groups for column in group.columns):
            cells = {method: score(method, column.key) for method in methods}
            columns.append(
                [*cells.values()] if self.obstacle else _mark_best(column, cells, differences)
            )
        return tuple(zip(methods, zip(*columns, strict=True), strict=True))

    @cached_property
    def all_metrics(self) -> Grid:
        """Every metric as a row, methods as columns."""
        rows, bold = [], set()
        for row, key in enumerate(self.known):
            cells = [number(e.summary.get(key, math.nan)) for e in self.evaluations.values()]
            rows.append((heading(key), *cells))
            best = set() if self.obstacle else best_rows(cells, direction(key))
            bold |= {(row, 1 + column) for column in best}
        return Grid(("metric", *self.methods), tuple(rows), n_text=1, bold=frozenset(bold))

    @cached_property
    def forest(self) -> list[ForestPanel]:
        """The panels of differences to the best method."""
        return forest_panels([key for key in self.keys if key != _BIAS], self.methods, self.differences)

    @cached_property
    def headline(self) -> str:
        """Where a plain metric and its size-invariant form disagree."""
        return headline(self.dataset, self.pairs, self.comparison, self.differences)

    @property
    def undefined(self) -> str:
        """On how many images metrics of the main table are undefined; without any value: a note."""
        counts = [
            (self.dataset, m, {k: n for k, n in e.defined.items() if n}, e.images.height)
            for m, e in self.evaluations.items()
        ]
        return "; ".join(undefined_notes(counts, [key for key in self.keys if key in METRICS]))


def _better(key: str) -> Better:
    return _COUNTS[key][0] if key in _COUNTS else direction(key)


def _mark_best(
    column: Column, cells: Mapping[str, ScoreCell], differences: Differences
) -> list[ScoreCell]:
    best = best_rows([cell.text for cell in cells.values()], column.better)
    leader = best_method(column.key, list(cells), differences)
    marked = []
    for row, (method, cell) in enumerate(cells.items()):
        one = differences.get((column.key, method, leader))
        tied = one is not None and row not in best and one.verdict == "undecided"
        to_best = f"{leader} by {one.signed} ({one.interval})" if one is not None and tied else ""
        marked.append(replace(cell, best=row in best, to_best=to_best))
    return marked


def _main_keys(known: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that 'sisod evaluate' prints; the others are in the table of all metrics.

    Of its second table, of objects, which is a section of its own, only the false objects.
    """
    if len(known) <= _MOST_COLUMNS:  # chosen by the user
        return tuple(known)
    first = shown_keys(known, chosen=False)[0][:_MOST_COLUMNS]
    # whoever adds a metric wants to see it
    more = (key for key in known if key == "false_objects" or is_custom(key))
    return tuple(dict.fromkeys((*first, *more)))


def _column_groups(keys: Sequence[str]) -> tuple[ColumnGroup, ...]:
    groups = []
    for pair in form_pairs([key for key in keys if not needs_predicted(key)]):
        forms = [METRICS[key] for key in pair if key]
        columns = [Column(m.key, "SI" if m.size_invariant else "plain", m.better) for m in forms]
        # the title that the forms share, and the endings in which they differ
        first, *others = dict.fromkeys(metric.title.removeprefix("SI-") for metric in forms)
        endings = [other.rsplit(" ", 1)[-1] for other in others]
        groups.append(ColumnGroup(", ".join([first, *endings]), tuple(columns)))
    objects = [
        Column(key, _OBJECT_HEADINGS.get(key, METRICS[key].title.removeprefix("Object ")), _better(key))
        for key in keys
        if needs_predicted(key) and key != "object_recall"
    ]
    found = Column("found", "found", "up")  # the same as object_recall, and known for every result
    return (*groups, ColumnGroup("Objects", (found, *objects, Column(_BIAS, "size bias", "zero"))))


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


def _evaluated_forms(keys: Sequence[str], known: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of forms that were evaluated and of which at least one is in the main table."""
    either = [key for key in known if {key, f"si_{key}", key.removeprefix("si_")} & {*keys} & {*METRICS}]
    return [pair for pair in form_pairs(either) if all(pair)]
