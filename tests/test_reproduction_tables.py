"""The tables of docs/reproduction.md are what the saved rows give."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import reproduction_tables  # noqa: E402  (found through the line above)

RESULTS = reproduction_tables.Results()
MAKERS: dict[str, Callable[[reproduction_tables.Results], str]] = {
    "table1": reproduction_tables.table1,
    "paired": reproduction_tables.paired,
    "losses": reproduction_tables.losses,
    "sizes": reproduction_tables.sizes,
    "numbers": reproduction_tables.numbers,
    "claims": reproduction_tables.claims,
    "runs": reproduction_tables.runs,
}


@pytest.mark.parametrize("name", MAKERS)
def test_table_is_what_the_rows_give(name: str) -> None:
    assert (BENCHMARKS / "reproduction" / f"{name}.md").read_text() == MAKERS[name](RESULTS) + "\n"
