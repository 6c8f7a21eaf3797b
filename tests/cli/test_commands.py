"""Every command: its group, help, example and options; errors of the command line; completion."""

import re
import shlex
import subprocess
import sys
from collections import defaultdict
from typing import Any

import pytest
import typer.main
from helpers.command_line import run
from typer.testing import CliRunner

from sisod.cli import COMMANDS, app
from sisod.cli.shared import complete_recipe

GROUP: Any = typer.main.get_command(app)
NAMES = list(GROUP.commands)
EXAMPLE = re.compile(r"^Example:\n    (sisod .+)$", re.MULTILINE)
# options with other values for figures: their formats, and their width as columns of a paper, not pixels
OTHER_VALUES = {("plot", "--format"), ("plot", "--width")}


def test_groups_tell_the_story() -> None:
    six = ["evaluate", "compare", "report", "train", "predict", "demo"]
    assert next(iter(COMMANDS.values())).keys() == set(six)
    assert [name for group in COMMANDS.values() for name in group] == NAMES
    for group, functions in COMMANDS.items():
        assert {GROUP.commands[name].rich_help_panel for name in functions} == {group}
    shown = run("-h").stdout
    positions = [shown.index(f"─ {group} ─") for group in COMMANDS]
    assert positions == sorted(positions)


@pytest.mark.parametrize("name", NAMES)
def test_help_shows_an_example_that_can_be_parsed(name: str) -> None:
    shown = run(name, "-h")
    assert shown.exit_code == 0
    assert " ".join(example(name)) in " ".join(shown.stdout.split())
    program, command, *words = example(name)
    assert (program, command) == ("sisod", name)
    if "--plot" in words:
        pytest.importorskip("matplotlib", reason="the example draws")
    context = GROUP.commands[name].make_context(name, words, parent=GROUP.make_context("sisod", [name]))
    assert context.params


def example(name: str) -> list[str]:
    """Return the words of the example in a command's help."""
    matched = EXAMPLE.search(GROUP.commands[name].help)
    assert matched, f"the docstring of {name!r} has no example"
    return shlex.split(matched[1])


def options() -> dict[str, dict[str, Any]]:
    """Return every option by its name and its command."""
    by_name: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, command in GROUP.commands.items():
        for param in command.params:
            if param.param_type_name == "option":
                for spelling in param.opts:
                    by_name[spelling][name] = param
    return by_name


def test_an_option_means_the_same_in_every_command() -> None:
    """Type, metavar, limits and meaning; a help may differ behind the colon of a common beginning."""
    for spelling, by_command in options().items():
        meanings = defaultdict(list)
        for command, param in by_command.items():
            if (command, spelling) in OTHER_VALUES:
                continue
            beginning = param.help.partition(":")[0]
            meaning = (*_values(param), param.metavar, beginning)
            meanings[meaning].append(command)
        assert len(meanings) <= 1, (spelling, dict(meanings))


def _values(param: Any) -> tuple[Any, ...]:
    """Return the type of an option's value and its limits, for old and new versions of typer."""
    if hasattr(param, "type_descriptor"):
        annotation = param.type_descriptor.annotation
        return (annotation.__args__[0] if param.multiple else annotation, param.min, param.max)
    kind = param.type
    return (kind.name, *(getattr(kind, name, None) for name in ("choices", "min", "max")))


def _is_choice(param: Any) -> bool:
    descriptor = getattr(param, "type_descriptor", None)
    return bool(hasattr(param.type, "choices") if descriptor is None else descriptor.is_choice)


def test_every_option_has_a_help_and_says_what_to_give() -> None:
    for spelling, by_command in options().items():
        for command, param in by_command.items():
            assert param.help, (command, spelling)
            assert param.help.endswith("."), (command, spelling, param.help)
            assert param.is_flag or _is_choice(param) or param.metavar, (command, spelling)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["evaluat"], "'evaluate'"),
        (["evaluate"], "Missing argument"),
        (["evaluate", "a", "b"], "'--out'"),
        (["demo", "--quik"], "--quick"),
        (["stats", "a", "--format", "xml"], "'latex'"),
        (["--versoin"], "--version"),
    ],
)
def test_errors_of_the_command_line_name_what_is_wrong(words: list[str], named: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert named in result.stderr


@pytest.mark.needs("torch")
def test_help_of_train_names_every_recipe() -> None:
    recipe = next(param for param in GROUP.commands["train"].params if param.name == "recipe")
    named = re.findall(r"[a-z]+", recipe.help.partition("(")[2])
    assert {name.removesuffix("-lite") for name in complete_recipe("")} <= set(named)


def test_no_command_shows_the_help() -> None:
    result = run()
    assert "╭─ Start here ─" in result.stdout + result.stderr
    assert "error:" not in result.stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("e", ["evaluate", "errors", "export"]),
        ("evaluate --pro", ["--protocol"]),
        ("evaluate --protocol p", ["paper", "pysodmetrics"]),
        ("evaluate --format ", ["md", "latex", "csv", "json"]),
        ("compare --metrics mae,si_ma", ["mae,si_mae"]),
        pytest.param("train e", ["edn", "edn-lite"], marks=pytest.mark.needs("torch")),
        ("convert --network p", ["poolnet"]),
        ("plot --figure size-", ["size-log", "size-quantile"]),
        ("plot --metric fo", ["found"]),
        ("plot --metric si_ma", ["si_mae"]),
        ("evaluate ma", []),  # a folder: left to the shell
    ],
)
def test_completion(line: str, expected: list[str]) -> None:
    words = f"sisod {line}"
    env = {
        "_SISOD_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    completed = CliRunner().invoke(app, [], prog_name="sisod", env=env)
    assert completed.exit_code == 0, completed.stderr
    assert completed.stdout.split() == expected


@pytest.mark.slow
def test_help_and_completion_import_nothing_slow() -> None:
    code = (
        "import sys; from sisod.cli import app, shared\n"
        "for kind in ('protocol', 'metrics', 'score', 'network', 'recipe', 'figure'):\n"
        "    getattr(shared, f'complete_{kind}')('x')\n"
        "for name in sys.argv[1:]:\n"
        "    app([name, '--help'], standalone_mode=False)\n"
        "print([name for name in ('torch', 'matplotlib', 'polars', 'lightning') if name in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, *NAMES], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("\n[]\n")
