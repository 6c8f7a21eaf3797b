"""The command line `sisod`, run inside the test's own process, and its error messages."""

from collections.abc import Mapping
from pathlib import Path

from typer.testing import CliRunner, Result

from helpers.platforms import slashes
from sisod.cli import app


def run(*arguments: str | Path | int, env: Mapping[str, str] | None = None) -> Result:
    """Run `sisod` with these arguments."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=env)


def error_message(result: Result, *, exit_codes: tuple[int, ...] = (1,)) -> str:
    """Check that a command ended with one line `error: ...` and no traceback; return its message."""
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in exit_codes, result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return slashes(result.stderr.removeprefix("error: ").rstrip("\n"))


def refusal(*arguments: str | Path | int) -> str:
    """Run a command that must be refused; return its error message."""
    return error_message(run(*arguments))
