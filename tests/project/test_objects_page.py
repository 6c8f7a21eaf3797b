"""The section "Predicted objects" of docs/metrics.md: its figure, its scene and its table of values."""

import inspect
import math
import re
from fractions import Fraction

import pytest
from draw_objects import RAW, draw, make_scene
from helpers.paths import DOCS

import sisod
from sisod.scoring.metrics import METRICS

PAGE = (DOCS / "metrics.md").read_text(encoding="utf-8")


def test_drawing_shows_every_kind_of_object() -> None:
    left, right = draw().split("<g ")[1:]
    text = re.compile(r'<text x="\d+" y="\d+">(.*?)</text>')
    assert [line for line in text.findall(left) if " " not in line] == [
        *("found", "missed", "merged", "merged", "split")
    ]
    assert [line for line in text.findall(right) if " " not in line] == [
        *("found", "merged", "split", "split", "false")
    ]
    assert right.count('class="o"') == 5  # the objects of the ground truth


def test_page_has_the_scene_of_the_drawing() -> None:
    painted = re.findall(r"(?:gt|p)\[.*\] = \S+", inspect.getsource(make_scene))
    assert len(painted) == 10
    assert [line for line in painted if f">>> {line}" not in PAGE] == []


def test_table_has_the_values_of_the_scene() -> None:
    table = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|(?:[^|]*\|){2} ([^|]+) \|", PAGE, flags=re.MULTILINE)
    written: dict[str, str] = {}
    for keys, values in table:
        written |= dict(zip(re.findall(r"\w+", keys), values.split(", "), strict=False))
    keys = [key for key in METRICS if METRICS[key].family.kind == "objects"]
    values = sisod.score(*make_scene(), protocol=RAW)
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
