"""docs/errors.md: the figure is what the script draws, the scene that of the figure; all classes."""

import inspect
import re

from draw_errors import draw, make_scene
from helpers.paths import DOCS

from sisod.analysis.error_breakdown import ERROR_CLASSES
from sisod.report.error_breakdown import CLASS_STYLES
from sisod.report.gallery import FIGURES

PAGE = (DOCS / "errors.md").read_text(encoding="utf-8")


def test_drawing_shows_every_class() -> None:
    legend = draw().split("</g>")[-1]
    assert re.findall(r'fill="(#\w+)"', legend) == [fill.colour for fill in CLASS_STYLES.values()]
    objects, pixels = draw().split("<g ")[1:]
    for name, fill in CLASS_STYLES.items():
        assert (fill.colour in objects) == (name not in ("in_frame", "below_min_area", "false")), name
        assert (fill.colour in pixels.split("</g>")[0]) == (name != "correct"), name


def test_page_has_the_scene_of_the_drawing() -> None:
    painted = re.findall(r"(?:gt|p)\[.*\] = \S+", inspect.getsource(make_scene))
    assert len(painted) == 18
    assert [line for line in painted if f">>> {line}" not in PAGE] == []


def test_every_class_is_defined() -> None:
    for name in ERROR_CLASSES:
        assert f"| `{name}` |" in PAGE or name == "false"
    assert "in the class `false`" in PAGE


def test_figures_exist() -> None:
    assert set(re.findall(r"--figure (\S+)", PAGE)) <= set(FIGURES)
