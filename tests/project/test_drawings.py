"""docs/errors.md and "Predicted objects" of docs/metrics.md: figures, their scenes, classes, values."""

import inspect
import math
import re
from fractions import Fraction
from types import ModuleType

import draw_errors
import draw_objects
import pytest
from helpers.paths import DOCS

import sisod
from sisod.analysis.error_breakdown import ERROR_CLASSES
from sisod.report.error_breakdown import CLASS_STYLES
from sisod.report.gallery import FIGURES
from sisod.scoring.metrics import METRICS

ERRORS, PAGE = ((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("errors", "metrics"))


@pytest.mark.parametrize(
    ("module", "page", "count"), [(draw_errors, ERRORS, 18), (draw_objects, PAGE, 10)]
)
def test_page_has_the_scene_of_the_drawing(module: ModuleType, page: str, count: int) -> None:
    painted = re.findall(r"(?:gt|p)\[.*\] = \S+", inspect.getsource(module.make_scene))
    assert len(painted) == count
    assert [line for line in painted if f">>> {line}" not in page] == []


def test_errors_show_every_class() -> None:
    legend = draw_errors.draw().split("</g>")[-1]
    assert re.findall(r'fill="(#\w+)"', legend) == [fill.colour for fill in CLASS_STYLES.values()]
    objects, pixels = draw_errors.draw().split("<g ")[1:]
    for name, fill in CLASS_STYLES.items():
        assert (fill.colour in objects) == (name not in ("in_frame", "below_min_area", "false")), name
        assert (fill.colour in pixels.split("</g>")[0]) == (name != "correct"), name


def test_every_class_is_defined() -> None:
    for name in ERROR_CLASSES:
        assert f"| `{name}` |" in ERRORS or name == "false"
    assert "in the class `false`" in ERRORS
    assert set(re.findall(r"--figure (\S+)", ERRORS)) <= set(FIGURES)


def test_drawing_shows_every_kind_of_object() -> None:
    left, right = draw_objects.draw().split("<g ")[1:]
    text = re.compile(r'<text x="\d+" y="\d+">(.*?)</text>')
    assert [line for line in text.findall(left) if " " not in line] == [
        *("found", "missed", "merged", "merged", "split")
    ]
    assert [line for line in text.findall(right) if " " not in line] == [
        *("found", "merged", "split", "split", "false")
    ]
    assert right.count('class="o"') == 5  # the objects of the ground truth


def test_table_has_the_values_of_the_scene() -> None:
    table = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|(?:[^|]*\|){2} ([^|]+) \|", PAGE, flags=re.MULTILINE)
    written: dict[str, str] = {}
    for keys, values in table:
        written |= dict(zip(re.findall(r"\w+", keys), values.split(", "), strict=False))
    keys = [key for key in METRICS if METRICS[key].family.kind == "objects"]
    values = sisod.score(*draw_objects.make_scene(), protocol=draw_objects.RAW)
    expected = [key for key in keys if key in values]
    assert len(expected) == 14
    for key in expected:
        value = math.nan if written[key] == "NaN" else float(Fraction(written[key]))
        assert value == pytest.approx(values[key], nan_ok=True), key


def test_every_key_is_explained() -> None:
    pages = PAGE + (DOCS / "infrared.md").read_text(encoding="utf-8")
    keys = [key for key in METRICS if METRICS[key].family.kind in ("objects", "balanced")]
    assert len(keys) > 20
    assert [key for key in keys if f"`{key}`" not in pages] == []
