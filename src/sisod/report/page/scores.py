"""The tables of the page: every score of a data set with its interval, and what objects were found."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from sisod.analysis.bootstrap import bootstrap_intervals
from sisod.analysis.comparison import Comparison, compare_many
from sisod.analysis.groups import is_found, size_bias
from sisod.analysis.object_counts import needs_predicted
from sisod.analysis.scores import direction, heading, score_keys, title
from sisod.analysis.seeds import group_seeds, mean_and_deviation
from sisod.analysis.significance import LEVEL
from sisod.common.exceptions import InputError
from sisod.common.grid import Better, Grid, interval_text, number, ranked_rows
from sisod.evaluation.notes import undefined_notes
from sisod.evaluation.results import Result
from sisod.report.differences import (
    ForestPanel,
    best_method,
    forest_panels,
    headline,
    read_differences,
)
from sisod.report.page.size_bias import size_bias_test
from sisod.report.summary import shown_keys
from sisod.scoring.counting.object_counts import COUNTS
from sisod.scoring.metrics import METRICS, is_custom

_BIAS = "size_bias"
_BIAS_TIP = "Spearman's correlation of the F of objects with their size; 0 is best"
_MOST_COLUMNS = 16  # of the main table, if the user chose the metrics
# the section on objects: heading of a group -> its columns, a count or a metric, and the heading
_OBJECT_GROUPS = {
    "Found objects": {"count_found": "count", "object_recall": "recall", "object_recall_small": "small"},
    "Predicted objects": {
        "count_predicted": "count",
        "object_precision": "precision",
        "object_precision_small": "small",
    },
    "False objects": {"count_false": "count", "false_objects": "per image", "false_area": "area"},
    "Both": {
        "object_f1": "F1",
        "object_f1_small": "F1 small",
        "pq": "PQ",
        "bsi_f_binary": "BSI-F binary",
    },
}
# count -> its better direction, and what stands beside it
_COUNTS: dict[str, tuple[Better, str]] = {
    "count_found": ("up", "of {objects:,.0f} objects in the ground truth"),
    "count_predicted": ("none", "{precise:,.0f} of them are salient in at least half of their pixels"),
    "count_false": ("down", "of {predicted:,.0f} predicted objects"),
}
_OBJECT_COLUMNS = [key for group in _OBJECT_GROUPS.values() for key in group if key not in _COUNTS]


@dataclass
class ScoreCell:
    """One value of the page.

    Attributes:
        value: NaN where undefined.
        text: the value as printed.
        tip: its explanation: the interval, or why there is none.
        interval: the 95 % interval as printed; empty if there is none.
        spread: the standard deviation over seeds as printed; empty without seeds.
        best: whether it is the best of its column, as printed.
        tied: whether it cannot be told from the best one.
    """

    value: float
    text: str
    tip: str
    interval: str = ""
    spread: str = ""
    best: bool = False
    tied: bool = False


class Column(NamedTuple):
    """A sortable column.

    Attributes:
        key: of its metric or count.
        heading: below that of its group.
        better: the better direction.
        title: full name of the metric, as in every table of the command line; empty for a count.
    """

    key: str
    heading: str
    better: Better
    title: str = ""


Groups = Mapping[str, Sequence[Column]]  # columns under one heading, such as both forms of a metric


class ScoreTable(NamedTuple):
    """A sortable table of one data set.

    Attributes:
        groups: the columns.
        rows: a method and its cells, group by group.
        seeds: method -> number of its runs.
    """

    groups: Groups
    rows: Sequence[tuple[str, Sequence[ScoreCell]]]
    seeds: Mapping[str, int]


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
        self.runs = group_seeds(self.evaluations)  # several of a method named NAME@SEED
        self.methods = list(self.runs)
        self.counts = {
            run: {name: float(evaluation.counts[name].sum()) for name in COUNTS}
            for run, evaluation in self.evaluations.items()
            if evaluation.counts is not None
        }
        every = self.evaluations.values()
        self.images = max(evaluation.images.height for evaluation in every)
        self.n_objects = max(evaluation.objects.height for evaluation in every)
        self.most_objects = max(int(one.images["n_objects"].to_numpy().max()) for one in every)
        self.known = list(dict.fromkeys(key for evaluation in every for key in evaluation.summary))
        self.groups = _column_groups(_main_keys(self.known))
        self.keys = [column.key for column in chain(*self.groups.values())]
        self.resampled = list(dict.fromkeys([*self.keys, *_OBJECT_COLUMNS]))
        self.comparison, self.obstacle = self._compare()
        self.differences = read_differences(self.comparison)

    def _compare(self) -> tuple[Comparison | None, str]:
        """The comparison of the methods, or why it is impossible."""
        common = [
            key
            for key in self.resampled
            if all(key in score_keys(evaluation) for evaluation in self.evaluations.values())
        ]
        if len(self.methods) < 2 or not common:
            return None, ""
        try:
            return compare_many(self.evaluations, metrics=common, resamples=self.resamples), ""
        except InputError as error:
            return None, str(error)

    @cached_property
    def intervals(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Method and metric -> ends of the interval; of other scores, from a bootstrap of their own."""
        rows = [] if self.comparison is None else list(self.comparison.intervals.iter_rows(named=True))
        compared = {row["metric"] for row in rows}
        for method, evaluation in self.evaluations.items():
            available = score_keys(evaluation)
            keys = [key for key in self.resampled if key in available and key not in compared]
            if keys:
                table = bootstrap_intervals(evaluation, keys, resamples=self.resamples)
                rows += [row | {"method": method} for row in table.iter_rows(named=True)]
        return {(row["method"], row["metric"]): (row["low"], row["high"]) for row in rows}

    @cached_property
    def scores(self) -> ScoreTable:
        """The main table: plain metrics beside their size-invariant forms."""
        return self._table(self.groups, self.methods)

    @cached_property
    def objects(self) -> ScoreTable:
        """Objects found, predicted and false; no rows if no method has predicted objects."""
        groups = {
            name: [_column(key, text) for key, text in columns.items()]
            for name, columns in _OBJECT_GROUPS.items()
        }
        counted = [m for m, runs in self.runs.items() if all(run in self.counts for run in runs)]
        return self._table(groups, counted)

    def _table(self, groups: Groups, methods: Sequence[str]) -> ScoreTable:
        """A table in which the best of each column, and what cannot be told from it, is marked."""
        columns = []
        for column in chain(*groups.values()):
            cells = [self._cell(method, column.key) for method in methods]
            columns.append(cells)
            (best,) = ranked_rows([cell.text for cell in cells], column.better)
            best = set() if self.obstacle else best
            leader = best_method(column.key, methods, self.differences)
            for row, (method, cell) in enumerate(zip(methods, cells, strict=True)):
                one = self.differences.get((column.key, method, leader))
                cell.best = row in best
                cell.tied = one is not None and one.verdict == "undecided" and not cell.best
                if one is not None and cell.tied:
                    cell.tip += f"; differs from {leader} by {one.signed} ({one.interval}): undecided"
            if column.key == _BIAS and not self.obstacle:
                self._test_biases(dict(zip(methods, cells, strict=True)))
        rows = list(zip(methods, zip(*columns, strict=True), strict=True))
        return ScoreTable(groups, rows, {m: len(self.runs[m]) for m in methods})

    def _test_biases(self, cells: Mapping[str, ScoreCell]) -> None:
        """Mark the size bias nearest to 0, and say which others differ from it; of single runs."""
        defined = {m: abs(cell.value) for m, cell in cells.items() if not math.isnan(cell.value)}
        if len(defined) < 2:
            return
        least = min(defined, key=lambda method: defined[method])
        cells[least].best = True
        for method in defined:
            if method == least or len(self.runs[method]) + len(self.runs[least]) > 2:
                continue
            p = size_bias_test(self.evaluations[method], self.evaluations[least])
            cells[method].tied = p > LEVEL
            verdict = "undecided" if p > LEVEL else "decided"
            cells[method].tip += f"; difference to {least} {verdict} (permutation test, p = {p:.3g})"

    def _cell(self, method: str, key: str) -> ScoreCell:
        """The value of a method; of one with several seeds, their mean and deviation."""
        runs = self.runs[method]
        digits = 0 if key in _COUNTS else 4
        mean, deviation = mean_and_deviation([self._value(run, key) for run in runs])
        low, high = self.intervals.get((method, key), (math.nan, math.nan))
        interval = "" if math.isnan(low) else interval_text(low, high)
        first = self.evaluations[runs[0]]
        n_defined, tip = first.defined.get(key), f"95 % interval {interval}"
        if math.isnan(mean):
            of_objects = key in METRICS and METRICS[key].family.kind == "objects"
            tip = "undefined on every image" if key in first.summary else "not evaluated"
            tip = "undefined: there are no such objects" if of_objects or key not in METRICS else tip
        elif len(runs) > 1 and not interval:
            tip = f"mean and standard deviation over {len(runs)} seeds"
        elif key in _COUNTS:
            tip = _COUNTS[key][1].format(**self.counts[runs[0]])
        elif key == _BIAS:
            tip = _BIAS_TIP
        elif not interval:
            tip = "no interval: the metric cannot be resampled, or too few images define it"
        elif n_defined not in (None, self.images):
            tip += f"; defined on {n_defined} of {self.images} images"
        spread = "" if math.isnan(deviation) else f" ± {number(deviation, digits=digits)}"
        return ScoreCell(mean, number(mean, digits=digits), tip, interval, spread)

    def _value(self, run: str, key: str) -> float:
        evaluation = self.evaluations[run]
        if key == _BIAS:
            return size_bias(evaluation)
        if key == "found":  # of single runs the comparison has no value
            return mean_and_deviation(is_found(evaluation.objects["recall_binary"].to_numpy()).tolist())[
                0
            ]
        counts = self.counts.get(run, {})
        if key in _COUNTS:
            return counts[key.removeprefix("count_")]
        if counts and key in _OBJECT_COLUMNS and METRICS[key].family.kind == "objects":
            # known even if it was not evaluated
            sums = {name: np.asarray(count, np.float64) for name, count in counts.items()}
            return float(METRICS[key].family.function(sums))
        return evaluation.summary.get(key, math.nan)

    @cached_property
    def all_metrics(self) -> Grid:
        """Every metric as a row, methods as columns."""
        rows, bold = [], set()
        for row, key in enumerate(self.known):
            values = {run: e.summary.get(key, math.nan) for run, e in self.evaluations.items()}
            means = [mean_and_deviation([values[run] for run in runs])[0] for runs in self.runs.values()]
            cells = list(map(number, means))
            rows.append((heading(key), *cells))
            best = set() if self.obstacle else ranked_rows(cells, direction(key))[0]
            bold |= {(row, 1 + column) for column in best}
        return Grid(("metric", *self.methods), tuple(rows), n_text=1, bold=frozenset(bold))

    @cached_property
    def forest(self) -> list[ForestPanel]:
        """The panels of differences to the best method."""
        return forest_panels([key for key in self.keys if key != _BIAS], self.methods, self.differences)

    @cached_property
    def headline(self) -> str:
        """Which method is the best, and which metrics prefer another."""
        return headline(self.dataset, self.keys, self.methods, self.differences)

    @property
    def undefined(self) -> str:
        """On how many images metrics are undefined; those of objects have a section of their own."""
        counts = [(self.dataset, m, e.defined, e.images.height) for m, e in self.evaluations.items()]
        keys = [key for key in self.known if METRICS[key].family.kind != "objects"]
        return "; ".join(undefined_notes(counts, keys))


