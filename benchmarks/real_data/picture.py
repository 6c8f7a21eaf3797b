"""The README's picture: a photograph of MSOD, and what two networks that differ in the loss find on it.

    python -m benchmarks.real_data.picture --data ROOT --out DIR

trains EDN with a small encoder twice on 2000 images of DUTS-TR for two epochs, once with the plain loss
and once with `--loss balanced`, both with BCE and Dice, predicts and scores MSOD, and writes
`docs/example.png` and `benchmarks/results/example.json`. Finished steps are kept.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import polars as pl

import sisod
from benchmarks.timing import RESULTS

LOSSES = ("plain", "balanced")
IMAGE = "2205"
SETTINGS = ("--set", "data.size=128", "--set", 'loss.terms=["bce", "dice(squared=false)"]')
KEYS = ("mae", "si_mae")


def main() -> None:
    """Train, predict, score, draw; write the scores of the photograph and those of MSOD."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    msod, out, picture = options.data / "MSOD", options.out, RESULTS.parents[1] / "docs" / "example.png"
    for loss in LOSSES:
        size = ("--limit", "2000", "--epochs", "2", *SETTINGS, "--workers", "0")
        run("train", "edn-lite", "--data", options.data / "DUTS-TR", "--loss", loss, *size,
            "--out", out / "runs" / loss, "--resume")  # fmt: skip
        run("predict", out / "runs" / loss, msod / "image", out / "maps" / loss, "--resume")
    maps = [f"{loss} loss={out / 'maps' / loss}" for loss in LOSSES]
    run("evaluate", *maps, msod / "mask", "--dataset", "MSOD", "--gt-level", "128",
        "--out", out / "results", "--resume")  # fmt: skip
    results = [out / "results" / "MSOD" / f"{loss} loss" for loss in LOSSES]
    run("plot", *results, "--figure", "examples", "--example", IMAGE, "--images", msod / "image",
        "--metric", "recall_binary", "--format", "png", "--out", picture)  # fmt: skip
    scores = {}
    for loss, folder in zip(LOSSES, results, strict=True):
        result = sisod.Evaluation.load(folder)
        row = result.images.row(by_predicate=pl.col("image") == IMAGE, named=True)
        scores[loss] = {key: round(row[key], 4) for key in KEYS}
    (RESULTS / "example.json").write_text(json.dumps(scores, indent=1) + "\n")


def run(*arguments: object) -> None:
    """Run a command of sisod; stop if it fails."""
    subprocess.run([sys.executable, "-m", "sisod", *map(str, arguments)], check=True)  # noqa: S603


if __name__ == "__main__":
    main()
