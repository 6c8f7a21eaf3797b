"""A program that makes modules unimportable, then runs commands and Python code without them.

    python run_without_extras.py WORK '["COMMAND", ...]' '["CODE", ...]' MODULE...

Prints one JSON line: the names of all commands; of each COMMAND the exit code, standard output, standard
error and the exception that was not caught; of each CODE the kinds and the text of its exception.
"""

import json
import os
import sys
from importlib.abc import MetaPathFinder
from typing import Any


class Blocker(MetaPathFinder):
    """Hides packages, as if they were not installed."""

    def __init__(self, modules: list[str]) -> None:
        self.modules = modules

    def find_spec(self, name: str, *_: Any) -> None:
        """Raise ImportError for the hidden packages."""
        if name.partition(".")[0] in self.modules:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main(work: str, commands: list[str], codes: list[str], modules: list[str]) -> None:
    """Run the commands and the code without the modules."""
    sys.meta_path.insert(0, Blocker(modules))
    os.chdir(work)
    from typer.main import get_command
    from typer.testing import CliRunner

    from sisod.cli import app

    done: dict[str, Any] = {"names": sorted(get_command(app).commands)}  # type: ignore[attr-defined]
    for index, command in enumerate(commands):
        out = f"out{'-'.join(modules)[:40]}{index}"
        result = CliRunner().invoke(app, command.format(out=out).split())
        raised = not isinstance(result.exception, SystemExit | None)
        done[command] = [result.exit_code, result.stdout, result.stderr, repr(result.exception) * raised]
    for code in codes:
        try:
            exec(code, {})  # noqa: S102
        except Exception as error:
            done[code] = [isinstance(error, ImportError), isinstance(error, ValueError), str(error)]
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:])
