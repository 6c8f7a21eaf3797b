"""Render the page: tables, charts and pictures in one HTML file."""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from sisod.analysis.ablation import AblationRow, read_ablation
from sisod.analysis.comparison import RESAMPLES
from sisod.common.errors import InputError, UsageError, require
from sisod.common.grid import best_rows, number
from sisod.common.output import write_output
from sisod.common.progress import progress_bar
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.paper.against import AgainstPaper
from sisod.paper.against import against_paper as against_paper_row
from sisod.report.objects import missing_notes
from sisod.report.page.charts import MEASURES, chart_data
from sisod.report.page.differences import pair_verdicts, pairs_grid
from sisod.report.page.errors import error_classes, error_css, error_section
from sisod.report.page.failures import failure_data
from sisod.report.page.objects import object_table
from sisod.report.page.scores import ScoreTable, score_table
from sisod.scoring.metrics import METRICS

TITLE = "Size-invariant evaluation"


# The template reads attributes of dataclasses: in a dict, jinja2 would find the methods (clear, items)
# before the keys.
@dataclass(frozen=True)
class AblationCell:
    """The score of one loss by one metric, as printed, and its number of seeds."""

    mean: str
    deviation: str
    seeds: int
    best: bool


@dataclass(frozen=True)
class AblationTable:
    """Losses as rows; data sets, and their metrics, as columns.

    Attributes:
        datasets: names, each with its number of columns.
        columns: titles of the metrics.
        rows: losses, each with its cells.
    """

    datasets: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[AblationCell, ...]], ...]


