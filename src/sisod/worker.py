"""A process that scores batches: reads one JSON line per batch, writes its rows, answers with a line.

Started by `sisod.runners`. A process of our own, rather than Python's process pool, needs no
`if __name__ == "__main__"` in the caller's script, forks nothing, and ends with its parent.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import cv2

from sisod.batches import Job, score_batch
from sisod.errors import InputError
from sisod.files import write_whole
from sisod.memory import keep_freed_memory


def main() -> None:
    """Answer every line of standard input until it ends."""
    cv2.setNumThreads(1)  # the work is shared out by processes
    keep_freed_memory()
    parent = os.getppid()
    job = Job.from_json(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        answer = _answer(job, json.loads(line), parent)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _answer(job: Job, task: dict[str, Any], parent: int) -> dict[str, Any]:
    try:
        data = score_batch(job, task["pairs"]).to_bytes()
        if os.getppid() != parent:  # it was killed, and somebody may be at work in its folder
            raise SystemExit
        write_whole(Path(task["shard"]), data)
    except InputError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": error.strerror or str(error), "errno": error.errno}
    return {"images": len(task["pairs"])}


if __name__ == "__main__":
    main()
