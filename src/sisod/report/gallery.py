"""All figures of saved results by name, written to files."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sisod.analysis.scores import OBJECT_SCORES
from sisod.common.arguments import check_known
from sisod.common.exceptions import InputError, MissingExtraError, UsageError, shorten_list
from sisod.common.output import lock, readable_errors, resolve_link, write_files
from sisod.common.progress import progress_bar
from sisod.data.storage import is_local_root
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.style import Width, check_plot_path, figure_bytes, save_figure
from sisod.scoring.metrics import METRICS, check_metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# the others show all that they can show
METRIC_FIGURES = frozenset(["ablation", "examples", "number", "size", "size-log", "size-quantile"])


@dataclass(frozen=True, eq=False)
class FigureRequest:
    """The inputs of figures.

    Attributes:
        results: saved results.
        image_roots: data set -> folder of its photographs.
        ablation: the table of `sisod ablate`, or None.
        examples: names of images for the figure of examples; by default those on which methods differ
            most.
        fetch: whether to read maps from URLs too.
        metrics: keys of the scores to draw, for figures of scores; by default each figure's own.
        methods: which to draw, in this order; by default all.
        width: of the figures, that of a column or of the text of a two-column paper.
    """

    results: Sequence[Result]
    image_roots: Mapping[str, Path] = field(default_factory=dict)
    ablation: Path | None = None
    examples: Sequence[str] = ()
    fetch: bool = False
    metrics: Sequence[str] = ()
    methods: Sequence[str] = ()
    width: Width = "double"


def draw(name: str, request: FigureRequest) -> "Figure":
    """Draw a figure of `figure_names`."""
    functions = _figure_functions(request)
    check_known("figure", name, functions)
    if request.metrics and name not in METRIC_FIGURES:
        raise UsageError(
            f"the figure {name!r} has no choice of metrics; those with one are "
            + ", ".join(sorted(METRIC_FIGURES))
        )
    return functions[name](width=request.width)


def choose_methods(results: Sequence[Result], methods: Sequence[str]) -> list[Result]:
    """Return the results of some methods in the order of their names, of all if none are named."""
    if not methods:
        return list(results)
    for method in methods:
        check_known("method", method, methods_of(results))
    order = {(dataset, method): None for dataset in datasets_of(results) for method in methods}
    found = {(result.dataset, result.method): result for result in results}
    return [found[key] for key in order if key in found]


def figure_names() -> tuple[str, ...]:
    """Return the names of all figures."""
    return tuple(_figure_functions(FigureRequest(())))


def _figure_functions(request: FigureRequest) -> "dict[str, Callable[..., Figure]]":
    """Name -> function that draws the figure of a request, with a width."""
    from sisod.report.drawing import curves, error_bars, groups

    results = choose_methods(request.results, request.methods)
    return {
        **{kind: partial(curves.curve_figure, results, kind) for kind in curves.CURVES},
        "size": partial(groups.size_figure, results, "paper", metrics=request.metrics),
        "size-log": partial(groups.size_figure, results, "log", metrics=request.metrics),
        "size-quantile": partial(groups.size_figure, results, "quantile", metrics=request.metrics),
        "number": partial(groups.number_figure, results, metrics=request.metrics),
        "objects": partial(curves.object_figure, results),
        "false-objects": partial(groups.false_object_figure, results),
        "errors": partial(error_bars.error_figure, results),
        "errors-size": partial(error_bars.error_size_figure, results),
        "ablation": partial(_ablation, request),
        "examples": partial(_examples, request, results),
    }


def _ablation(request: FigureRequest, *, width: Width) -> "Figure":
    from sisod.analysis.ablation import read_ablation
    from sisod.report.drawing.ablation import ablation_figure

    if request.ablation is None:
        raise UsageError(
            "the figure 'ablation' needs the table of 'sisod ablate'; pass it with --ablation"
        )
    return ablation_figure(read_ablation(request.ablation), metrics=request.metrics, width=width)


def _examples(request: FigureRequest, results: Sequence[Result], *, width: Width) -> "Figure":
    from sisod.report.drawing.examples import example_figure

    return example_figure(
        results,
        image_roots=request.image_roots,
        names=request.examples,
        fetch=request.fetch,
        metrics=request.metrics,
        width=width,
    )


def write_figure(path: Path, name: str, request: FigureRequest) -> list[str]:
    """Draw a figure to a file; return what is missing in it."""
    check_plot_path(path)
    save_figure(draw(name, request), path)
    return _missing_parts(path.name, name, request)


def _missing_parts(file: str, name: str, request: FigureRequest) -> list[str]:
    """Say which curves a figure lacks; the figure says so too."""
    from sisod.report.drawing.curves import CURVES
    from sisod.report.missing import missing_curves

    if name not in CURVES:
        return []
    chosen = choose_methods(request.results, request.methods)
    return [f"{file} is incomplete: {note}" for note in missing_curves(chosen, CURVES[name][:2])]


def write_figures(folder: Path, kind: str, request: FigureRequest) -> tuple[list[Path], list[str]]:
    """Draw all possible figures into a folder; return the files, and what is missing.

    All are drawn before the first is written, so that a folder holds figures of the same results. Each
    figure shows those of the metrics that it can show; one that can show none is not drawn.
    """
    request = dataclasses.replace(request, metrics=find_scores(request.metrics))
    drawn: dict[str, bytes] = {}
    missing: list[str] = []
    incomplete: list[str] = []
    not_shown: dict[tuple[str, ...], list[str]] = {}  # metrics -> files without them
    names = [name for name in figure_names() if name != "ablation" or request.ablation is not None]
    with progress_bar("drawing figures", len(names)) as advance:
        for name in names:
            file = f"{name}.{kind}"
            check_plot_path(Path(file))
            try:
                keys = _own_metrics(name, request.metrics)
                figure = draw(name, dataclasses.replace(request, metrics=keys))
                drawn[file] = figure_bytes(figure, kind)
                incomplete += _missing_parts(file, name, request)
                left_out = tuple(key for key in request.metrics if key not in keys)
                if left_out and name in METRIC_FIGURES - {"ablation"}:  # which has its own
                    not_shown.setdefault(left_out, []).append(file)
            except (UsageError, MissingExtraError):
                raise
            except InputError as error:  # files are missing, or a metric was not evaluated
                missing.append(f"{file} is not drawn: {error}")
            advance(1)
    incomplete += [
        f"{', '.join(keys)} {'is' if len(keys) == 1 else 'are'} not drawn in {', '.join(files)}"
        for keys, files in not_shown.items()
    ]
    target = resolve_link(folder)
    with readable_errors(target / "x", "make room there or choose another folder"), lock(target):
        target.mkdir(parents=True, exist_ok=True)
        write_files(target, drawn)
    return [folder / name for name in drawn], missing + incomplete


def find_scores(names: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of scores; raise if no figure can show one."""
    from sisod.report.drawing.groups import score_key

    keys = tuple(dict.fromkeys(map(score_key, names)))
    for key in keys:
        if key not in OBJECT_SCORES:
            check_metric(key, METRICS)
    return keys


