"""docs/reliability.md: every test that it names exists, and every promise names one."""

import ast
import re

import pytest
from helpers.paths import ROOT

PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE)))


def functions(file: str) -> set[str]:
    (path,) = (ROOT / "tests").rglob(file)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_tests_are_named() -> None:
    assert len(NAMED) > 50


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_every_test_that_is_named_exists(file: str) -> None:
    named = {function for other, function in NAMED if other == file}
    assert named - functions(file) == set()


def test_every_promise_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    heads = [row for row in rows if row.endswith("| test |")]
    promises = [row for row in rows if row not in heads and not row.startswith("|---")]
    assert len(promises) > 40
    assert [row for row in promises if not re.search(r"`test_\w+\.py::test_\w+` \|$", row)] == []


def test_the_page_is_listed() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "(reliability.md)" in index
    assert re.search(r"^.+ <reliability>$", index, flags=re.MULTILINE)
