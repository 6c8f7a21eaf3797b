"""Values that outside tools gave once and for all: they guard us even where the tools are not."""

import json
from typing import Any

import pytest
from make_golden import GOLDEN_PATH, golden, made_maps

import sisod

GOLDEN: dict[str, Any] = json.loads(GOLDEN_PATH.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", made_maps())
def test_values(name: str) -> None:
    pred, gt = made_maps()[name]
    values = sisod.score(pred, gt, metrics="all")
    framed = sisod.score(pred, gt, protocol="pysodmetrics", metrics="all")
    values |= {f"pysodmetrics {key}": value for key, value in framed.items()}
    expected = GOLDEN["values"][name]
    assert {key: values[key] for key in expected} == pytest.approx(expected, abs=GOLDEN["tolerance"])


@pytest.mark.needs("py_sod_metrics", "sklearn")
def test_the_file_is_what_the_script_writes() -> None:
    made = golden()
    for tool in ("pysodmetrics", "scikit-learn"):
        if made["versions"][tool] != GOLDEN["versions"][tool]:
            pytest.skip(f"{tool} is {made['versions'][tool]}, the file's {GOLDEN['versions'][tool]}")
    assert made.keys() == GOLDEN.keys()
    assert made["values"].keys() == GOLDEN["values"].keys()
    for name, values in GOLDEN["values"].items():
        assert made["values"][name] == pytest.approx(values, abs=1e-12)
