"""Python processes that are started from here: the same modules, and nothing of the current folder.

By default Python puts the current folder first on the path of `python -m` and `python -c`: a file
`json.py` that lies there, perhaps downloaded with a data set, would run in every such process.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OUR_HOME = str(Path(__file__).parents[2])  # the folder on the path that sisod comes from


def module_settings(*, with_program: bool = False) -> dict[str, str]:
    """Return the environment variables of a process that imports what this one does.

    Of this process's path the current folder is left out, unless sisod itself lives there.

    Args:
        with_program: the process runs the caller's program again: keep the folder that this is in.
    """
    homes: list[str | None] = [_OUR_HOME]
    if with_program:
        homes.append(_home_of_program())
    paths = [
        os.path.abspath(path)  # noqa: PTH100  (an entry may be the empty text)
        for path in sys.path
        if not _is_same(path, os.curdir) or any(_is_same(path, home) for home in homes)
    ]
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}


@contextmanager
def safe_children() -> Iterator[None]:
    """Do the same for processes that libraries start: workers of loaders, one for each device."""
    settings = module_settings(with_program=True)
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _home_of_program() -> str | None:
    """The folder on the path that the program comes from; None for what was typed in or is built in."""
    module = sys.modules["__main__"]
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    spec = module.__spec__
    return str(Path(file).parents[0 if spec is None else spec.name.count(".")])


def _is_same(path: str, other: str | None) -> bool:
    if other is None:
        return False
    try:
        return os.path.samefile(path or os.curdir, other)  # noqa: PTH121  (may be the empty text)
    except OSError:  # one of them does not exist
        return False
