"""Seconds that `sisod compare` takes to draw images: 10,000 resamples of 5,000 images.

Run as `python -m benchmarks.speed.compare`; writes compare.json and compare.md to
`benchmarks/results`. `--quick` measures less and writes nothing. Seconds are those of the
processor: others may use the machine.
"""

import argparse
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

import sisod
from benchmarks.timing import machine, markdown, write_results
from sisod.analysis.comparison import compare
from sisod.data.scenes import make_scenes
from sisod.reproduction.demo import METHODS
from sisod.scoring.metrics import PAPER_KEYS

HEAD = ("what", "processor time")
CHOICES = {
    "the paper's nine metrics and the objects found": (*PAPER_KEYS, "found"),
    "maxima of mean curves too": "mae,si_mae,f_mean,si_f_mean,f_max,si_f_max,found",
    "everything": "all",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and unless quick write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer images, nothing written")
    quick = parser.parse_args(arguments).quick
    n_images, resamples = (200, 300) if quick else (5000, 10_000)
    a, b = (enlarged(result, n_images) for result in score_scenes().values())
    seconds = {}
    for what, metrics in CHOICES.items():
        begin = time.process_time()
        compare(a, b, metrics=metrics, resamples=resamples)
        seconds[what] = time.process_time() - begin
    facts = machine(("sisod", "numpy", "polars"))
    content = {"images": n_images, "resamples": resamples, "seconds": seconds, "machine": facts}
    print(page(content), end="")
    if not quick:
        write_results("compare", content, page(content))


def page(content: Mapping[str, Any]) -> str:
    """What compare.md says, from what compare.json holds."""
    counts = f"two methods, {content['images']} images, {content['resamples']} resamples"
    table = markdown(HEAD, [[what, f"{value:.1f} s"] for what, value in content["seconds"].items()])
    return f"Made by `python -m benchmarks.speed.compare`: {counts}.\n\n{table}\n"


def score_scenes() -> dict[str, sisod.Evaluation]:
    """Return the results of the demo's two methods on a few scenes."""
    scenes = make_scenes(40, shape=(48, 64))
    results = {}
    for method, predict in METHODS.items():
        evaluator = sisod.Evaluator()
        for scene in scenes:
            evaluator.update(predict(scene), scene.mask, name=scene.name)
        results[method] = evaluator.result()
    return results


def enlarged(result: sisod.Evaluation, n_images: int) -> sisod.Evaluation:
    """Return a result of many images, those of the given one drawn again."""
    chosen = np.random.default_rng(0).integers(0, result.images.height, n_images)
    names = pl.Series("image", [f"{i:06d}" for i in range(n_images)])
    ends = result.images["n_objects"].to_numpy().cumsum()
    starts = ends - result.images["n_objects"].to_numpy()
    rows = np.concatenate([np.arange(starts[i], ends[i]) for i in chosen])
    return dataclasses.replace(
        result,
        images=result.images[chosen].with_columns(names),
        image_curves=result.image_curves[chosen].with_columns(names),
        objects=result.objects[rows],
        counts=None if result.counts is None else result.counts[chosen].with_columns(names),
    )


if __name__ == "__main__":
    main()