def _own_metrics(name: str, metrics: Sequence[str]) -> list[str]:
    """Those metrics that a figure can show; raise if it can show none of them."""
    from sisod.report.drawing.groups import has_groups, object_score

    if name not in METRIC_FIGURES or name == "ablation":
        return []
    keys = [key for key in metrics if (has_groups if name == "number" else object_score)(key)]
    if name == "examples":
        return [key for key in keys if key != "found"][:1]
    if metrics and not keys:
        raise InputError(f"it cannot show {shorten_list(list(metrics))}")
    return keys


def image_folders(arguments: Sequence[str], datasets: Sequence[str]) -> dict[str, Path]:
    """Return data set -> folder of photographs, from arguments DIR or DATASET=DIR.

    Example:
        >>> image_folders(["MSOD=."], ["MSOD", "ECSSD"]) == {"MSOD": Path(".")}
        True
    """
    folders = {}
    for argument in arguments:
        name, equals, folder = argument.partition("=")
        if equals and name in datasets:
            folders[name] = Path(folder)
        elif len(datasets) == 1:
            folders[datasets[0]] = Path(argument)
        else:
            raise UsageError(
                f"--images {argument!r} names no data set; expected DATASET=DIR with one of "
                + ", ".join(datasets)
            )
    for root in folders.values():
        if not is_local_root(root):
            raise InputError(f"{str(root)!r} is not a folder; expected the images of a data set")
    return folders
