"""Environment of Python processes started here: the same modules, nothing from the current folder.

By default Python puts the current folder first on the path of `python -m` and `python -c`: a file
`json.py` in it, perhaps downloaded with a data set, would run in every such process.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_PACKAGE_PARENT = str(Path(__file__).parents[2])  # the folder on the path that sisod comes from


def default_jobs() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def module_settings(*, with_program: bool = False, folders: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment variables of a process that imports what this one does.

    The current folder is removed from the path, unless sisod itself or what the caller names is imported
    from it.

    Args:
        with_program: keep the folder of the caller's program too, which the process runs again.
        folders: keep these too; the process imports modules from them that the user has named.
    """
    kept: list[str | None] = [_PACKAGE_PARENT, *folders]
    if with_program:
        kept.append(_program_folder())
    paths = [
        os.path.abspath(path)  # noqa: PTH100  (an entry may be the empty text)
        for path in sys.path
        if not _is_same(path, os.curdir) or any(_is_same(path, folder) for folder in kept)
    ]
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}


@contextmanager
def safe_children() -> Iterator[None]:
    """Apply these settings to processes that libraries start, such as workers of data loaders."""
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


def _program_folder() -> str | None:
    """Return the folder from which the program is imported; None in an interactive session."""
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
