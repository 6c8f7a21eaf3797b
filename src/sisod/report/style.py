"""What figures are drawn from, their style, which is safe for colour-blind readers, and saving them."""

import io
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from sisod.analysis.seeds import group_seeds
from sisod.common.arguments import check_choice, check_known
from sisod.common.exceptions import UsageError, printable, require
from sisod.common.output import write_output
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result, datasets_of, methods_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

Width = Literal["single", "double"]

# Okabe and Ito without yellow, which is too light on white; the last is wine of Paul Tol
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = (
    "-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2.2)), (0, (2, 2.4)),
    (0, (6, 1, 2, 1)),
)  # fmt: skip
HATCHES = ("", "////", "....", "xxxx", "----", "++++", "\\\\\\\\", "||||")
WIDTHS = {"single": 3.25, "double": 6.875}  # inches: a column, and the text of a two-column paper
FONT, TICK_FONT, SMALL_FONT = 8.0, 7.0, 6.0  # points; no text in figures is smaller
FORMATS = (".pdf", ".png", ".svg")
STYLE = {
    "font.size": FONT,
    "axes.titlesize": FONT,
    "axes.labelsize": FONT,
    "figure.titlesize": TICK_FONT,
    "figure.labelsize": FONT,
    "xtick.labelsize": TICK_FONT,
    "ytick.labelsize": TICK_FONT,
    "legend.fontsize": FONT,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.6,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "sisod",  # the same figure gives the same file
    "pdf.fonttype": 42,
}
_PER_INCH = 14.5  # characters of a line, about; a legend's key takes as much room as ten of them
_KEY = 10
_LONGEST = 37  # characters of a name in a legend: one fits in a column, two side by side in the text


@dataclass(frozen=True, eq=False)
class FigureRequest:
    """The inputs of figures: results, photographs, and the options of `sisod plot`.

    Attributes:
        results: saved results.
        image_roots: data set -> folder of its photographs.
        examples: names of images for the figure of examples; by default those on which methods differ
            most.
        fetch: whether to read maps from URLs too.
        metrics: keys of the scores to draw, for figures of scores; by default each figure's own.
        methods: which to draw, in this order; by default all. Runs of one method are named NAME@SEED.
        width: of the figures, that of a column or of the text of a two-column paper.
    """

    results: Sequence[Result]
    image_roots: Mapping[str, Path] = field(default_factory=dict)
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
        runs = group_seeds(methods_of(self.results))
        for method in self.methods:
            check_known("method", method, runs)
        found = {(result.dataset, result.method): result for result in self.results}
        names = [run for method in self.methods for run in runs[method]]
        keys = [(dataset, name) for dataset in datasets_of(self.results) for name in names]
        return [found[key] for key in keys if key in found]

    @property
    def by_dataset(self) -> dict[str, dict[str, list[Evaluation]]]:
        """Data set -> chosen method -> its results: one, or several of runs named NAME@SEED."""
        chosen = self.chosen
        methods = {run: m for m, runs in group_seeds(methods_of(chosen)).items() for run in runs}
        table: dict[str, dict[str, list[Evaluation]]] = {name: {} for name in datasets_of(chosen)}
        for result in chosen:
            table[result.dataset].setdefault(methods[result.method], []).append(result.evaluation)
        return table

    @property
    def line_styles(self) -> dict[str, "LineStyle"]:
        """A line style for each chosen method."""
        return line_styles(group_seeds(methods_of(self.chosen)))


@dataclass(frozen=True)
class LineStyle:
    """The line and the bars of a method; its colour, dash, marker and hatch each identify it."""

    colour: str
    marker: str
    dash: Any
    hatch: str

    def options(self) -> dict[str, Any]:
        """Return keyword arguments of matplotlib's plot."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}

    def bar_options(self) -> dict[str, Any]:
        """Return keyword arguments of matplotlib's bar; the edge colour is that of the hatch."""
        return {"facecolor": self.colour, "edgecolor": "white", "hatch": self.hatch, "linewidth": 0}


def line_styles(methods: Iterable[str]) -> dict[str, LineStyle]:
    """Return a line style for each method.

    The first 8 differ in colour, marker, dash and hatch, the first 32 in at least two of colour, marker
    and dash: the second eight have the colours of the first, but other markers and dashes.

    Args:
        methods: their names.

    Example:
        >>> styles = line_styles(["EDN", "ICON"])
        >>> styles["ICON"].colour, styles["ICON"].marker, styles["ICON"].dash
        ('#d55e00', 's', '--')
    """
    styles = {}
    for number, method in enumerate(methods):
        turn, index = divmod(number, 8)
        marker, dash = (index + 3 * turn) % 8, (index + 5 * turn) % 8
        styles[method] = LineStyle(COLOURS[index], MARKERS[marker], DASHES[dash], HATCHES[marker])
    return styles


def context() -> Any:
    """Return a context in which matplotlib draws in this style, whatever the user's own settings are."""
    require("drawing", "matplotlib")
    from matplotlib import style

    return style.context(["default", STYLE])


