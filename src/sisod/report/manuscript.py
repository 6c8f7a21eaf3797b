"""What a paper needs of results, in one folder: table, figures, a paragraph and references."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sisod.analysis.bootstrap import RESAMPLES
from sisod.analysis.comparison import Comparison, compare_many
from sisod.analysis.scores import direction, title
from sisod.analysis.seeds import group_seeds
from sisod.common.exceptions import InputError, pluralize
from sisod.common.grid import latex_text, number
from sisod.common.output import lock, readable_errors, resolve_link, write_files
from sisod.common.version import __version__
from sisod.evaluation.results import Result, datasets_of
from sisod.report.drawing.forest import comparison_figure
from sisod.report.gallery import draw
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
    target = resolve_link(folder)
    with readable_errors(target / "x", "make room there or choose another folder"), lock(target):
        target.mkdir(parents=True, exist_ok=True)
        write_files(target, files)
    return [folder / name for name in files], notes


def _sentences(comparison: Comparison | None) -> list[str]:
    """The best method by each metric, its interval, its lead over the second one, and the tests."""
    if comparison is None:
        return []
    compared = set(comparison.table["metric"])
    values = {(row["metric"], row["method"]): row for row in comparison.intervals.iter_rows(named=True)}
    sentences = []
    for key in (key for key in _SENTENCES if key in compared):
        known = [m for m in comparison.methods if not math.isnan(values[key, m]["value"])]
        ordered = sorted(known, key=lambda m: values[key, m]["value"], reverse=direction(key) == "up")
        if len(ordered) > 1:
            first, second = ordered[:2]
            pair = next(
                row
                for row in comparison.table.filter(metric=key).iter_rows(named=True)
                if {row["a"], row["b"]} == {first, second}
            )
            sentences.append(_lead(key, values[key, first], values[key, second], pair))
    drawn = "images and seeds" if comparison.seeds else "images"
    return [
        *sentences,
        f"Intervals are those of a studentised bootstrap over {drawn} ({comparison.resamples} "
        "resamples), $p$ that of a two-sided permutation test of the difference, not corrected for the "
        "number of metrics and methods.",
    ]


def _lead(key: str, first: Mapping[str, Any], second: Mapping[str, Any], pair: Mapping[str, Any]) -> str:
    """A sentence on the best method and the second one by a metric."""
    interval = rf"95\,\% interval {number(first['low'])} to {number(first['high'])}"
    p = "$p < 0.0001$" if pair["p_mean"] < 0.0001 else f"$p = {pair['p_mean']:.4f}$"
    gap = number(abs(pair["difference"]))
    ends = (pair["low"], pair["high"])
    if (pair["a"] == first["method"]) != (direction(key) == "up"):  # seen from the better method
        ends = (-pair["high"], -pair["low"])
    told = f"a difference of {gap} ({number(ends[0])} to {number(ends[1])}, {p})"
    if pair["verdict"] == "undecided":
        told = f"a difference of {gap} that is not significant ({p})"
    names = [latex_text(row["method"]) for row in (first, second)]
    return (
        f"By {latex_text(title(key))}, {names[0]} is best with {number(first['value'])} ({interval}), "
        f"followed by {names[1]} with {number(second['value'])}, {told}."
    )
