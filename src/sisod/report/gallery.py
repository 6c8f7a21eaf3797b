"""All figures of saved results by name, written to files."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sisod.analysis.scores import OBJECT_SCORES
from sisod.common.arguments import check_known
from sisod.common.exceptions import InputError, MissingExtraError, UsageError, shorten_list
from sisod.common.output import lock, readable_errors, resolve_link, write_files
from sisod.common.streams import progress_bar
from sisod.data.storage import is_local_root
from sisod.report.drawing import groups
from sisod.report.drawing.curves import CURVES, curve_figure, object_figure
from sisod.report.drawing.examples import example_figure
from sisod.report.drawing.studies import ablation_figure
from sisod.report.error_breakdown import error_figure, error_size_figure
from sisod.report.missing import missing_curves
from sisod.report.style import FigureRequest as FigureRequest
from sisod.report.style import check_plot_path, figure_bytes, save_figure
from sisod.scoring.metrics import METRICS, check_metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# name -> what draws the figure
FIGURES: "dict[str, Callable[[FigureRequest], Figure]]" = {
    **{kind: partial(curve_figure, kind=kind) for kind in CURVES},
    "size": partial(groups.size_figure, groups="paper"),
    "size-log": partial(groups.size_figure, groups="log"),
    "size-quantile": partial(groups.size_figure, groups="quantile"),
    "number": groups.number_figure,
    "objects": object_figure,
    "false-objects": groups.false_object_figure,
    "errors": error_figure,
    "errors-size": error_size_figure,
    "ablation": ablation_figure,
    "examples": example_figure,
}
# figures with a choice of metrics -> whether they can show one; the others show all that they can
CAN_SHOW: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("size", "size-log", "size-quantile"), groups.object_score),
    "number": groups.has_groups,
    "examples": lambda key: key != "found" and groups.object_score(key),
    "ablation": lambda _: True,  # its own metrics, which it checks
}


def draw(name: str, request: FigureRequest) -> "Figure":
    """Draw a figure of `FIGURES`.

    Args:
        name: of the figure, such as `"size-log"`.
        request: its inputs.

    Raises:
        UsageError: for an unknown name, or metrics that the figure cannot show.
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
    metrics = tuple(dict.fromkeys(map(groups.score_key, request.metrics)))
    for key in metrics:
        if key not in OBJECT_SCORES:
            check_metric(key, METRICS)
    check_plot_path(Path(f"x.{kind}"))
    drawn: dict[str, bytes] = {}
    missing: list[str] = []
    incomplete: list[str] = []
    names = [name for name in FIGURES if name != "ablation" or request.ablation is not None]
    with progress_bar("drawing figures", len(names)) as advance:
        for name in names:
            file = f"{name}.{kind}"
            choice = metrics if name in CAN_SHOW and name != "ablation" else ()
            keys = [key for key in choice if CAN_SHOW[name](key)][: 1 if name == "examples" else None]
            lacking = [key for key in choice if key not in keys]
            try:
                if lacking and not keys and name != "examples":
                    raise InputError(f"it cannot show {shorten_list(lacking)}")
                drawn[file] = figure_bytes(draw(name, replace(request, metrics=keys)), kind)
                incomplete += _missing_curves(file, name, request)
                incomplete += [f"{file} does not show {shorten_list(lacking)}"] if lacking else []
            except (UsageError, MissingExtraError):
                raise
            except InputError as error:  # files are missing, or a metric was not evaluated
                missing.append(f"{file} is not drawn: {error}")
            advance(1)
    target = resolve_link(folder)
    with readable_errors(target / "x", "make room there or choose another folder"), lock(target):
        target.mkdir(parents=True, exist_ok=True)
        write_files(target, drawn)
    return [folder / name for name in drawn], missing + incomplete


def image_folders(arguments: Sequence[str], datasets: Sequence[str]) -> dict[str, Path]:
    """Return data set -> folder of photographs, from the arguments of `--images`.

    Args:
        arguments: each DATASET=DIR, or only DIR if there is one data set.
        datasets: names of the data sets.

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
