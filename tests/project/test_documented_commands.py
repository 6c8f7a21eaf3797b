"""Commands that the documents show in blocks exist, and have the options that are shown."""

import re
import shlex
from typing import Any

import pytest
import typer.main
from helpers.paths import ROOT

from sisod.cli import app

_SHELL = {"|", ">", "&&", ";"}  # what follows is not for sisod


@pytest.mark.parametrize(
    "document", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
)
def test_options_of_documented_commands(document: str) -> None:
    for line in re.findall(r"^    (sisod .*)", (ROOT / document).read_text(), flags=re.MULTILINE):
        words = shlex.split(line, comments=True)[1:]
        words = words[: next((at for at, word in enumerate(words) if word in _SHELL), None)]
        command: Any = typer.main.get_command(app)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        used = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert used <= known | {"--help", "-h"}, line
