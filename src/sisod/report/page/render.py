"""Render the page: tables, charts and pictures in one HTML file."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from sisod.analysis.bootstrap import RESAMPLES
from sisod.analysis.error_breakdown import CLASS_TITLES
from sisod.analysis.seeds import group_seeds
from sisod.common.exceptions import InputError, UsageError, require
from sisod.common.output import write_output
from sisod.common.streams import progress_bar
from sisod.common.version import __version__
from sisod.evaluation.results import Result, check_photographs, datasets_of, methods_of
from sisod.paper import AgainstPaper
from sisod.paper import against_paper as against_paper_row
from sisod.report.error_breakdown import CLASS_STYLES, error_section
from sisod.report.missing import missing_objects
from sisod.report.page.charts import MEASURES, chart_data
from sisod.report.page.failures import failure_data
from sisod.report.page.scores import DatasetScores
from sisod.report.style import shorten

TITLE = "Size-invariant evaluation"


def write_report(
    results: Sequence[Result],
    out: Path,
    *,
    image_roots: Mapping[str, Path] | None = None,
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
        against_paper: compare each result with the published row of the same data set and network.
        title: of the page.
        resamples: number of bootstrap resamples.
        fetch: whether to read maps from URLs too.
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{str(out)!r}: expected a name ending in .html")
    template = _template()  # before the work: a missing extra is named here
    check_photographs(results, image_roots or {})
    by_dataset = {
        name: [result for result in results if result.dataset == name] for name in datasets_of(results)
    }
    tables: list[DatasetScores] = []
    with progress_bar("intervals", len(by_dataset)) as advance:
        for name, group in by_dataset.items():
            tables.append(DatasetScores(name, group, resamples=resamples))
            advance(1)
    published, unmatched = compare_with_paper(results) if against_paper else ([], [])
    failures, notes = failure_data(results, image_roots or {}, fetch=fetch)
    runs = group_seeds(methods_of(results))
    data: dict[str, Any] = {
        "methods": list(runs),
        "runs": {run: method for method, members in runs.items() for run in members},
        "datasets": list(by_dataset),
        "charts": {name: chart_data(group) for name, group in by_dataset.items()},
        "measures": MEASURES,
        "errors": CLASS_TITLES,
        "failures": failures,
    }
    script = _read_asset("page.js") + _read_asset("failures.js")
    page: str = template.render(
        title=title,
        tables=tables,
        shorten=shorten,
        missing_objects=missing_objects,
        counted=[result for result in results if result.evaluation.counts is not None],
        error_classes=CLASS_TITLES,
        error_styles=CLASS_STYLES,
        runs=runs,
        seeds=len(data["runs"]) > len(runs),
        error_sections=[error_section(name, group) for name, group in by_dataset.items()],
        against_paper=against_paper,
        published=published,
        unmatched=unmatched,
        data=safe_json(data),
        failures=failures,
        picture_notes=notes,
        facts={
            "method": len(data["methods"]),
            "data set": len(tables),
            "image": sum(table.images for table in tables),
            "object": sum(table.n_objects for table in tables),
        },
        protocols=dict.fromkeys(result.evaluation.protocol.name for result in results),
        version=__version__,
        resamples=resamples,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    )
    write_output(out, page.encode("utf-8"))
    return [*unmatched, *notes]


def compare_with_paper(results: Sequence[Result]) -> tuple[list[tuple[Result, AgainstPaper]], list[str]]:
    """Compare results with the published rows of the same name.

    Args:
        results: saved results, of which those under the protocol `official` can have a row.

    Returns:
        Results with their comparison, and sentences on why others have none.
    """
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


def _template() -> Any:
    require("the report", "jinja2")
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_read_asset),
    )
    return environment.get_template("page.html")


def _read_asset(name: str) -> str:
    return files("sisod.report.page").joinpath(name).read_text(encoding="utf-8")
