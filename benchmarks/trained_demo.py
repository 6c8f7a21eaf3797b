"""The second part of `sisod demo`, kept for the documents: `python benchmarks/trained_demo.py [FOLDER]`.

Writes trained_demo.md, the tables as printed, trained_demo_short.md, a sentence on them, and
trained_demo.json, beside itself.
"""

import io
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from timing import machine

from sisod.training.demo import GROUPS, TrainedDemo, run_trained_demo, tables_of, verdict

HERE = Path(__file__).parent


def main(folder: Path) -> None:
    """Run it and write what it found."""
    found = run_trained_demo(folder)
    record = json.loads((folder / "run.json").read_text())
    (HERE / "trained_demo.md").write_text(as_printed(found))
    (HERE / "trained_demo_short.md").write_text(in_short(found) + "\n")
    facts = {"seconds": record["seconds"], "machine": machine(("sisod", "torch", "numpy"))}
    (HERE / "trained_demo.json").write_text(json.dumps(facts, indent=2) + "\n")


def as_printed(found: TrainedDemo) -> str:
    """What the command prints, as a code block."""
    console = Console(width=110, file=io.StringIO())
    for table in tables_of(found):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    return "\n".join(["```text", *lines, verdict(found), "```", ""])


def in_short(found: TrainedDemo) -> str:
    """The main numbers in a sentence."""
    smallest = found.by_size(*GROUPS[0])
    share = [f"{smallest[loss]['found'].mean():.2f}" for loss in ("plain", "si")]
    scores = [
        f"{title} {found.scores(key)['plain'].mean():.3f} and {found.scores(key)['si'].mean():.3f}"
        for key, title in (("si_mae", "SI-MAE"), ("si_f_mean", "SI-F"), ("mae", "MAE"))
    ]
    return (
        f"Objects under {100 * GROUPS[0][1]:g} % of the image that it finds: {share[0]} of them with "
        f"the plain loss,\n{share[1]} with the size-invariant one; {', '.join(scores)}."
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name) / "trained")