def new_figure(height: float, *, width: Width = "double") -> "Figure":
    """Return an empty figure with constrained layout, which a notebook displays with any backend.

    Args:
        height: in inches.
        width: that of a column, or of the text, of a two-column paper.
    """
    require("drawing", "matplotlib")
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            return figure_bytes(self, "png")

    return NotebookFigure(figsize=(inches(width), height), layout="constrained")


@contextmanager
def new_panels(
    heights: Sequence[float],
    columns: int,
    width: Width = "double",
    *,
    notes: Sequence[str] = (),
    **options: Any,
) -> "Iterator[tuple[Figure, NDArray[Any]]]":
    """Give a figure and its panels, whose rows have the given heights when all is drawn.

    What matplotlib places around the panels, such as titles, notes and the legend, is added to the
    height of the figure.

    Args:
        heights: of the rows of panels, in inches.
        columns: panels side by side.
        width: of the figure.
        notes: sentences above the panels.
        options: of `matplotlib.figure.Figure.subplots`.
    """
    with context():
        figure = new_figure(sum(heights) + len(heights) + 2, width=width)
        if notes:
            figure.suptitle("\n".join(map(plain_text, notes)), wrap=True, color="#555555")
        panels = figure.subplots(
            len(heights), columns, squeeze=False, height_ratios=list(heights), **options
        )
        yield figure, panels
        figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
        drawn = sum(axes.get_position(original=True).height for axes in panels[:, 0])
        figure.set_figheight(sum(heights) + (1 - drawn) * figure.get_figheight())


def inches(width: Width) -> float:
    """Return the width of a figure.

    Example:
        >>> inches("single")
        3.25
    """
    check_choice("width", width, get_args(Width))
    return WIDTHS[width]


def plain_text(name: str) -> str:
    r"""Return a name escaped for matplotlib: a dollar sign would start a formula.

    Example:
        >>> print(plain_text("net $1"))
        net \$1
    """
    return printable(name).replace("$", r"\$")


def shorten(name: str, most: int) -> str:
    """Return a name of at most `most` characters; what is left out is in the middle.

    Example:
        >>> shorten("resnet50-baseline-seed-2", 15)
        'resnet5…-seed-2'
    """
    end = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[len(name) - end :]}"


def wrapped(text: str, width: float, *, most: int = 3) -> str:
    r"""Return a text for matplotlib, in at most `most` lines of about a width in inches.

    A text that is too long loses its middle, as its end often tells it from others. The layout of
    matplotlib does not wrap titles and labels.

    Example:
        >>> wrapped("PoolNet-ResNet50-finetuned on MSOD", 1.3)
        'PoolNet-\nResNet50-finetuned\non MSOD'
    """
    n_characters = max(4, int(_PER_INCH * width))
    text = printable(text)
    length = len(text)
    while len(lines := textwrap.wrap(shorten(text, length), n_characters)) > most:
        length -= 1
    return "\n".join(map(plain_text, lines)) or " "


def add_legend(figure: "Figure", styles: Mapping[str, Any], *, bars: bool = False) -> None:
    """Add one legend for all panels below them.

    Args:
        figure: whose width decides how many names stand side by side.
        styles: name -> its style, such as those of `line_styles`.
        bars: whether they are those of bars, not of lines.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: list[Any] = [
        Patch(**style.bar_options()) if bars else Line2D([], [], **style.options())
        for style in styles.values()
    ]
    # matplotlib leaves out labels that start with an underscore
    labels = [f" {plain_text(shorten(name, _LONGEST))}" for name in styles]
    longest = max(map(len, labels)) + (_KEY // 2 if bars else _KEY)
    n_rows = math.ceil(len(keys) / max(1, min(5, int(_PER_INCH * figure.get_figwidth() / longest))))
    figure.legend(
        keys, labels, loc="outside lower center", ncols=math.ceil(len(keys) / n_rows),
        handlelength=1.5 if bars else 3.6,  # shows the longest dashes
    )  # fmt: skip


def annotate_empty_axes(axes: "Axes", text: str) -> None:
    """Write the reason into an empty panel."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="#666666")


def check_plot_path(path: Path) -> None:
    """Raise if a file name has not the ending of a figure format, before any work is done.

    Raises:
        UsageError: for another ending.
        MissingExtraError: without matplotlib.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{str(path)!r}: expected a name ending in .pdf, .png or .svg")
    require("drawing", "matplotlib")


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure to a file, atomically.

    Args:
        figure: any figure of matplotlib.
        path: whose ending, .pdf, .png or .svg, is the format.
    """
    write_output(path, figure_bytes(figure, path.suffix.lower()[1:]))


def figure_bytes(figure: "Figure", kind: str) -> bytes:
    """Return the content of a figure's file; the same figure gives the same bytes."""
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    buffer = io.BytesIO()
    with context():
        figure.savefig(buffer, format=kind, metadata=metadata[kind])
    return buffer.getvalue()
