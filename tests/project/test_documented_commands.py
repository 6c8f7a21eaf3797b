"""Commands of the documents exist, have the options shown, miss none, and print what is shown."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from helpers.paths import ROOT
from quotes import run_commands

from sisod.cli import app

_END = r"\s(?:[|>;#]|&&)\s"  # what follows is not for sisod


@pytest.mark.parametrize(
    "document", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
)
def test_options_of_documented_commands(document: str) -> None:
    for line in re.findall(r"^    (sisod .*)", (ROOT / document).read_text(), flags=re.MULTILINE):
        words = shlex.split(re.split(_END, line)[0])[1:]
        command: Any = typer.main.get_command(app)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        used = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert used <= known | {"--help", "-h"}, line
        if words and not used & {"--help", "-h"}:
            options = [one for one in command.params if one.required and one.param_type_name == "option"]
            assert all(used & set(one.opts) for one in options), f"{document}: {line}"


def test_command_without_a_required_option_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "page.md").write_text("    sisod evaluate PRED GT --metrics paper\n")
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    with pytest.raises(AssertionError, match=r"page\.md: sisod evaluate"):
        test_options_of_documented_commands("page.md")


@pytest.mark.slow
@pytest.mark.needs("matplotlib", "jinja2")
def test_the_first_page_shows_what_its_commands_print(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    assert run_commands(page, tmp_path) == page
    assert "Traceback" not in page
    for name in ("results/demo/A/run.json", "size.png", "report.html", "swapped"):
        assert (tmp_path / name).exists(), name
