"""Stored values of outside tools: they are checked even where the tools are not installed."""

import json
from typing import Any

import pytest
from make_golden import GOLDEN_PATH, golden, synthetic_maps

import sisod

pytestmark = pytest.mark.usefixtures("both_engines")

GOLDEN: dict[str, Any] = json.loads(GOLDEN_PATH.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", synthetic_maps())
def test_values(name: str) -> None:
    pred, gt = synthetic_maps()[name]
    values = sisod.score(pred, gt, metrics="all")
    framed = sisod.score(pred, gt, protocol="pysodmetrics", metrics="all")
    values |= {f"pysodmetrics {key}": value for key, value in framed.items()}
    expected = GOLDEN["values"][name]
    assert {key: values[key] for key in expected} == pytest.approx(expected, abs=GOLDEN["tolerance"])


@pytest.mark.needs("py_sod_metrics", "sklearn")
def test_the_stored_file_equals_the_output_of_the_script() -> None:
    computed = golden()
    for tool in ("pysodmetrics", "scikit-learn"):
        if computed["versions"][tool] != GOLDEN["versions"][tool]:
            pytest.skip(f"{tool} is {computed['versions'][tool]}, the file's {GOLDEN['versions'][tool]}")
    assert computed.keys() == GOLDEN.keys()
    assert computed["values"].keys() == GOLDEN["values"].keys()
    for name, values in GOLDEN["values"].items():
        assert computed["values"][name] == pytest.approx(values, abs=1e-12)