def write_report(
    results: Sequence[Result],
    out: Path,
    *,
    image_roots: Mapping[str, Path] | None = None,
    ablation: Path | None = None,
    against_paper: bool = False,
    title: str = TITLE,
    resamples: int = RESAMPLES,
    fetch: bool = False,
) -> list[str]:
    """Write the page to a file; return warnings for the user.

    Args:
        results: saved results, from `sisod.evaluation.results.load_results`.
        out: the .html file.
        image_roots: data set -> folder of its photographs, for the browser of failures.
        ablation: the table of `sisod ablate`.
        against_paper: compare each result with the published row of the same data set and network.
        title: of the page.
        resamples: number of bootstrap resamples.
        fetch: whether to read maps from URLs too.
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{str(out)!r}: expected a name ending in .html")
    page, notes = render_report(
        results,
        image_roots=image_roots or {},
        ablation=ablation,
        against_paper=against_paper,
        title=title,
        resamples=resamples,
        fetch=fetch,
    )
    write_output(out, page.encode("utf-8"))
    return notes


def render_report(
    results: Sequence[Result],
    *,
    image_roots: Mapping[str, Path],
    ablation: Path | None,
    against_paper: bool,
    title: str,
    resamples: int,
    fetch: bool = False,
) -> tuple[str, list[str]]:
    """Return the page as text, and warnings for the user."""
    template = _template()  # before the work: a missing extra is refused here
    by_dataset = {
        name: [result for result in results if result.dataset == name] for name in datasets_of(results)
    }
    tables: list[ScoreTable] = []
    with progress_bar("intervals", len(by_dataset)) as advance:
        for name, group in by_dataset.items():
            tables.append(score_table(name, group, resamples=resamples))
            advance(1)
    published, unmatched = compare_with_paper(results) if against_paper else ([], [])
    failures, notes = failure_data(results, image_roots, fetch=fetch)
    data = {
        "methods": methods_of(results),
        "datasets": list(by_dataset),
        "charts": {name: chart_data(group) for name, group in by_dataset.items()},
        "measures": MEASURES,
        "failures": failures,
    }
    script = _read_asset("page.js") + _read_asset("failures.js")
    page: str = template.render(
        title=title,
        tables=tables,
        pairs={t.dataset: pairs_grid(t.comparison) for t in tables if t.comparison is not None},
        verdicts={t.dataset: pair_verdicts(t.comparison) for t in tables if t.comparison is not None},
        object_tables=[
            object_table(t.dataset, by_dataset[t.dataset], t.intervals, t.differences, ranked=t.ranked)
            for t in tables
        ],
        error_classes=error_classes(),
        error_sections=[error_section(name, group) for name, group in by_dataset.items()],
        curve_notes=missing_notes([r for r in results if r.evaluation.counts is not None], curves=True),
        headlines=[table.headline for table in tables if table.headline],
        ablation=_ablation(read_ablation(ablation)) if ablation is not None else None,
        against_paper=against_paper,
        published=published,
        unmatched=unmatched,
        data=safe_json(data),
        n_failures=len(failures["items"]),
        image_score=failures["image_score"]["title"],
        picture_notes=notes,
        n_pictures=sum(bool(item["pictures"]) for item in failures["items"]),
        facts=_facts(results, tables),
        resamples=resamples,
        style="".join(map(_read_asset, ("page.css", "failures.css", "errors.css"))) + error_css(),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    )
    return page, [*unmatched, *notes]


def compare_with_paper(results: Sequence[Result]) -> tuple[list[tuple[Result, AgainstPaper]], list[str]]:
    """Compare results with the published rows of the same name; return also why some have none."""
    compared, unmatched = [], []
    for result in results:
        name = f"{result.dataset}/{result.method}"
        try:
            compared.append((result, against_paper_row(result.evaluation, name)))
        except InputError as error:
            unmatched.append(f"{name} is not compared with the paper: {error}")
    return compared, unmatched


def safe_json(data: Any) -> str:
    r"""Return JSON for a script element: nothing in it can end the element.

    Example:
        >>> print(safe_json({"name": "</script>"}))
        {"name":"\u003c/script>"}
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _facts(results: Sequence[Result], tables: Sequence[ScoreTable]) -> list[str]:
    from sisod.common.version import __version__

    protocols = dict.fromkeys(result.evaluation.protocol.name for result in results)
    return [
        _plural(len(methods_of(results)), "method"),
        _plural(len(tables), "data set"),
        _plural(sum(table.images for table in tables), "image"),
        _plural(sum(table.objects for table in tables), "object"),
        f"protocol {', '.join(protocols)}",
        f"sisod {__version__}",
    ]


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _ablation(rows: Sequence[AblationRow]) -> AblationTable:
    losses = list(dict.fromkeys(row.loss for row in rows))
    columns = list(dict.fromkeys((row.dataset, row.metric) for row in rows))
    cells = {(row.loss, row.dataset, row.metric): row for row in rows}
    best: set[AblationRow] = set()
    for column in columns:
        compared = [row for row in rows if (row.dataset, row.metric) == column]
        means = [number(row.mean) for row in compared]
        best |= {compared[index] for index in best_rows(means, METRICS[column[1]].better)}
    return AblationTable(
        datasets=tuple(Counter(dataset for dataset, _ in columns).items()),
        columns=tuple(METRICS[metric].title for _, metric in columns),
        rows=tuple(
            (loss, tuple(_ablation_cell(cells.get((loss, *c)), best) for c in columns))
            for loss in losses
        ),
    )


def _ablation_cell(row: AblationRow | None, best: set[AblationRow]) -> AblationCell:
    if row is None:
        return AblationCell("-", "-", 0, best=False)
    return AblationCell(number(row.mean), number(row.deviation), len(row.values), best=row in best)


def _template() -> Any:
    require("the report", "jinja2")
    import jinja2

    def check_printable(value: Any) -> Any:
        if not isinstance(value, str | int | float | jinja2.Undefined):  # the last raises its own error
            raise TypeError(f"page.html prints {value!r}; expected text or a number")
        return value

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=check_printable,
        loader=jinja2.FunctionLoader(_read_asset),
    )
    return environment.get_template("page.html")


def _read_asset(name: str) -> str:
    return files("sisod.report.page").joinpath(name).read_text(encoding="utf-8")
