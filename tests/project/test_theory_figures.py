"""The figures of docs/theory.md agree with the committed JSON, and the JSON with the data."""

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import RESULTS

DATA = os.environ.get("SISOD_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="SISOD_DATA is unset: no real masks")
COMMITTED = json.loads((RESULTS / "theory.json").read_text())


@pytest.fixture
def figures() -> Any:
    return importlib.import_module("benchmarks.real_data.theory")


def test_tables_are_those_of_the_json(figures: Any) -> None:
    assert (RESULTS / "rho.md").read_text() == figures.rho_table(COMMITTED["rho"]) + "\n"
    expected = figures.parts_table(COMMITTED["decomposition"]["MSOD"]) + "\n"
    assert (RESULTS / "decomposition.md").read_text() == expected


def test_what_the_text_says_of_the_tables() -> None:
    medians = [row["median_sharper"] for row in COMMITTED["rho"].values()]
    assert 2.4 < min(medians) < max(medians) < 4
    assert all(row["rho"] > row["rho_image"] for row in COMMITTED["rho"].values())
    assert all(0 < row["fails"] < 0.01 * row["images"] for row in COMMITTED["rho"].values())


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ECSSD", "MSOD"])  # DUTS would take ten times as long
def test_shares_are_those_of_the_masks(figures: Any, name: str) -> None:
    found = figures.measure_rho(Path(DATA or "") / name / "mask")
    assert found == pytest.approx(COMMITTED["rho"][name])


@needs_data
@pytest.mark.slow
def test_scores_of_published_maps_are_the_sums_of_their_parts(figures: Any) -> None:
    committed = COMMITTED["decomposition"]["MSOD"]
    found = figures.measure_frames(Path(DATA or "") / "MSOD")
    assert found == pytest.approx({key: committed[key] for key in found}, abs=1e-9)
    regions = figures.measure_regions(Path(DATA or "") / "MSOD", every=30)
    assert set(regions) | set(found) == set(committed)
    assert max(regions.values()) < 1e-12


def test_script_needs_the_data(figures: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SISOD_DATA", raising=False)
    with pytest.raises(SystemExit, match="SISOD_DATA is unset"):
        figures.main()
