"""A process that scores batches or shards: reads a JSON line for each, answers with one and the rows.

Started by `sisod.evaluation.runners`. A process of our own, rather than Python's process pool, needs no
`if __name__ == "__main__"` in the caller's script, forks nothing, and ends with its parent.

Standard output is where libraries print, those in C as well, and one line of theirs among the answers
would end the run. So answers go through a duplicate of it, and printed text goes to standard error.
"""

import json
import os
import queue
import sys
import threading
from collections.abc import Iterator
from typing import Any

import cv2

from sisod.common.errors import InputError
from sisod.common.memory import keep_freed_memory
from sisod.evaluation.request import Request
from sisod.evaluation.shards import score_task

# run by `python -c`: `-m` would import the package, and so OpenCV, before the first line of this file
START = (
    "import os; answers = os.dup(1); os.dup2(2, 1); "
    "from sisod.evaluation.worker import main; main(answers=answers)"
)
READY = "answers of the worker follow"  # lines before this one were printed while Python started


def main(*, answers: int) -> None:
    """Answer every line of standard input until it ends, on this file descriptor."""
    cv2.setNumThreads(1)  # the work is divided among processes
    keep_freed_memory()
    parent = os.getppid()
    with os.fdopen(answers, "wb") as out:
        out.write(f"{READY}\n".encode())
        out.flush()
        description = json.loads(sys.stdin.readline())
        request: Request | None = None
        for line in _lines():
            try:
                request = request or Request.from_json(description)  # which may import a metric
                rows = score_task(request, json.loads(line))
                answer: dict[str, Any] = {"bytes": len(rows)}
            except InputError as error:
                answer, rows = {"error": str(error)}, b""
            if os.getppid() != parent:  # it was killed: nobody reads any more
                return
            out.write(json.dumps(answer).encode() + b"\n" + rows)
            out.flush()


def _lines() -> Iterator[str]:
    """Give the lines of standard input, read ahead by a thread.

    Otherwise both processes could wait for ever: the parent until there is room for its next line in one
    pipe, and this one until the parent reads the rows that fill the other.
    """
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    return iter(lines.get, "")