def _main_keys(known: Sequence[str]) -> tuple[str, ...]:
    """The columns that 'sisod evaluate' prints; the others are in the table of all metrics.

    Of its second table, of objects, which is a section of its own, only the false objects.
    """
    if len(known) <= _MOST_COLUMNS:  # chosen by the user
        return tuple(known)
    first = shown_keys(known, chosen=False)[0][:_MOST_COLUMNS]
    # whoever adds a metric wants to see it
    more = (key for key in known if key == "false_objects" or is_custom(key))
    return tuple(dict.fromkeys((*first, *more)))


def _column(key: str, heading: str) -> Column:
    if key in _COUNTS:
        return Column(key, heading, _COUNTS[key][0])
    if key == _BIAS:
        return Column(key, heading, "none")
    return Column(key, heading, direction(key), title(key))


def _column_groups(keys: Sequence[str]) -> dict[str, list[Column]]:
    """Both forms of a metric under its title, then scores of objects."""
    groups: dict[str, list[Column]] = {}
    objects = ["found"]  # the same as object_recall, and known for every result
    for key in keys:
        if needs_predicted(key):
            objects += [key] if key != "object_recall" else []
        else:
            column = _column(key, "SI" if METRICS[key].size_invariant else "plain")
            groups.setdefault(column.title.removeprefix("SI-"), []).append(column)
    names = {"found": "found", "false_objects": "false", "object_precision": "precision"}
    columns = [_column(key, names.get(key, title(key).removeprefix("Object "))) for key in objects]
    return groups | {"Objects": [*columns, _column(_BIAS, "size bias")]}
