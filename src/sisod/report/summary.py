"""Summaries as tables for people and programs: terminal, Markdown, LaTeX, CSV, JSON."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sisod.common.exceptions import InputError, UsageError, shorten_list
from sisod.common.grid import UNLIMITED, Format, Grid, csv_text, is_nan, json_text, number, ranked_rows
from sisod.scoring.metrics import (
    METRIC_SETS,
    METRICS,
    PAPER_KEYS,
    MetricChoice,
    arrow,
    check_metric,
    is_custom,
    listed_keys,
    named_set,
)

# the columns of the second table; the last four exist only under the protocol `infrared`
OBJECT_KEYS = (
    *("object_recall", "object_precision", "object_f1", "false_objects", "pq", "bsi_f_binary"),
    *("pd", "fa", "niou", "iou_total"),
)
Keys = tuple[str, ...]
_DIGITS = 4  # as in the paper's tables
_MOST_COLUMNS = 12  # of metrics, outside a terminal: more of them become rows


@dataclass(frozen=True)
class SummaryRow:
    """The scores of one method on one data set.

    Attributes:
        dataset, method: their names.
        summary: metric -> value over all images.
        defined: metric -> number of images on which it is defined.
        protocol: name of the conventions of scoring; methods are ranked if it is the same for all.
        seeds: number of runs whose mean the summary is, of a method named NAME@SEED.
        deviations: metric -> standard deviation over the seeds.
    """

    dataset: str
    method: str
    summary: dict[str, float]
    defined: dict[str, int]
    protocol: str = ""
    seeds: int = 1
    deviations: Mapping[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The method as tables show it, with the number of its seeds."""
        return self.method if self.seeds == 1 else f"{self.method} ({self.seeds} seeds)"


def merge_seeds(lines: Sequence[SummaryRow]) -> list[SummaryRow]:
    """Return one row for each method: of runs named NAME@SEED, mean and deviation over the seeds.

    Example:
        >>> rows = [SummaryRow("D", f"EDN@{seed}", {"mae": 0.1 * seed}, {"mae": 9}) for seed in (1, 2)]
        >>> (row,) = merge_seeds(rows)
        >>> row.method, round(row.summary["mae"], 3), round(row.deviations["mae"], 3)
        ('EDN', 0.15, 0.071)
    """
    if not any("@" in line.method for line in lines):
        return list(lines)
    from sisod.analysis.seeds import group_seeds, mean_and_deviation  # loads all of the analysis

    merged = []
    for dataset in dict.fromkeys(line.dataset for line in lines):
        members = {line.method: line for line in lines if line.dataset == dataset}
        for method, names in group_seeds(members).items():
            runs = [members[name] for name in names]
            if len(runs) == 1:
                merged.append(runs[0])
                continue
            keys = [key for key in runs[0].summary if all(key in run.summary for run in runs)]
            scores = {key: mean_and_deviation([run.summary[key] for run in runs]) for key in keys}
            row = replace(
                runs[0],
                method=method,
                summary={key: mean for key, (mean, _) in scores.items()},
                defined={key: min(run.defined[key] for run in runs) for key in keys},
                seeds=len(runs),
                deviations={key: deviation for key, (_, deviation) in scores.items()},
            )
            merged.append(row)
    return merged


@dataclass(frozen=True)
class TableStyle:
    """How a table looks; None is the default of a field.

    Attributes:
        group: what forms the groups of columns in LaTeX and the sections elsewhere; by default data
            sets.
        layout: whether metrics are columns or rows; by default columns, but rows in a terminal and in
            Markdown if the table would be too wide and has fewer columns that way.
        rank: 2 marks the best method and the second best, 1 the best, 0 none; by default 2.
        digits: after the decimal point; by default 4 for people, and all of them for programs.
    """

    group: Literal["dataset", "method"] | None = None
    layout: Literal["rows", "columns"] | None = None
    rank: int | None = None
    digits: int | None = None


DEFAULT = TableStyle()


def heading(key: str) -> str:
    """Return the title of a metric with the arrow of its better direction."""
    return f"{METRICS[key].title} {arrow(key)}".rstrip()


def shown_keys(keys: Sequence[str], *, chosen: bool) -> list[Keys]:
    """Return the metrics of each table to show.

    They are all keys, in one table, if the user chose them or if they are a named set; else those of the
    paper and the user's own, and in a second table those of objects, as far as they were evaluated; all
    keys if none of them was.

    Example:
        >>> shown_keys(["mae", "mse", "pq", "sq"], chosen=False)
        [('mae',), ('pq',)]
    """
    if chosen or named_set(keys):
        return [tuple(keys)]
    custom = [key for key in keys if is_custom(key)]
    first = (*PAPER_KEYS, *custom)
    tables = (tuple(key for key in table if key in keys) for table in (first, OBJECT_KEYS))
    return [table for table in tables if table] or [tuple(keys)]


