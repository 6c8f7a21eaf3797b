"""Text in figures: its width, how it is wrapped, the legend below and the notes above the panels."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sisod.report.style import (
    FONT,
    HANDLE,
    SMALL_FONT,
    TICK_FONT,
    LineStyle,
    plain_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 72.0  # per inch
LEFT = 0.66  # inches of the name and the ticks of a y axis
LINE = 1.25  # height of a line of text, in font sizes
# a key of the legend: its line, the gap to its text and the gap to the next column, in font sizes
_KEY = HANDLE + 0.8 + 2.0
_BREAKS = re.compile(r"(?<=[-_+/. ])")  # long names are broken after these
_SPACES = re.compile(r"(?<= )")


@lru_cache(maxsize=4096)
def text_width(text: str, size: float) -> float:
    """Return the width of a line of text, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    prop = FontProperties(family="DejaVu Sans", size=size)
    return float(text_to_path.get_text_width_height_descent(text, prop, ismath=False)[0]) / POINTS


def widest(texts: Iterable[str], size: float) -> float:
    """Return the width of the widest line, in inches."""
    return max((text_width(text, size) for text in texts), default=0.0)


def text_height(n_lines: int, size: float) -> float:
    """Return the height of some lines of text, in inches."""
    return n_lines * size * LINE / POINTS


def wrap_text(text: str, width: float, size: float, *, hyphens: bool = True) -> list[str]:
    """Break a text into lines of at most a width in inches, after spaces, hyphens and the like.

    Without `hyphens` only after spaces, as an option such as --metrics has to stay whole.

    Example:
        >>> wrap_text("PoolNet-ResNet50-finetuned on MSOD", 1.1, 8)
        ['PoolNet-ResNet50-', 'finetuned on MSOD']
    """
    lines = [""]
    for word in (_BREAKS if hyphens else _SPACES).split(text):
        if text_width(lines[-1] + word.rstrip(), size) <= width:
            lines[-1] += word
            continue
        lines.append("")
        for letter in word:  # usually the whole word fits into the new line
            if lines[-1] and text_width(lines[-1] + letter.rstrip(), size) > width:
                lines.append("")
            lines[-1] += letter
    return [line.rstrip() for line in lines if line.strip()] or [text]


def shorten(name: str, most: int) -> str:
    """Return a name of at most `most` characters; what is left out is in the middle.

    Example:
        >>> shorten("resnet50-baseline-seed-2", 15)
        'resnet5…-seed-2'
    """
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[len(name) - end :]}"


def shorten_names(names: Sequence[str], fits: Callable[[str], bool]) -> dict[str, str]:
    """Return a short form of every name that fits; different names have different short forms.

    Names are shortened in the middle. If that makes two of them equal, the parts that all long names
    begin or end with are left out, and as a last resort the short forms are numbered.

    Example:
        >>> names = [f"resnet50-{loss}-loss-on-the-training-set" for loss in ("dice", "focal")]
        >>> list(shorten_names(names, lambda name: len(name) <= 12).values())
        ['…dice…', '…focal…']
    """
    short = {name: _fitted(name, fits) for name in names}
    if len(set(short.values())) < len(short):
        long = [name for name in short if short[name] != name]
        short |= {
            name: _fitted(cut, fits) for name, cut in zip(long, _own_parts(long, fits), strict=True)
        }
    counts = Counter(short.values())
    equal = [name for name in short if counts[short[name]] > 1]
    return short | {name: _numbered(short[name], i, fits) for i, name in enumerate(equal, start=1)}


def _numbered(name: str, index: int, fits: Callable[[str], bool]) -> str:
    return _fitted(name, lambda text: fits(f"{text} #{index}")) + f" #{index}"


def _fitted(name: str, fits: Callable[[str], bool]) -> str:
    """The name, shortened as little as necessary, but to no less than three characters."""
    lengths = range(len(name), 3, -1)
    return next((text for most in lengths if fits(text := shorten(name, most))), shorten(name, 3))


def _own_parts(names: Sequence[str], fits: Callable[[str], bool]) -> list[str]:
    """Names without the parts that all of them begin or end with, but with those before it that fit."""
    parts = [_BREAKS.split(name) for name in names]
    most = min(map(len, parts)) - 1  # a part of every name stays
    first = next((i for i in range(most) if len({one[i] for one in parts}) > 1), most)
    last = next(
        (i for i in range(most - first) if len({one[-1 - i] for one in parts}) > 1), most - first
    )

    def cut(start: int) -> list[str]:
        kept = ("".join(one[start : len(one) - last]).rstrip("-_+/. ") for one in parts)
        return ["…" * bool(start) + text + "…" * bool(last) for text in kept]

    return next((texts for i in range(first) if all(map(fits, texts := cut(i)))), cut(first))


