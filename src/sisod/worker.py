"""A process that scores batches: reads one JSON line per batch, writes its rows, answers with a line.

Started by `sisod.runners`. A process of our own, rather than Python's process pool, needs no
`if __name__ == "__main__"` in the caller's script, forks nothing, and ends with its parent.
"""

import json
import sys
from pathlib import Path
from typing import Any

import cv2

from sisod.batches import Job, score_batch
from sisod.errors import InputError
from sisod.files import write_whole


def main() -> None:
    """Answer every line of standard input until it ends."""
    cv2.setNumThreads(1)  # the work is shared out by processes
    job = Job.from_json(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(job, json.loads(line))) + "\n")
        sys.stdout.flush()


def _answer(job: Job, task: dict[str, Any]) -> dict[str, Any]:
    try:
        write_whole(Path(task["shard"]), score_batch(job, task["pairs"]).to_bytes())
    except (InputError, OSError) as error:
        return {"error": str(error)}
    return {"images": len(task["pairs"])}


if __name__ == "__main__":
    main()