def render(
    lines: Sequence[SummaryRow], tables: Sequence[Keys], kind: Format, style: TableStyle = DEFAULT
) -> str:
    """Return tables of the given metrics as text in one of the formats for documents and programs.

    CSV and JSON have one record for each line, with the metrics of all tables.
    """
    if kind == "md":
        return "\n\n".join(grid.markdown() for grid in make_grids(lines, tables, style))
    if kind == "latex":
        grids = [_latex_grid(_Cells(lines, keys, style), style) for keys in tables]
        keys = [key for table in tables for key in table]
        symbols = {heading(key): f"{METRICS[key].symbol} {arrow(key)}".rstrip() for key in keys}
        return "\n\n".join(replace(grid, symbols=symbols).latex() for grid in grids)
    for option in ("group", "layout", "rank"):
        if getattr(style, option) is not None:
            raise UsageError(
                f"--{option} is for tables that people read; {kind} has one record for each data set "
                "and method; leave it out"
            )
    keys = list(dict.fromkeys(key for table in tables for key in table))
    several = any(line.seeds > 1 for line in lines)
    records = []
    for line in lines:
        record: dict[str, Any] = {"dataset": line.dataset, "method": line.method}
        record |= {"seeds": line.seeds} if several else {}
        values = {key: _rounded(line.summary.get(key, math.nan), style.digits) for key in keys}
        if kind == "csv":
            spreads = {f"{key}_std": line.deviations.get(key, math.nan) for key in keys if several}
            records.append(record | values | spreads)
        else:
            metrics = {
                key: {"value": None if is_nan(value) else value, "images": line.defined[key]}
                | ({"deviation": line.deviations[key]} if key in line.deviations else {})
                for key, value in values.items()
                if key in line.summary
            }
            records.append(record | {"metrics": metrics})
    return csv_text(records) if kind == "csv" else json_text(records)


def make_grids(
    lines: Sequence[SummaryRow],
    tables: Sequence[Keys],
    style: TableStyle = DEFAULT,
    *,
    width: int = UNLIMITED,
) -> list[Grid]:
    """Return the grid of each table, with metrics as columns or as rows.

    Args:
        lines: the results.
        tables: the metrics of each table.
        style: whose `layout` decides, if it is given.
        width: of the terminal, in which metrics become rows only if all methods then fit beside each
            other; without one, as in a document, more than 12 metrics are too wide, and all tables look
            alike.
    """
    cells = [_Cells(lines, keys, style) for keys in tables]
    grids = []
    for table in cells:
        turned = style.layout == "rows"
        if style.layout is None and width != UNLIMITED:
            fewer = len(table.members) < len(table.keys)
            turned = fewer and not _column_grid(table).fits(width) and _row_grid(table).fits(width)
        elif style.layout is None:
            turned = len(table.members) < max(map(len, tables)) > _MOST_COLUMNS
        grids.append(_row_grid(table) if turned else _column_grid(table))
    return grids


class _Cells:
    """The printed numbers of one table, by group, member of the group, and metric.

    Groups are data sets and their members are methods, or the other way round. Methods are ranked on
    each data set, wherever they are in the table; not if they were scored under different protocols.
    """

    def __init__(self, lines: Sequence[SummaryRow], keys: Keys, style: TableStyle) -> None:
        digits = _DIGITS if style.digits is None else style.digits
        flip = style.group == "method"
        self.keys = keys
        self.titles = ("method", "data set") if flip else ("data set", "method")
        self.text: dict[tuple[str, str, str], str] = {}
        self.rank: dict[tuple[str, str, str], int] = {}
        for dataset in dict.fromkeys(line.dataset for line in lines):
            members = [line for line in lines if line.dataset == dataset]
            most = 2 if style.rank is None else style.rank
            if len({line.protocol for line in members}) > 1:
                most = 0
            methods = [line.label for line in members]
            names = [(method, dataset) if flip else (dataset, method) for method in methods]
            for key in keys:
                column = [number(line.summary.get(key, math.nan), digits=digits) for line in members]
                for name, line, text in zip(names, members, column, strict=True):
                    spread = number(line.deviations.get(key, math.nan), digits=digits)
                    self.text[(*name, key)] = text if spread == "-" else f"{text} ± {spread}"
                ranks = ranked_rows(column, METRICS[key].better, most=most)
                self.rank |= {
                    (*names[row], key): rank for rank, rows in enumerate(ranks, 1) for row in rows
                }
        first, second = ("label", "dataset") if flip else ("dataset", "label")
        self.groups = list(dict.fromkeys(getattr(line, first) for line in lines))
        self.members = list(dict.fromkeys(getattr(line, second) for line in lines))

    def grid(
        self,
        headings: Sequence[str],
        rows: Sequence[tuple[tuple[str, ...], Sequence[tuple[str, str, str]]]],
        *,
        sections: Sequence[int] = (),
        groups: Sequence[tuple[str, int]] = (),
    ) -> Grid:
        """Return the grid of rows, each given as its texts and the names of its numbers."""
        n_text = len(rows[0][0]) if rows else len(headings)
        marked: dict[int, set[tuple[int, int]]] = {0: set(), 1: set(), 2: set()}
        for index, (_, names) in enumerate(rows):
            for column, name in enumerate(names, start=n_text):
                marked[self.rank.get(name, 0)].add((index, column))
        return Grid(
            tuple(headings),
            tuple((*texts, *(self.text.get(name, "-") for name in names)) for texts, names in rows),
            n_text,
            bold=frozenset(marked[1]),
            underlined=frozenset(marked[2]),
            sections=frozenset(sections),
            groups=tuple(groups),
        )


