"""All figures of saved results by name, written to files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sisod.analysis.ablation import read_ablation
from sisod.analysis.groups import SizeKind
from sisod.analysis.scores import OBJECT_SCORES
from sisod.common.arguments import check_known
from sisod.common.exceptions import InputError, MissingExtraError, UsageError, shorten_list
from sisod.common.output import lock, readable_errors, resolve_link, write_files
from sisod.common.progress import progress_bar
from sisod.data.storage import is_local_root
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.drawing.curves import CURVES, curve_figure, object_figure
from sisod.report.drawing.error_bars import error_figure, error_size_figure
from sisod.report.drawing.examples import example_figure
from sisod.report.drawing.groups import (
    false_object_figure,
    has_groups,
    number_figure,
    object_score,
    score_key,
    size_figure,
)
from sisod.report.drawing.studies import ablation_figure
from sisod.report.missing import missing_curves
from sisod.report.style import Width, check_plot_path, figure_bytes, save_figure
from sisod.scoring.metrics import METRICS, check_metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    @property
    def chosen(self) -> list[Result]:
        """The results of the chosen methods, in the order of their names."""
        if not self.methods:
            return list(self.results)
        for method in self.methods:
            check_known("method", method, methods_of(self.results))
        found = {(result.dataset, result.method): result for result in self.results}
        keys = [(name, method) for name in datasets_of(self.results) for method in self.methods]
        return [found[key] for key in keys if key in found]


def _ablation(request: FigureRequest) -> "Figure":
    if request.ablation is None:
        raise UsageError(
            "the figure 'ablation' needs the table of 'sisod ablate'; pass it with --ablation"
        )
    rows = read_ablation(request.ablation)
    return ablation_figure(rows, metrics=request.metrics, width=request.width)


def _examples(request: FigureRequest) -> "Figure":
    return example_figure(
        request.chosen,
        image_roots=request.image_roots,
        names=request.examples,
        fetch=request.fetch,
        metrics=request.metrics,
        width=request.width,
    )


def _sizes(groups: SizeKind) -> "Callable[[FigureRequest], Figure]":
    return lambda r: size_figure(r.chosen, groups, metrics=r.metrics, width=r.width)


# name -> what draws the figure
FIGURES: "dict[str, Callable[[FigureRequest], Figure]]" = {
    **{k: lambda r, kind=k: curve_figure(r.chosen, kind, width=r.width) for k in CURVES},  # type: ignore[misc]
    "size": _sizes("paper"),
    "size-log": _sizes("log"),
    "size-quantile": _sizes("quantile"),
    "number": lambda r: number_figure(r.chosen, metrics=r.metrics, width=r.width),
    "objects": lambda r: object_figure(r.chosen, width=r.width),
    "false-objects": lambda r: false_object_figure(r.chosen, width=r.width),
    "errors": lambda r: error_figure(r.chosen, width=r.width),
    "errors-size": lambda r: error_size_figure(r.chosen, width=r.width),
    "ablation": _ablation,
    "examples": _examples,
}
# figures with a choice of metrics -> whether they can show one; the others show all that they can
CAN_SHOW: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("size", "size-log", "size-quantile"), object_score),
    "number": has_groups,
    "examples": lambda key: key != "found" and object_score(key),
    "ablation": lambda _: True,  # its own metrics, which it checks
}


def draw(name: str, request: FigureRequest) -> "Figure":
    """Draw a figure of `FIGURES`.

    Args:
        name: of the figure, such as `"size-log"`.
        request: its inputs.
    """
    check_known("figure", name, FIGURES)
    if request.metrics and name not in CAN_SHOW:
        raise UsageError(
            f"the figure {name!r} has no choice of metrics; those with one are "
            + ", ".join(sorted(CAN_SHOW))
        )
    return FIGURES[name](request)


def write_figure(path: Path, name: str, request: FigureRequest) -> list[str]:
    """Draw a figure to a file.

    Args:
        path: the file, whose ending is its format.
        name: of the figure.
        request: its inputs.

    Returns:
        What is missing in the figure, a sentence each; the figure says so too.
    """
    check_plot_path(path)
    save_figure(draw(name, request), path)
    return _missing_curves(path.name, name, request)


def _missing_curves(file: str, name: str, request: FigureRequest) -> list[str]:
    notes = missing_curves(request.chosen, CURVES[name][:2]) if name in CURVES else []
    return [f"{file} is incomplete: {note}" for note in notes]


def write_figures(folder: Path, kind: str, request: FigureRequest) -> tuple[list[Path], list[str]]:
    """Draw all possible figures into a folder.

    All are drawn before the first is written, so that a folder holds figures of the same results. Each
    figure shows those of the metrics that it can show; one that can show none is not drawn.

    Args:
        folder: made if it does not exist.
        kind: the format, `"pdf"`, `"png"` or `"svg"`.
        request: the inputs of all figures.

    Returns:
        The files, and what is missing, a sentence each.
    """
    metrics = tuple(dict.fromkeys(map(score_key, request.metrics)))
    for key in metrics:
        if key not in OBJECT_SCORES:
            check_metric(key, METRICS)
    drawn: dict[str, bytes] = {}
    missing: list[str] = []
    incomplete: list[str] = []
    not_shown: dict[tuple[str, ...], list[str]] = {}  # metrics -> files without them
    names = [name for name in FIGURES if name != "ablation" or request.ablation is not None]
    with progress_bar("drawing figures", len(names)) as advance:
        for name in names:
            file = f"{name}.{kind}"
            check_plot_path(Path(file))
            chosen = name in CAN_SHOW and name != "ablation"
            keys = [key for key in metrics if chosen and CAN_SHOW[name](key)]
            try:
                if metrics and chosen and not keys and name != "examples":
                    raise InputError(f"it cannot show {shorten_list(list(metrics))}")
                own = replace(request, metrics=keys[:1] if name == "examples" else keys)
                drawn[file] = figure_bytes(draw(name, own), kind)
            except (UsageError, MissingExtraError):
                raise
            except InputError as error:  # files are missing, or a metric was not evaluated
                missing.append(f"{file} is not drawn: {error}")
            else:
                incomplete += _missing_curves(file, name, request)
                left_out = tuple(key for key in metrics if chosen and key not in own.metrics)
                if left_out:
                    not_shown.setdefault(left_out, []).append(file)
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
