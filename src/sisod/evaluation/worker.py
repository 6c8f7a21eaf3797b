"""A process that scores batches: reads one JSON line per batch, writes its rows, answers with a line.

Started by `sisod.evaluation.runners`. A process of our own, rather than Python's process pool, needs no
`if __name__ == "__main__"` in the caller's script, forks nothing, and ends with its parent.

Standard output is where libraries print, those in C as well, and one line of theirs among the answers
would end the run. So answers go through a duplicate of it, and what is printed goes to standard error.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import cv2

from sisod.common.errors import InputError
from sisod.common.memory import keep_freed_memory
from sisod.common.output import write_atomically
from sisod.evaluation.batches import Job, score_batch

# run by `python -c`: `-m` would import the package, and so OpenCV, before the first line of this file
START = (
    "import os; answers = os.dup(1); os.dup2(2, 1); "
    "from sisod.evaluation.worker import main; main(answers=answers)"
)
READY = "answers of the worker follow"  # what comes before it was printed while Python started


def main(*, answers: int) -> None:
    """Answer every line of standard input until it ends, on this file descriptor."""
    cv2.setNumThreads(1)  # the work is shared out by processes
    keep_freed_memory()
    parent = os.getppid()
    with os.fdopen(answers, "w", buffering=1, encoding="utf-8", newline="\n") as out:
        out.write(f"{READY}\n")
        job = Job.from_json(json.loads(sys.stdin.readline()))
        for line in sys.stdin:
            out.write(json.dumps(_answer(job, json.loads(line), parent)) + "\n")


def _answer(job: Job, task: dict[str, Any], parent: int) -> dict[str, Any]:
    try:
        data = score_batch(job, task["pairs"]).to_bytes()
        if os.getppid() != parent:  # it was killed, and somebody may be at work in its folder
            raise SystemExit
        write_atomically(Path(task["shard"]), data)
        if os.getppid() != parent:  # meanwhile
            Path(task["shard"]).unlink(missing_ok=True)
            raise SystemExit
    except InputError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": error.strerror or str(error), "errno": error.errno}
    return {"images": len(task["pairs"])}
