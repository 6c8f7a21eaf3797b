"""The tables of docs/reproduction.md are what the saved rows give."""

import sys
from pathlib import Path

import pytest

from sisod.plots import save_figure

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import reproduction_figures  # noqa: E402
import reproduction_tables  # noqa: E402  (found through the line above)

RESULTS = reproduction_tables.Results()


@pytest.mark.parametrize("name", reproduction_tables.MAKERS)
def test_table_is_what_the_rows_give(name: str) -> None:
    written = (BENCHMARKS / "reproduction" / f"{name}.md").read_text()
    assert written == reproduction_tables.MAKERS[name](RESULTS) + "\n"


def test_level_of_an_object_agrees_with_found_at_one_half() -> None:
    rows = RESULTS.objects
    assert rows.height > 10_000
    assert ((rows["level"] >= 128) == (rows["recall_binary"] >= 0.5)).all()


@pytest.mark.parametrize("name", reproduction_figures.FIGURES)
def test_figure_is_what_the_rows_give(name: str, tmp_path: Path) -> None:
    save_figure(reproduction_figures.FIGURES[name](RESULTS), tmp_path / "drawn.svg")
    written = reproduction_figures.DOCS / f"reproduction_{name}.svg"
    assert (tmp_path / "drawn.svg").read_text() == written.read_text()
