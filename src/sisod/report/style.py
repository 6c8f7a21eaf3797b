"""The style of all figures, safe for colour-blind readers and readable in print; saving them."""

import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from sisod.common.arguments import check_choice
from sisod.common.exceptions import UsageError, printable, require
from sisod.common.output import write_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Width = Literal["single", "double"]

# Okabe and Ito without yellow, which is too light on white; the last is wine of Paul Tol
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = (
    "-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2.2)), (0, (2, 2.4)),
    (0, (6, 1, 2, 1)),
)  # fmt: skip
HATCHES = ("", "////", "....", "xxxx", "----", "++++", "\\\\\\\\", "||||")
N_STYLES = len(COLOURS)
WIDTHS = {"single": 3.25, "double": 6.875}  # inches: a column, and the text of a two-column paper
FONT, TICK_FONT, SMALL_FONT = 8.0, 7.0, 6.0  # points; no text in figures is smaller
MARKER_SIZE = 3.6  # points
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
    "legend.handlelength": 3.6,  # it shows the longest dashes
    "hatch.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.3,
    "lines.markersize": MARKER_SIZE,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "sisod",  # the same figure gives the same file
    "pdf.fonttype": 42,
}
_PER_INCH = 14.5  # characters of a line, about; a legend's key takes as much room as ten of them
_KEY = 10


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


def line_styles(methods: Sequence[str]) -> dict[str, LineStyle]:
    """Return a line style for each method.

    The first 8 differ in colour, marker, dash and hatch, the first 32 in at least two of colour, marker
    and dash: the second eight have the colours of the first, but other markers and dashes.
    """
    styles = {}
    for number, method in enumerate(methods):
        turn, index = divmod(number, N_STYLES)
        marker, dash = (index + 3 * turn) % N_STYLES, (index + 5 * turn) % N_STYLES
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
        height: in inches; `fit_height` corrects it when everything is drawn.
        width: that of a column, or of the text, of a two-column paper.
    """
    require("drawing", "matplotlib")
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            return figure_bytes(self, "png")

    return NotebookFigure(figsize=(inches(width), height), layout="constrained")


def inches(width: Width) -> float:
    """Return the width of a figure."""
    check_choice("width", width, get_args(Width))
    return WIDTHS[width]


def fit_height(figure: "Figure", column: "Iterable[Axes]", height: float) -> None:
    """Set the height of a figure so that a column of panels has a height together, in inches.

    What matplotlib places around the panels, such as titles, notes and the legend, keeps its size.
    """
    figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
    drawn = 0.0
    for axes in column:
        holder: Any = axes.get_figure()  # a subfigure has its own coordinates
        drawn += axes.get_position(original=True).height * holder.bbox.height / figure.dpi
    figure.set_figheight(figure.get_figheight() + height - drawn)


def plain_text(name: str) -> str:
    """Return a name escaped for matplotlib: a dollar sign would start a formula."""
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

    A text that is too long loses its middle, as its end often tells it from others.

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


def add_legend(figure: "Figure", styles: dict[str, LineStyle], *, bars: bool = False) -> None:
    """Add one legend for all panels below them, of lines or of bars."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: list[Any] = [
        Patch(**style.bar_options()) if bars else Line2D([], [], **style.options())
        for style in styles.values()
    ]
    room = figure.get_figwidth() - _KEY / _PER_INCH
    # matplotlib leaves out labels that start with an underscore
    labels = [" " + wrapped(name, room).replace("\n", "\n ") for name in styles]
    longest = max(len(line) for label in labels for line in label.split("\n"))
    n_fit = int(_PER_INCH * figure.get_figwidth() / (_KEY + longest))
    n_rows = math.ceil(len(keys) / max(1, min(5, n_fit)))
    figure.legend(keys, labels, loc="outside lower center", ncols=math.ceil(len(keys) / n_rows))


def add_notes(figure: "Figure", notes: Sequence[str]) -> None:
    """Write sentences above the panels."""
    if notes:
        figure.suptitle("\n".join(map(plain_text, notes)), wrap=True, color="#555555")


def annotate_empty_axes(axes: "Axes", text: str) -> None:
    """Write the reason into an empty panel."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="#666666")


def check_plot_path(path: Path) -> None:
    """Raise if a file name has not the ending of a figure format, before any work is done."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{str(path)!r}: expected a name ending in .pdf, .png or .svg")
    require("drawing", "matplotlib")


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure to a file, atomically."""
    write_output(path, figure_bytes(figure, path.suffix.lower()[1:]))


def figure_bytes(figure: "Figure", kind: str) -> bytes:
    """Return the content of a figure's file; the same figure gives the same bytes."""
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    buffer = io.BytesIO()
    with context():
        figure.savefig(buffer, format=kind, metadata=metadata[kind])
    return buffer.getvalue()
