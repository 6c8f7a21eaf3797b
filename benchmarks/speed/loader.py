"""What a sample of the training loader costs, and whether a step of EDN waits for it.

`python -m benchmarks.speed.loader` prints the table and writes `loader.json` and `loader.md` to
`benchmarks/results`; with `--quick` it measures little and writes nothing. Images are
synthetic JPEG files of 400 x 300 pixels. Costs are processor time, so that other work on the machine
does not count; waiting is wall-clock time inside the loader, with two workers filling it, while the
same process does EDN's steps.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader

from benchmarks.timing import TABLE_HEAD, Row, machine, markdown, progress, write_results
from sisod import networks
from sisod.data.datasets import Sample, open_dataset
from sisod.data.scenes import make_scenes
from sisod.losses import SizeInvariantLoss
from sisod.scoring.partition import cut_mask
from sisod.training.data import TrainingSet, augment, read_image, read_truth
from sisod.training.loaders import EpochSampler, collate, quiet_worker
from sisod.training.recipe_parts import DataPart

_TARGET = 0.012  # seconds a sample
_WORKERS = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and, unless quick, write."""
    parser = argparse.ArgumentParser(description="Measure the training loader.")
    parser.add_argument("--quick", action="store_true", help="few images, small steps, no files")
    quick = parser.parse_args(arguments).quick
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    part = DataPart(size=96 if quick else 384, crop=0.0625)
    with tempfile.TemporaryDirectory() as folder:
        samples = _write(Path(folder), 12 if quick else 60)
        parts = _parts(samples, part, rounds=1 if quick else 5)
        share = _wait_share(samples, part, batch=2 if quick else 4, n_steps=2 if quick else 5)
    facts = {
        "machine": machine(("sisod", "torch", "numpy")),
        "size": part.size,
        "parts": parts,
        "wait_share": share,
    }
    print(page(facts), end="")
    if not quick:
        write_results("loader", facts, page(facts))


def page(content: Mapping[str, Any]) -> str:
    """What loader.md says, from what loader.json holds."""
    size, parts, share = content["size"], content["parts"], content["wait_share"]
    whole = sum(parts.values())
    rows = [
        Row(
            f"one sample at {size} x {size}: read, augmented, frames found",
            (whole,),
            None,
            1e3 * whole,
            1e3 * _TARGET,
            at_least=False,
            unit="ms",
        ),
        *(
            Row(f"of it {what}", (cost,), None, 1e3 * cost, 1e3 * _TARGET, at_least=False, unit="ms")
            for what, cost in parts.items()
        ),
        Row("share of EDN's time spent waiting", (), None, 100 * share, 1, at_least=False, unit="%"),
    ]
    table = markdown(TABLE_HEAD, [row.cells() for row in rows])
    return f"Made by `python -m benchmarks.speed.loader`.\n\n{table}\n"


def _write(folder: Path, count: int) -> tuple[Sample, ...]:
    for kind in ("image", "mask"):
        (folder / kind).mkdir()
    for scene in make_scenes(count, seed=1, shape=(300, 400)):
        cv2.imwrite(str(folder / "image" / f"{scene.name}.jpg"), scene.image)
        cv2.imwrite(str(folder / "mask" / f"{scene.name}.png"), scene.mask)
    return open_dataset(folder).samples


def _parts(samples: Sequence[Sample], part: DataPart, *, rounds: int) -> dict[str, float]:
    """Seconds of processor time of a sample, the best round."""
    best: dict[str, float] = {}
    for _ in range(rounds + 1):
        costs = dict.fromkeys(("reading", "augmenting", "finding frames"), 0.0)
        for index, sample in enumerate(samples):
            times = [time.process_time()]
            planes = {"image": read_image(sample), "mask": read_truth(sample).astype(np.uint8) * 255}
            times.append(time.process_time())
            done = augment(planes, part, np.random.default_rng(index))
            times.append(time.process_time())
            cut_mask(done["mask"] >= 128)
            times.append(time.process_time())
            for what, cost in zip(costs, np.diff(times).tolist(), strict=True):
                costs[what] += cost / len(samples)
        best = costs if not best or sum(costs.values()) < sum(best.values()) else best
    return best


def _wait_share(samples: Sequence[Sample], part: DataPart, *, batch: int, n_steps: int) -> float:
    """Share of the time of EDN's steps, forward and backward, that goes by in the loader."""
    network = networks.create("edn").train()
    loss = SizeInvariantLoss("bce", "dice")
    loader = DataLoader(
        TrainingSet(samples, part, seed=0),
        batch_size=batch,
        sampler=EpochSampler(len(samples), step=batch, seed=0),
        collate_fn=collate,
        num_workers=_WORKERS,
        worker_init_fn=quiet_worker,
    )
    batches = iter(loader)
    next(batches)  # starting the workers is not waiting
    waited, start = 0.0, time.perf_counter()
    for step in range(n_steps):
        progress(f"  EDN step {step + 1} of {n_steps}")
        before = time.perf_counter()
        data = next(batches)
        waited += time.perf_counter() - before
        maps = network(network.input_spec.apply(data.images))
        loss(maps, data.labels["mask"].float() / 255, data.boxes).backward()
        network.zero_grad()
    return waited / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
