"""What sisod says can be followed by somebody who installed it with pip and has no repository."""

import ast
import re
from pathlib import Path

import pytest

import sisod

ROOT = Path(sisod.__file__).parent
# files and folders of the repository that no wheel contains
REPOSITORY = re.compile(
    r"\b(docs|tests|tools|benchmarks|examples)/|constraints\.txt|\b(README|CONTRIBUTING|CHANGELOG|Makefile)\b"
)


def shown_texts(source: str, *, docstrings: bool) -> list[str]:
    """Return the texts of a module that a user may see: all but docstrings, which help texts include."""
    tree = ast.parse(source)
    documented = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and (docstrings or id(node) not in documented)
    ]


@pytest.mark.parametrize(
    "path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_no_message_names_a_file_of_the_repository(path: Path) -> None:
    texts = shown_texts(path.read_text(encoding="utf-8"), docstrings="cli" in path.parts)
    assert [text for text in texts if REPOSITORY.search(text)] == []


def test_the_search_would_find_one() -> None:
    source = 'def f():\n    """See docs/a.md."""\n    raise ValueError(f"{f}: see docs/a.md")\n'
    assert [text for text in shown_texts(source, docstrings=False) if REPOSITORY.search(text)] == [
        ": see docs/a.md"
    ]
    assert "See docs/a.md." in shown_texts(source, docstrings=True)