def _column_grid(cells: _Cells) -> Grid:
    """A row for each result, a section for each group, a column for each metric."""
    key = cells.keys[0]
    pairs = [(g, m) for g in cells.groups for m in cells.members if (g, m, key) in cells.text]
    rows = [(pair, [(*pair, key) for key in cells.keys]) for pair in pairs]
    starts = [row for row in range(1, len(rows)) if pairs[row][0] != pairs[row - 1][0]]
    return cells.grid((*cells.titles, *map(heading, cells.keys)), rows, sections=starts)


def _row_grid(cells: _Cells) -> Grid:
    """A row for each metric, a section for each group, a column for each member."""
    rows = [
        ((group if key == cells.keys[0] else "", heading(key)), [(group, m, key) for m in cells.members])
        for group in cells.groups
        for key in cells.keys
    ]
    starts = range(len(cells.keys), len(rows), len(cells.keys))
    return cells.grid((cells.titles[0], "metric", *cells.members), rows, sections=starts)


def _latex_grid(cells: _Cells, style: TableStyle) -> Grid:
    """A row for each member; for each group, columns of the metrics under its name."""
    if style.layout == "rows":
        return _row_grid(cells)
    names = [(group, key) for group in cells.groups for key in cells.keys]
    rows = [((member,), [(group, member, key) for group, key in names]) for member in cells.members]
    groups = [(group, len(cells.keys)) for group in cells.groups]
    return cells.grid((cells.titles[1], *(heading(key) for _, key in names)), rows, groups=groups)


def choose_tables(lines: Sequence[SummaryRow], metrics: MetricChoice) -> tuple[list[Keys], list[str]]:
    """Return the metrics of each table of saved results, and notes for the reader.

    Args:
        lines: the results.
        metrics: None for those that `sisod evaluate` prints, `"all"` for those that every result has,
            a named set such as `"paper"`, or keys, which every result must have.
    """
    common = tuple(key for key in lines[0].summary if all(key in line.summary for line in lines))
    names = () if metrics is None else listed_keys(metrics)
    if names and names != ("all",):
        sets = {"all": common, **METRIC_SETS}
        keys = tuple(dict.fromkeys(key for name in names for key in sets.get(name, (name,))))
        for key in keys:
            check_metric(key, METRICS)
        from sisod.evaluation.results import require_metrics

        require_metrics([(line.dataset, line.method, line.summary) for line in lines], keys)
        return [keys], protocol_notes(line.protocol for line in lines)
    if not common:
        raise InputError("the results have no metric in common; name the folders of fewer results")
    chosen = metrics is not None
    union = list(dict.fromkeys(key for line in lines for key in line.summary))
    shown = shown_keys(common, chosen=chosen)
    left_out = [key for table in shown_keys(union, chosen=chosen) for key in table if key not in common]
    notes = protocol_notes(line.protocol for line in lines)
    if left_out:
        notes.append(
            f"{len(left_out)} metrics are left out because not every result has them "
            f"({shorten_list(left_out)}); name one with --metrics to see which results lack it"
        )
    return shown, notes


def protocol_notes(protocols: Iterable[str]) -> list[str]:
    """Say that results have different protocols, from their names."""
    names = list(dict.fromkeys(protocols))
    if len(names) == 1:
        return []
    return [
        f"the results have different protocols ({shorten_list(names)}), so numbers are not comparable"
    ]


def _rounded(value: float, digits: int | None) -> float:
    return value if digits is None or is_nan(value) else round(value, digits) + 0.0
