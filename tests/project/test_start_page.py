"""docs/start.md: its commands run one after the other, and print what the page shows."""

from pathlib import Path

import pytest
from helpers.paths import DOCS
from quotes import run_commands

pytestmark = [pytest.mark.slow, pytest.mark.needs("matplotlib", "jinja2")]


def test_the_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    page = (DOCS / "start.md").read_text(encoding="utf-8")
    assert run_commands(page, tmp_path) == page
    assert "Traceback" not in page
    for name in ("results/demo/A/run.json", "size.png", "report.html", "swapped"):
        assert (tmp_path / name).exists(), name
