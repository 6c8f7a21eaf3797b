"""All figures of saved results by name, written to files, and those of a single result in a notebook."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from sisod.analysis.scores import title
from sisod.common.arguments import check_known
from sisod.common.exceptions import InputError, MissingExtraError, UsageError, pluralize
from sisod.common.output import lock, readable_errors, resolve_link, write_files
from sisod.common.streams import progress_bar
from sisod.data.storage import is_local_root
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.report import style
from sisod.report.drawing import groups
from sisod.report.drawing.curves import (
    CURVES,
    FORMS,
    curve_figure,
    curve_points,
    finish_curves,
    object_figure,
)
from sisod.report.drawing.examples import example_figure
from sisod.report.error_breakdown import error_figure
from sisod.report.missing import missing_curves
from sisod.report.style import FigureRequest as FigureRequest
from sisod.report.style import check_plot_path, figure_bytes, save_figure

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
    "examples": example_figure,
}
# figures with a choice of metrics; the others show all that they can
_CHOOSING = ("examples", "number", "size", "size-log", "size-quantile")


def draw(name: str, request: FigureRequest) -> "Figure":
    """Draw a figure of `FIGURES`.

    Args:
        name: of the figure, such as `"size-log"`.
        request: its inputs.

    Raises:
        UsageError: for an unknown name, or metrics that the figure cannot show.
    """
    check_known("figure", name, FIGURES)
    if request.metrics and name not in _CHOOSING:
        raise UsageError(
            f"the figure {name!r} has no choice of metrics; those with one are {', '.join(_CHOOSING)}"
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

    All are drawn before the first is written, so that a folder holds figures of the same results.

    Args:
        folder: made if it does not exist.
        kind: the format, `"pdf"`, `"png"` or `"svg"`.
        request: the inputs of all figures, without metrics, which each figure chooses itself.

    Returns:
        The files, and what is missing, a sentence each.
    """
    if request.metrics:
        raise UsageError("a metric is chosen for one figure; name it with --figure")
    check_plot_path(Path(f"x.{kind}"))
    _ = request.chosen  # an unknown method is an error, not a figure that is not drawn
    drawn: dict[str, bytes] = {}
    notes: list[str] = []
    with progress_bar("drawing figures", len(FIGURES)) as advance:
        for name in FIGURES:
            file = f"{name}.{kind}"
            try:
                drawn[file] = figure_bytes(draw(name, request), kind)
                notes += _missing_curves(file, name, request)
            except (UsageError, MissingExtraError):
                raise
            except InputError as error:  # files are missing, or a metric was not evaluated
                notes.append(f"{file} is not drawn: {error}")
            advance(1)
    return write_folder(folder, drawn), notes


def write_folder(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, which is made if it does not exist; return their paths.

    Args:
        folder: may be a link to one.
        contents: name of a file -> its bytes.
    """
    target = resolve_link(folder)
    with readable_errors(target / "x", "make room there or choose another folder"), lock(target):
        target.mkdir(parents=True, exist_ok=True)
        write_files(target, contents)
    return [folder / name for name in contents]


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
        if not equals or name not in datasets:
            if len(datasets) > 1:
                raise UsageError(
                    f"--images {argument!r} names no data set; expected DATASET=DIR with one of "
                    + ", ".join(datasets)
                )
            name, folder = datasets[0], argument
        if not is_local_root(Path(folder)):
            raise InputError(f"{folder!r} is not a folder; expected the images of a data set")
        folders[name] = Path(folder)
    return folders


def evaluation_figure(
    evaluation: Evaluation,
    name: str | None = None,
    *,
    metrics: Sequence[str] = (),
    width: style.Width = "double",
) -> "Figure":
    """Draw a figure of the gallery for one result, or by default an overview.

    Args:
        evaluation: the result.
        name: of a figure of `sisod plot`; None for F and PR curves, MAE by size and SI-MAE by number, or
            with metrics, for these by size.
        metrics: scores to draw, for figures of scores.
        width: of the figure.
    """
    if name is None and not metrics:
        return _overview(evaluation, width)
    predictions = evaluation.run.get("inputs", {}).get("predictions")
    method = PurePath(predictions).name if predictions else "this method"
    result = Result(pluralize(evaluation.images.height, "image"), method, evaluation)
    return draw(name or "size-log", FigureRequest([result], metrics=metrics, width=width))


def _overview(evaluation: Evaluation, width: style.Width) -> "Figure":
    """F and PR curves in both forms, MAE of objects by size and SI-MAE by number."""
    looks = style.line_styles(FORMS.values())
    columns = 1 if width == "single" else 2
    with style.new_panels([1.6] * (4 // columns), columns, width) as (figure, panels):
        f, pr, size, number = panels.flat
        for axes, kind in ((f, "f"), (pr, "pr")):
            for prefix, label in FORMS.items():
                look = replace(looks[label], marker="")
                axes.plot(*curve_points(evaluation, kind, prefix), **look.options())
            finish_curves(axes, [evaluation], kind)
        sizes = groups.GroupScores.by_size("log", evaluation, "object_mae")
        groups.draw_groups(size, {"": (sizes, looks["plain"])}, style.inches(width) / columns)
        size.set(xlabel="size of an object (% of the image)", ylabel=title("object_mae"))
        if "si_mae" in evaluation.images.columns:
            numbers = groups.GroupScores.by_number(evaluation, "si_mae")
            shown = {"": (numbers, looks["size-invariant"])}
            groups.draw_groups(number, shown, style.inches(width) / columns)
        else:
            style.annotate_empty_axes(number, "si_mae was not evaluated")
        number.set(xlabel="objects in an image", ylabel="SI-MAE")
        style.add_legend(figure, looks)
    return figure
