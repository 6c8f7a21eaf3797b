"""How a command line is parsed: help without noise, and usage errors as one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from sisod.common.arguments import unknown_name_message
from sisod.common.streams import usable_streams

HELP_OPTIONS = {"help_option_names": ["--help", "-h"]}
# what typer raises for a wrong command line; it exports only this one of its subclasses
_CommandLineError: Any = typer.BadParameter.__bases__[0]


class Command(TyperCommand):
    """One command."""

    def get_params(self, ctx: Any) -> Any:
        """Return arguments and options as the help shows them."""
        return _without_noise(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002  (typer passes it)
        """Return the words of the usage line: arguments by the names that the help gives them."""
        arguments = (param for param in self.params if isinstance(param, TyperArgument))
        return ["[OPTIONS]", *(param.metavar or str(param.name).upper() for param in arguments)]


class Commands(TyperGroup):
    """The group of all commands, run with standard streams that can be written to."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command."""
        with usable_streams():
            return super().main(*args, **options)

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Parse the options in front of the command."""
        with _one_sentence():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Parse the rest and run the command."""
        with _one_sentence():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command; name the nearest if it is unknown."""
        if args[0] not in self.commands and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(unknown_name_message("command", args[0], self.commands))
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: Any) -> Any:
        """Return the options as the help shows them."""
        return _without_noise(super().get_params(ctx))


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Print an error of the command line like all other errors, in one line; exit with 2."""
    try:
        yield
    except _CommandLineError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help, printed already
            raise
        message = " ".join(_message(error).split()).rstrip(".")
        advice = "" if error.ctx is None else f"; see {error.ctx.command_path} --help"
        typer.echo(f"error: {message}{advice}", err=True)
        raise typer.Exit(error.exit_code) from None


def _message(error: Any) -> str:
    """Return the message; of an unknown option with the nearest ones, in the same words always."""
    nearest = sorted(getattr(error, "possibilities", None) or ())
    if nearest:
        return f"{error.message}; did you mean {' or '.join(nearest)}?"
    # newer versions of typer check values with pydantic, which puts its own words in front
    return str(error.format_message()).replace(": Value error, ", ": ")


def _without_noise(params: list[Any]) -> list[Any]:
    """Show no type of flags, and of arguments only the name: `<bool>` and `<list[str]>` say nothing."""
    for param in params:
        if isinstance(param, TyperOption) and param.is_flag:
            param.metavar = ""
        elif isinstance(param, TyperArgument) and param.metavar is not None:
            param.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # noqa: ARG005
    return params
