"""docs/reliability.md: every guarantee names a file of tests that exists."""

import re

from helpers.paths import DOCS, ROOT

PAGE = (DOCS / "reliability.md").read_text(encoding="utf-8")


def test_every_guarantee_names_tests_that_exist() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    promises = [row for row in rows if not row.endswith("| test |") and not row.startswith("|---")]
    assert len(promises) > 35
    for row in promises:
        assert re.search(r"`test_\w+\.py` \|$", row), row
    existing = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(re.findall(r"`(test_\w+\.py)`", PAGE)) <= existing
