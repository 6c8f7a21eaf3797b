"""The site: its strict build, nothing loaded from the network, link texts, formulas, citation, tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from quotes import ROOT

import sisod

INDEX = "# Made\n\n```{toctree}\nPage <page>\n```\n"
PAGE = "# Page\n\nA [link](index.md#made) and a table.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
FORMULA = r"""
Inline $\alpha = 0.3$ and a block:

$$\frac{\sum_k m_k}{K + \alpha}$$
"""
DOCUMENTS = [
    *("README.md", "CONTRIBUTING.md", "SECURITY.md"),
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
]


def build(folder: Path, **pages: str) -> subprocess.CompletedProcess[str]:
    """Build some pages of our own by the project's settings, as `make docs` does."""
    docs = folder / "docs"
    (docs / "_static").mkdir(parents=True)
    for name in ("conf.py", "_static/sisod.css"):
        (docs / name).write_bytes((ROOT / "docs" / name).read_bytes())
    for name, text in pages.items():
        (docs / f"{name}.md").write_text(text)
    options = re.findall(r"-m sphinx (.*) docs site", (ROOT / "Makefile").read_text())[0].split()
    command = [sys.executable, "-m", "sphinx", *options, str(docs), str(folder / "site")]
    plain = os.environ | {"NO_COLOR": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=plain)  # noqa: S603


@pytest.mark.slow
@pytest.mark.needs("sphinx")
def test_pages_need_nothing_from_the_network(tmp_path: Path) -> None:
    run = build(tmp_path, index=INDEX, page=PAGE + FORMULA)
    assert (run.returncode, run.stderr) == (0, "")
    html = (tmp_path / "site" / "page.html").read_text()
    loaded = re.findall(r'<(?:script|link|img)[^>]*?(?:src|href)="([^"]*)"', html)
    assert len(loaded) > 3
    assert [source for source in loaded if source.startswith(("http", "//"))] == []
    inline, block = re.findall(r"<math.*?</math>", html, flags=re.DOTALL)  # drawn by the browser itself
    assert "<mi>\N{GREEK SMALL LETTER ALPHA}</mi>" in inline
    assert "<mfrac>" in block
    assert 'display="block"' in block


@pytest.mark.slow
@pytest.mark.needs("sphinx")
def test_strict_build_refuses(tmp_path: Path) -> None:
    """A page that is not listed or missing, a dead link, a wrong formula."""
    page = "# Page\n\n[gone](index.md#nowhere)\n\n$\\nosuch{x}$\n"
    run = build(tmp_path, index=INDEX + INDEX.replace("page", "missing"), page=page, forgotten=PAGE)
    assert run.returncode != 0
    for text in (
        "forgotten.md: WARNING: document isn't included in any toctree",
        "toctree contains reference to nonexisting document 'missing'",
        "local id not found",
        "Unknown LaTeX command",
    ):
        assert text in run.stderr


def test_every_page_is_listed_once() -> None:
    listed = re.findall(
        r"^[^|\n]* <([\w-]+)>$", (ROOT / "docs" / "index.md").read_text(), flags=re.MULTILINE
    )
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_link_texts_are_titles(name: str) -> None:
    links = re.findall(r"\[([^\]]+)\]\([^)]+\)", (ROOT / name).read_text(encoding="utf-8"))
    file_names = [text for text in links if re.search(r"\.(md|py|toml|cff|json)`?$", text)]
    assert file_names == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_formulas_are_typeset(name: str) -> None:
    """Outside of code, a subscript or a Greek letter stands between dollars."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for code in (
        r"```.*?```",
        r"<!-- (\S+) -->.*?<!-- /\1 -->",
        r"^    .*?$",
        r"`[^`]*`",
        r"\]\([^)]*\)",
    ):
        text = re.sub(code, "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "", text, flags=re.DOTALL)
    assert "$" not in text
    plain = r"\b[A-Za-z]_\w+|\b(?:alpha|beta|rho|mu|delta)\b(?! channel)|sum_|\^|<=|>=|√"
    assert re.findall(plain, text) == []


def test_results_on_real_data_begin_with_a_figure() -> None:
    text = (ROOT / "docs" / "real-data.md").read_text(encoding="utf-8")
    images = list(re.finditer(r"^!\[.+\]\((\w+)\.svg\)$", text, flags=re.MULTILINE))
    assert images[0][1] == "real_data_losses"
    assert images[0].start() < text.index("\n|") < text.index("\n## ")
    drawn = {path.stem for path in (ROOT / "docs").glob("real_data_*.svg")}
    assert {image[1] for image in images} == drawn


def test_citation_is_that_of_the_file() -> None:
    cite, file = ((ROOT / name).read_text() for name in ("docs/index.md", "CITATION.cff"))
    software, article, conference, follow_up = re.findall(r'title: "(.*)"', file)
    assert re.findall(r"^  title +=  *\{(.*)\},$", cite, re.MULTILINE) == [article, follow_up, software]
    assert f"booktitle = {{{conference}}}" in cite
    for part in file.split("references:"):
        people = re.findall(r"family-names: (\w+)\n +given-names: (\w+)", part)
        assert len(people) == 7
        assert " and ".join(f"{last}, {first}" for last, first in people) in cite
    assert f"version = {{{sisod.__version__}}}" in cite
    assert f"version: {sisod.__version__}" in file


def test_every_guarantee_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    promises = [row for row in rows if not row.endswith("| test |") and not row.startswith("|---")]
    assert len(promises) > 35
    for row in promises:
        assert re.search(r"`test_\w+\.py` \|$", row), row
    existing = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(re.findall(r"`(test_\w+\.py)`", page)) <= existing
