"""What a paper needs of results, in one folder: table, figures, a paragraph and references."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sisod.analysis.bootstrap import RESAMPLES
from sisod.analysis.comparison import Comparison, compare_many
from sisod.analysis.scores import direction, title
from sisod.analysis.seeds import group_seeds
from sisod.common.exceptions import InputError, pluralize
from sisod.common.grid import latex_text, number
from sisod.common.version import __version__
from sisod.evaluation.results import Result, datasets_of
from sisod.report.differences import Difference, read_differences
from sisod.report.drawing.forest import comparison_figure
from sisod.report.gallery import draw, write_folder
from sisod.report.style import FigureRequest, figure_bytes
from sisod.report.summary import SummaryRow, choose_tables, merge_seeds, render

_SENTENCES = ("mae", "si_mae", "si_f_mean", "object_f1")  # metrics of the paragraph, if evaluated
_REFERENCES = """@inproceedings{li2024size,
  title     = {Size-invariance Matters: Rethinking Metrics and Losses for Imbalanced Multi-object
               Salient Object Detection},
  author    = {Li, Feiran and Xu, Qianqian and Bao, Shilong and Yang, Zhiyong and Cong, Runmin and
               Cao, Xiaochun and Huang, Qingming},
  booktitle = {International Conference on Machine Learning (ICML)},
  year      = {2024}
}

@software{sisod,
  title   = {sisod: metrics and losses that make segmentation fair to small objects},
  author  = {{The sisod developers}},
  version = {VERSION},
  license = {MIT}
}
"""


def write_manuscript(
    results: Sequence[Result],
    folder: Path,
    *,
    image_roots: Mapping[str, Path] | None = None,
    metrics: str | None = None,
    resamples: int = RESAMPLES,
    fetch: bool = False,
) -> tuple[list[Path], list[str]]:
    """Write a LaTeX table, figures, a paragraph with its numbers and tests, and the references.

    Args:
        results: saved results.
        folder: made if it does not exist.
        image_roots: data set -> folder of photographs, for the examples.
        metrics: of the table, as for `sisod table`.
        resamples: number of bootstrap resamples, and of permutations.
        fetch: whether to read maps from URLs too.

    Returns:
        The files, and what is missing, a sentence each.
    """
    rows = []
    for one in results:
        scores, protocol = (one.evaluation.summary, one.evaluation.defined), one.evaluation.protocol.name
        rows.append(SummaryRow(one.dataset, one.method, *scores, protocol))
    tables, notes = choose_tables(rows, metrics)
    files = {
        "table.tex": render(merge_seeds(rows), tables, "latex").encode() + b"\n",
        "references.bib": _REFERENCES.replace("VERSION", __version__).encode(),
    }
    paragraphs = []
    datasets = datasets_of(results)
    for dataset in datasets:
        methods = {r.method: r.evaluation for r in results if r.dataset == dataset}
        comparison = None
        if len(group_seeds(methods)) > 1:
            comparison = compare_many(methods, resamples=resamples)
            name = "forest.pdf" if len(datasets) == 1 else f"forest-{dataset}.pdf"
            files[name] = figure_bytes(comparison_figure(comparison), "pdf")
        first = next(iter(methods.values()))
        counts = [pluralize(first.images.height, "image"), pluralize(first.objects.height, "object")]
        protocol = latex_text(first.protocol.name)
        start = (
            f"On {latex_text(dataset)} ({', '.join(counts)}), methods are scored with sisod "
            rf"{__version__}~\citep{{sisod}} under its protocol \emph{{{protocol}}}; "
            r"size-invariant metrics give every object the same weight~\citep{li2024size}."
        )
        paragraphs.append(" ".join([start, *_sentences(comparison)]))
    files["paragraph.tex"] = ("\n\n".join(paragraphs) + "\n").encode()
    request = FigureRequest(results, image_roots or {}, fetch=fetch)
    for name, file in (("size-log", "size.pdf"), ("examples", "examples.pdf")):
        try:
            files[file] = figure_bytes(draw(name, request), "pdf")
        except InputError as error:
            notes.append(f"{file} is not drawn: {error}")
    return write_folder(folder, files), notes


def _sentences(comparison: Comparison | None) -> list[str]:
    """The best method by each metric, its interval, its lead over the second one, and the tests."""
    if comparison is None:
        return []
    differences = read_differences(comparison)
    sentences = []
    for key in _SENTENCES:
        table = comparison.intervals.filter(metric=key).drop_nans("value")
        rows = table.sort("value", descending=direction(key) == "up", maintain_order=True).to_dicts()
        if len(rows) > 1:
            first, second = rows[:2]
            sentences.append(_lead(first, second, differences[key, first["method"], second["method"]]))
    drawn = "images and seeds" if comparison.seeds else "images"
    return [
        *sentences,
        f"Intervals are those of a studentised bootstrap over {drawn} ({comparison.resamples} "
        "resamples), $p$ that of a two-sided permutation test of the difference, not corrected for the "
        "number of metrics and methods.",
    ]


def _lead(first: Mapping[str, Any], second: Mapping[str, Any], one: Difference) -> str:
    """A sentence on the best method and the second one by a metric."""
    names = [latex_text(row["method"]) for row in (first, second)]
    p = "$p < 0.0001$" if one.p < 0.0001 else f"$p = {one.p:.4f}$"
    gap, low, high = map(number, one.advantage)
    told = f"a difference of {gap} ({low} to {high}, {p})"
    if one.verdict == "undecided":
        told = f"a difference of {gap} that is not significant ({p})"
    return (
        f"By {latex_text(title(one.metric))}, {names[0]} is best with {number(first['value'])} "
        rf"(95\,\% interval {number(first['low'])} to {number(first['high'])}), "
        f"followed by {names[1]} with {number(second['value'])}, {told}."
    )