def drawn_lines(lines: Sequence[str]) -> str:
    """Return lines as matplotlib draws them: as they are, not as formulas."""
    return "\n".join(plain_text(line) for line in lines)


def legend_height(names: Sequence[str], width: float) -> float:
    """Return the height of a legend below a figure of a width, both in inches."""
    lines, columns = _legend_grid(names, width)
    rows = math.ceil(len(names) / columns)
    n_lines = sum(max(len(one) for one in lines[row::rows]) for row in range(rows))
    return (n_lines * 1.2 + rows * 0.5 + 0.9) * FONT / POINTS


def add_legend(figure: "Figure", styles: dict[str, LineStyle], *, bars: bool = False) -> None:
    """Add one legend for all panels below them, of lines or of bars."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: list[Any] = [
        Patch(**style.bar_options()) if bars else Line2D([], [], **style.options())
        for style in styles.values()
    ]
    lines, columns = _legend_grid(list(styles), figure.get_figwidth())
    # matplotlib leaves out labels that start with an underscore
    labels = [" " + drawn_lines(one).replace("\n", "\n ") for one in lines]
    if figure.get_layout_engine() is None:
        figure.legend(keys, labels, loc="lower center", ncols=columns)
    else:  # which makes room for it
        figure.legend(keys, labels, loc="outside lower center", ncols=columns)


def _legend_grid(names: Sequence[str], width: float) -> tuple[list[list[str]], int]:
    """Names in lines, and the number of columns: as many as fit, all of about the same length."""
    key = _KEY * FONT / POINTS
    space = text_width(" ", FONT)
    lines = [wrap_text(name, width - key - space - 0.1, FONT) for name in names]
    entry = key + space + widest((line for one in lines for line in one), FONT)
    fitting = max(1, min(5, len(names), int(width / entry)))
    rows = math.ceil(len(names) / fitting)
    return lines, math.ceil(len(names) / max(1, rows))


def note_height(notes: Sequence[str], width: float) -> float:
    """Return the height of notes above the panels, in inches."""
    return text_height(len(_note_lines(notes, width)), TICK_FONT) + 0.08 if notes else 0.0


def add_notes(figure: "Figure", notes: Sequence[str]) -> None:
    """Write sentences above the panels."""
    if notes:
        text = drawn_lines(_note_lines(notes, figure.get_figwidth()))
        # the layout engine moves only a title without a place of its own
        place = {"y": 1 - 0.04 / figure.get_figheight()} if figure.get_layout_engine() is None else {}
        figure.suptitle(text, va="top", fontsize=TICK_FONT, color="#555555", **place)


def _note_lines(notes: Sequence[str], width: float) -> list[str]:
    return [line for note in notes for line in wrap_text(note, width - 0.2, TICK_FONT, hyphens=False)]


def number_places(
    boxes: Sequence[tuple[float, float, float, float]], size: tuple[float, float], scale: float
) -> list[tuple[float, float]]:
    """Return the centre of each number: in or at its frame, within the picture, apart from the others.

    Args:
        boxes: of the frames, as (x0, y0, x1, y1).
        size: width and height of the picture, in pixels.
        scale: pixels per inch of the figure.
    """
    half_height = 0.62 * SMALL_FONT / POINTS * scale
    taken: list[tuple[float, float, float]] = []
    for i, (x0, y0, x1, y1) in enumerate(boxes):
        half = text_width(str(i + 1), SMALL_FONT) * scale / 2 * 1.15
        middle = ((x0 + x1) / 2, (y0 + y1) / 2)
        inside = [
            (x0 + half, y0 + half_height), (x1 - half, y0 + half_height),
            (x0 + half, y1 - half_height), (x1 - half, y1 - half_height), middle,
        ]  # fmt: skip
        around = [
            place
            for step in (1, 3)  # beside the frame, or with a number between
            for place in (
                (middle[0], y0 - step * half_height), (middle[0], y1 + step * half_height),
                (x1 + step * half, middle[1]), (x0 - step * half, middle[1]),
            )
        ]  # fmt: skip
        fits = x1 - x0 >= 4 * half and y1 - y0 >= 4 * half_height  # and most of the object is seen
        places = [*inside, *around] if fits else [*around, *inside]
        places = [
            (min(max(x, half), size[0] - half), min(max(y, half_height), size[1] - half_height))
            for x, y in places
        ]
        free = [
            (x, y) for x, y in places
            if all(abs(x - a) >= half + h or abs(y - b) >= 2 * half_height for a, b, h in taken)
        ]  # fmt: skip
        x, y = (free or places)[0]
        taken.append((x, y, half))
    return [(x, y) for x, y, _ in taken]
