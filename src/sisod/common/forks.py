"""Whether polars works in this process: in a forked one it would wait for ever for its threads.

A fork copies the memory of a process but only one of its threads. polars keeps its threads from its
first query on, and in the copy it gives work to threads that do not exist. Scoring and training do not
use polars, so data loaders may fork.
"""

import os
import re
import sys
from pathlib import Path

from sisod.common.errors import InputError

_THREAD = re.compile(r"polars-\d+")  # names of the threads of its pool


class _State:
    """`forking`: polars had threads just before a fork; `lost`: a fork has left them behind."""

    forking = False
    lost = False


def check_not_forked() -> None:
    """Refuse to use polars where it would wait for ever."""
    if _State.lost:
        raise InputError(
            "this process was forked from one that had used polars, whose threads a fork does not copy, "
            "so tables would be waited for without end; start processes with "
            "multiprocessing.get_context('spawn')"
        )


def _before_fork() -> None:
    _State.forking = _has_threads()


def _after_fork_in_child() -> None:
    _State.lost |= _State.forking


def _has_threads() -> bool:
    if "polars" not in sys.modules:
        return False
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():  # not Linux: threads cannot be listed
        return True
    return any(_THREAD.fullmatch(_name(task)) for task in tasks.iterdir())


def _name(task: Path) -> str:
    try:
        return (task / "comm").read_text(encoding="utf-8").strip()
    except OSError:  # it has just ended
        return ""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
