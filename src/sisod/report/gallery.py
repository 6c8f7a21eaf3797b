"""All figures of saved results by name, written to files."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sisod.common.arguments import check_known
from sisod.common.errors import InputError, MissingExtraError, UsageError, shorten_list
from sisod.common.output import followed, lock, readable_errors, write_files
from sisod.common.progress import progress_bar
from sisod.data.storage import is_local_root
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.style import Width, check_plot_path, figure_bytes, inches, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sisod.analysis.groups import SizeKind

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
    """Draw a figure."""
    functions = _figure_functions()
    check_known("figure", name, functions)
    inches(request.width)
    if request.metrics and name not in METRIC_FIGURES:
        raise UsageError(
            f"the figure {name!r} has no choice of metrics; those with one are "
            + ", ".join(sorted(METRIC_FIGURES))
        )
    chosen = choose_methods(request.results, request.methods)
    return functions[name](dataclasses.replace(request, results=chosen))


def choose_methods(results: Sequence[Result], methods: Sequence[str]) -> list[Result]:
    """Return the results of some methods in the order of their names, of all if none are named."""
    if not methods:
        return list(results)
    known = methods_of(results)
    for method in methods:
        check_known("method", method, known)
    return [
        result
        for dataset in datasets_of(results)
        for method in dict.fromkeys(methods)
        for result in results
        if (result.dataset, result.method) == (dataset, method)
    ]


def figure_names() -> tuple[str, ...]:
    """Return the names of all figures."""
    return tuple(_figure_functions())


def _figure_functions() -> "dict[str, Callable[[FigureRequest], Figure]]":
    from sisod.report import errors, figures, objects
    from sisod.report.drawing import group_figures

    def by_size(groups: "SizeKind") -> "Callable[[FigureRequest], Figure]":
        return lambda r: group_figures.size_figure(r.results, groups, metrics=r.metrics, width=r.width)

    return {
        "pr": lambda r: figures.curve_figure(r.results, "pr", width=r.width),
        "roc": lambda r: figures.curve_figure(r.results, "roc", width=r.width),
        "f": lambda r: figures.curve_figure(r.results, "f", width=r.width),
        "iou": lambda r: figures.curve_figure(r.results, "iou", width=r.width),
        "size": by_size("paper"),
        "size-log": by_size("log"),
        "size-quantile": by_size("quantile"),
        "number": lambda r: group_figures.number_figure(r.results, metrics=r.metrics, width=r.width),
        "objects": lambda r: objects.object_figure(r.results, width=r.width),
        "false-objects": lambda r: objects.false_object_figure(r.results, width=r.width),
        "errors": lambda r: errors.error_figure(r.results, width=r.width),
        "errors-size": lambda r: errors.error_size_figure(r.results, width=r.width),
        "ablation": _ablation,
        "examples": _examples,
    }


def _ablation(request: FigureRequest) -> "Figure":
    from sisod.analysis.ablation import read_ablation
    from sisod.report.ablation import ablation_figure

    if request.ablation is None:
        raise UsageError(
            "the figure 'ablation' needs the table of 'sisod ablate'; pass it with --ablation"
        )
    rows = read_ablation(request.ablation)
    return ablation_figure(rows, metrics=request.metrics, width=request.width)


def _examples(request: FigureRequest) -> "Figure":
    from sisod.report.examples import example_figure

    return example_figure(
        request.results,
        image_roots=request.image_roots,
        names=request.examples,
        fetch=request.fetch,
        metrics=request.metrics,
        width=request.width,
    )


def write_figure(path: Path, name: str, request: FigureRequest) -> list[str]:
    """Draw a figure to a file; return what is missing in it."""
    check_plot_path(path)
    save_figure(draw(name, request), path)
    return _missing_parts(path.name, name, request)


def _missing_parts(file: str, name: str, request: FigureRequest) -> list[str]:
    """Say which curves a figure lacks; the figure says so too."""
    from sisod.report.figures import CURVES, missing_curves

    if name not in CURVES:
        return []
    chosen = choose_methods(request.results, request.methods)
    return [f"{file} is incomplete: {note}" for note in missing_curves(chosen, name)]


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
                own = _with_own_metrics(name, request)
                drawn[file] = figure_bytes(draw(name, own), kind)
                incomplete += _missing_parts(file, name, request)
                left_out = tuple(key for key in request.metrics if key not in own.metrics)
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
    target = followed(folder)
    with readable_errors(target / "x", "make room there or choose another folder"), lock(target):
        target.mkdir(parents=True, exist_ok=True)
        write_files(target, drawn)
    return [folder / name for name in drawn], missing + incomplete


def find_scores(names: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of scores; refuse one that no figure can show."""
    from sisod.analysis.bootstrap import OBJECT_SCORES
    from sisod.report.drawing.group_scores import score_key
    from sisod.scoring.metrics import METRICS, check_metric

    keys = tuple(dict.fromkeys(map(score_key, names)))
    for key in keys:
        if key not in OBJECT_SCORES:
            check_metric(key, METRICS)
    return keys


def _with_own_metrics(name: str, request: FigureRequest) -> FigureRequest:
    """The request with those metrics that a figure can show."""
    from sisod.report.drawing.group_scores import has_groups, object_score

    if name not in METRIC_FIGURES or name == "ablation":
        return dataclasses.replace(request, metrics=())
    shows = has_groups if name == "number" else object_score
    keys = [key for key in request.metrics if shows(key)]
    if name == "examples":
        keys = [key for key in keys if key != "found"][:1]
    elif request.metrics and not keys:
        raise InputError(f"it cannot show {shorten_list(list(request.metrics))}")
    return dataclasses.replace(request, metrics=keys)


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
