"""Results of the second part of `sisod demo`, for the documents.

`python -m benchmarks.trained_demo [FOLDER]` writes to `benchmarks/results`: trained_demo.md, the tables
as printed; trained_demo_short.md, a summary of them; and the data of both, trained_demo.json and
trained_demo.parquet.
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
from sisod.common.files import read_table
from sisod.reproduction.demo_training import Plan, TrainedDemo, run_trained_demo
from sisod.scoring.metrics import PAPER_KEYS

_OBJECT_COLUMNS = ("share", "recall_binary")


def main(folder: Path) -> None:
    """Run the demo and write its results."""
    demo = run_trained_demo(folder)
    record = json.loads((folder / "run.json").read_text())
    (RESULTS / "trained_demo.md").write_text(as_printed(demo))
    (RESULTS / "trained_demo_short.md").write_text(in_short(demo) + "\n")
    facts = {
        "plan": asdict(demo.plan),
        "scores": [
            {"loss": loss, "seed": seed} | {key: result.summary[key] for key in PAPER_KEYS}
            for (loss, seed), result in demo.results.items()
        ],
        "seconds": record["seconds"],
        "machine": machine(("sisod", "torch", "numpy")),
    }
    (RESULTS / "trained_demo.json").write_text(json.dumps(facts, indent=2) + "\n")
    objects = [
        result.objects.select(_OBJECT_COLUMNS).with_columns(loss=pl.lit(loss), seed=pl.lit(seed))
        for (loss, seed), result in demo.results.items()
    ]
    pl.concat(objects).write_parquet(RESULTS / "trained_demo.parquet", compression_level=19)


def saved() -> TrainedDemo:
    """Return the demo as it was when the files were written."""
    facts = json.loads((RESULTS / "trained_demo.json").read_text())
    objects = read_table(RESULTS / "trained_demo.parquet")
    results = {}
    for scores in facts["scores"]:
        loss, seed = scores["loss"], scores["seed"]
        results[loss, seed] = sisod.Evaluation(
            summary={key: scores[key] for key in PAPER_KEYS},
            defined={},
            images=pl.DataFrame(),
            objects=objects.filter((pl.col("loss") == loss) & (pl.col("seed") == seed)),
            curves=pl.DataFrame(),
            image_curves=pl.DataFrame(),
            protocol=sisod.PROTOCOLS["default"],
        )
    plan = Plan(**facts["plan"] | {"seeds": tuple(facts["plan"]["seeds"])})
    return TrainedDemo(plan, results)


def as_printed(demo: TrainedDemo) -> str:
    """Return the output of the command as a code block."""
    console = Console(width=110, file=io.StringIO())
    for table in demo.grid().terminal(console.width):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    return "\n".join(["```text", *lines, demo.caption(), "```", ""])


def in_short(demo: TrainedDemo) -> str:
    """Return the main numbers in a sentence."""
    values = demo.scores()
    share = [f"{100 * found.mean():.0f} %" for found in values["found, 0-0.3 %"]]
    scores = [
        f"{title} {values[key][0].mean():.3f} and {values[key][1].mean():.3f}"
        for key, title in (("si_mae", "SI-MAE"), ("si_f_mean", "SI-F"), ("mae", "MAE"))
    ]
    return (
        f"Of the objects under 0.3 % of the image it finds {share[0]} with the plain "
        f"loss and {share[1]} with the\nsize-invariant one; {', '.join(scores)}."
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name) / "trained")
