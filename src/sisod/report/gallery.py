"""Every figure of saved results by name, drawn to files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sisod.common.arguments import unknown_name_message
from sisod.common.errors import InputError, MissingExtraError, UsageError
from sisod.common.output import followed, lock, readable_errors, write_files
from sisod.evaluation.results import Result
from sisod.report.style import check_plot_path, figure_bytes, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class FigureRequest:
    """What figures may be drawn from.

    Attributes:
        results: saved results.
        image_roots: data set -> folder of its photographs.
        ablation: the table of `sisod ablate`, or None.
        examples: images of the qualitative grid; by default those on which methods differ most.
        fetch: read also maps that a result names by URLs of other machines.
    """

    results: Sequence[Result]
    image_roots: Mapping[str, Path] = field(default_factory=dict)
    ablation: Path | None = None
    examples: Sequence[str] = ()
    fetch: bool = False


def draw(name: str, request: FigureRequest) -> "Figure":
    """Draw one figure."""
    makers = _makers()
    if name not in makers:
        raise UsageError(unknown_name_message("figure", name, makers))
    return makers[name](request)


def figure_names() -> tuple[str, ...]:
    """Return the names of all figures."""
    return tuple(_makers())


def _makers() -> "dict[str, Callable[[FigureRequest], Figure]]":
    from sisod.report import figures

    return {
        "pr": lambda r: figures.curve_figure(r.results, "pr"),
        "roc": lambda r: figures.curve_figure(r.results, "roc"),
        "f": lambda r: figures.curve_figure(r.results, "f"),
        "iou": lambda r: figures.curve_figure(r.results, "iou"),
        "size": lambda r: figures.size_figure(r.results, "paper"),
        "size-log": lambda r: figures.size_figure(r.results, "log"),
        "size-quantile": lambda r: figures.size_figure(r.results, "quantile"),
        "number": lambda r: figures.number_figure(r.results),
        "ablation": _ablation,
        "examples": _examples,
    }


def _ablation(request: FigureRequest) -> "Figure":
    from sisod.analysis.ablation import read_ablation
    from sisod.report.ablation import ablation_figure

    if request.ablation is None:
        raise UsageError(
            "the figure 'ablation' needs the table of 'sisod ablate'; give it by --ablation"
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
    """Draw one figure to a file."""
    check_plot_path(path)
    save_figure(draw(name, request), path)


def write_figures(folder: Path, kind: str, request: FigureRequest) -> tuple[list[Path], list[str]]:
    """Draw every figure that can be drawn into a folder; return the files, and why any is missing.

    Nothing is written before all are drawn: a folder holds figures of the same results.
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
        except InputError as error:  # the pixels are gone, or a metric was not asked for
            missing.append(f"{name}.{kind} is not drawn: {error}")
    target = followed(folder)
    with readable_errors(target / "x", "make room there or give another folder"), lock(target):
        target.mkdir(parents=True, exist_ok=True)
        write_files(target, drawn)
    return [folder / name for name in drawn], missing


def image_folders(given: Sequence[str], datasets: Sequence[str]) -> dict[str, Path]:
    """Return data set -> folder of photographs, from texts DIR or DATASET=DIR.

    Example:
        >>> image_folders(["MSOD=."], ["MSOD", "ECSSD"]) == {"MSOD": Path(".")}
        True
    """
    found = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if equals and name in datasets:
            found[name] = Path(folder)
        elif len(datasets) == 1:
            found[datasets[0]] = Path(text)
        else:
            raise UsageError(
                f"--images {text!r} does not say of which data set; expected DATASET=DIR with one of "
                + ", ".join(datasets)
            )
    for root in found.values():
        if not root.is_dir():
            raise InputError(f"{str(root)!r} is not a folder; expected the images of a data set")
    return found
