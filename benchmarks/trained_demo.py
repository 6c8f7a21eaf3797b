"""Results of the second part of `sisod demo`, for the documents.

`python -m benchmarks.trained_demo [FOLDER]` writes trained_demo.md, the table as printed, and
trained_demo.json, its scores, to `benchmarks/results`.
"""

import io
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import polars as pl
from rich.console import Console

import sisod
from benchmarks.timing import RESULTS, machine
from sisod.reproduction.demo_training import KEYS, Plan, TrainedDemo, run_trained_demo


def main(folder: Path) -> None:
    """Run the demo and write its results."""
    demo = run_trained_demo(folder)
    (RESULTS / "trained_demo.md").write_text(as_printed(demo))
    facts = {
        "plan": asdict(demo.plan),
        "scores": {
            name: {key: result.summary[key] for key in KEYS} for name, result in demo.results.items()
        },
        "seconds": json.loads((folder / "run.json").read_text())["seconds"],
        "machine": machine(("sisod", "torch", "numpy")),
    }
    (RESULTS / "trained_demo.json").write_text(json.dumps(facts, indent=2) + "\n")


def saved() -> TrainedDemo:
    """Return the demo as it was when the files were written."""
    facts = json.loads((RESULTS / "trained_demo.json").read_text())
    empty = pl.DataFrame()
    results = {
        name: sisod.Evaluation(scores, {}, empty, empty, empty, empty, sisod.PROTOCOLS["default"])
        for name, scores in facts["scores"].items()
    }
    return TrainedDemo(Plan(**facts["plan"] | {"seeds": tuple(facts["plan"]["seeds"])}), results)


def as_printed(demo: TrainedDemo) -> str:
    """Return the output of the command as a code block."""
    console = Console(width=140, file=io.StringIO())
    for table in demo.grid().terminal(console.width):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    return "\n".join(["```text", *lines, demo.caption(), demo.verdict(), "```", ""])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name) / "trained")
