"""All figures of saved results by name, written to files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sisod.common.arguments import check_known
from sisod.common.errors import InputError, MissingExtraError, UsageError
from sisod.common.output import followed, lock, readable_errors, write_files
from sisod.evaluation.results import Result
from sisod.report.style import check_plot_path, figure_bytes, save_figure

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
    """

    results: Sequence[Result]
    image_roots: Mapping[str, Path] = field(default_factory=dict)
    ablation: Path | None = None
    examples: Sequence[str] = ()
    fetch: bool = False


def draw(name: str, request: FigureRequest) -> "Figure":
    """Draw a figure."""
    functions = _figure_functions()
    check_known("figure", name, functions)
    return functions[name](request)


def figure_names() -> tuple[str, ...]:
    """Return the names of all figures."""
    return tuple(_figure_functions())


def _figure_functions() -> "dict[str, Callable[[FigureRequest], Figure]]":
    from sisod.report import figures, objects

    return {
        "pr": lambda r: figures.curve_figure(r.results, "pr"),
        "roc": lambda r: figures.curve_figure(r.results, "roc"),
        "f": lambda r: figures.curve_figure(r.results, "f"),
        "iou": lambda r: figures.curve_figure(r.results, "iou"),
        "size": lambda r: figures.size_figure(r.results, "paper"),
        "size-log": lambda r: figures.size_figure(r.results, "log"),
        "size-quantile": lambda r: figures.size_figure(r.results, "quantile"),
        "number": lambda r: figures.number_figure(r.results),
        "objects": lambda r: objects.object_figure(r.results),
        "false-objects": lambda r: objects.false_object_figure(r.results),
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
    return ablation_figure(read_ablation(request.ablation))


def _examples(request: FigureRequest) -> "Figure":
    from sisod.report.examples import example_figure

    return example_figure(
        request.results,
        image_roots=request.image_roots,
        names=request.examples,
        fetch=request.fetch,
    )


def write_figure(path: Path, name: str, request: FigureRequest) -> None:
    """Draw a figure to a file."""
    check_plot_path(path)
    save_figure(draw(name, request), path)


def write_figures(folder: Path, kind: str, request: FigureRequest) -> tuple[list[Path], list[str]]:
    """Draw all possible figures into a folder; return the files, and why others are missing.

    All are drawn before the first is written, so that a folder holds figures of the same results.
    """
    drawn: dict[str, bytes] = {}
    missing = []
    for name in figure_names():
        if name == "ablation" and request.ablation is None:
            continue
        check_plot_path(Path(f"{name}.{kind}"))
        try:
            drawn[f"{name}.{kind}"] = figure_bytes(draw(name, request), kind)
        except (UsageError, MissingExtraError):
            raise
        except InputError as error:  # files are missing, or a metric was not evaluated
            missing.append(f"{name}.{kind} is not drawn: {error}")
    target = followed(folder)
    with readable_errors(target / "x", "make room there or choose another folder"), lock(target):
        target.mkdir(parents=True, exist_ok=True)
        write_files(target, drawn)
    return [folder / name for name in drawn], missing


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
        if not root.is_dir():
            raise InputError(f"{str(root)!r} is not a folder; expected the images of a data set")
    return folders
