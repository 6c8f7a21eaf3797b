"""Cost of the losses over cells as ratios to the plain loss, and of finding the cells.

`python -m benchmarks.speed.loss_parts` prints the tables and writes `loss_parts.json` and
`loss_parts.md` to `benchmarks/results`; with `--quick` it does everything with fewer repetitions and
smaller maps, and writes nothing. Times are processor time of one thread, the least of interleaved runs:
what other programs do at the same time matters less than for medians.
"""

import os

# read when numpy and torch are first imported
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import cv2
import torch
from torch import Tensor

from benchmarks.speed.losses import make_truth
from benchmarks.timing import TABLE_HEAD, Call, Row, duration, machine, markdown, progress, write_results
from sisod import networks
from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of, labels_of

_PACKAGES = ("sisod", "numpy", "opencv-python-headless", "torch")
_N_IMAGES, _N_MAPS = 12, 5  # what EDN is trained with
_TERMS = ("bce", "dice")
_OPTIONS: dict[str, Any] = {
    "boxes": {"parts": "boxes"},
    "cells": {"parts": "cells"},
    "cells, image_weight 0.5": {"parts": "cells", "image_weight": 0.5},
}


@dataclass(frozen=True)
class Effort:
    """How much is measured: side of the maps, numbers of objects, repetitions."""

    side: int
    n_objects: tuple[int, ...]
    repetitions: int
    label_repetitions: int
    step_repetitions: int


_FULL = Effort(384, (2, 5, 20, 50), 25, 30, 3)
_QUICK = Effort(64, (2, 5), 1, 1, 1)


@dataclass(frozen=True)
class Times:
    """Seconds of processor time.

    Attributes:
        side: of the maps.
        n_objects: of every image.
        losses: name -> forward and backward, for each number of objects; "plain" is one of them.
        boxes: to find the boxes of an image, for each number of objects.
        cells: to find its cells too.
        step: a training step of EDN on two images, with the plain loss.
        alone: name -> the loss alone of such a step; the noise of a whole step would hide what it adds.
    """

    side: int
    n_objects: list[int]
    losses: dict[str, list[float]]
    boxes: list[float]
    cells: list[float]
    step: float
    alone: dict[str, float]

    def rows(self) -> list[Row]:
        """The numbers that have targets."""
        what = f"{_N_IMAGES} x {_N_MAPS} maps of {self.side} x {self.side}, BCE + Dice"
        objects = f"mean over {self.n_objects[0]} to {self.n_objects[-1]} objects an image"
        rows = [
            Row(
                what=f"{what}, {name}, {objects}; the plain loss",
                ours=(statistics.fmean(self.losses[name]),),
                peer=statistics.fmean(self.losses["plain"]),
                value=statistics.fmean(self.ratios(name)),
                target=1.3,
                at_least=False,
            )
            for name in _OPTIONS
            if name != "boxes"
        ]
        step = self.step + self.alone["cells"] - self.alone["plain"]
        rows.append(
            Row(
                what="one EDN step with cells, image_weight 0.5, 2 images of "
                f"{self.side} x {self.side}, from the losses alone; with the plain loss",
                ours=(step,),
                peer=self.step,
                value=step / self.step,
                target=1.05,
                at_least=False,
            )
        )
        rows.append(
            Row(
                what=f"finding the cells of an image of {self.n_objects[-1]} objects, in a worker",
                ours=(self.cells[-1],),
                peer=None,
                value=1e3 * self.cells[-1],
                target=1,
                at_least=False,
                unit="ms",
            )
        )
        return rows

    def ratios(self, name: str) -> list[float]:
        """The time of a loss over that of the plain loss, for each number of objects."""
        return [
            ours / plain for ours, plain in zip(self.losses[name], self.losses["plain"], strict=True)
        ]

    def table(self) -> str:
        """One line per number of objects."""
        head = [
            "objects",
            "plain",
            *(f"{name} / plain" for name in _OPTIONS),
            "boxes found",
            "cells found",
        ]
        lines = [
            [
                str(count),
                duration(self.losses["plain"][index]),
                *(f"{self.ratios(name)[index]:.2f}" for name in _OPTIONS),
                duration(self.boxes[index]),
                duration(self.cells[index]),
            ]
            for index, count in enumerate(self.n_objects)
        ]
        return markdown(head, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables and, unless quick, write them."""
    parser = argparse.ArgumentParser(description="Measure the losses over cells.")
    parser.add_argument("--quick", action="store_true", help="few repetitions, small sizes, no files")
    quick = parser.parse_args(arguments).quick
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    times = measure(_QUICK if quick else _FULL)
    print(_text(times))
    if not quick:
        content = {
            "machine": machine(_PACKAGES),
            "times": asdict(times),
            "rows": [asdict(row) | {"met": row.met} for row in times.rows()],
        }
        write_results("loss_parts", content, page(content))


def measure(effort: Effort) -> Times:
    """Time the losses, the finding of parts, and steps of EDN."""
    truths = [make_truth(_N_IMAGES, effort.side, count) for count in effort.n_objects]
    masks = [gt[0, 0] >= 0.5 for gt in truths]
    finders = {
        "boxes": [partial(boxes_of, mask, min_area=0) for mask in masks],
        "cells": [partial(labels_of, mask, min_area=0) for mask in masks],
    }
    progress("parts")
    found = least_times(finders, effort.label_repetitions)
    progress("losses")
    losses = least_times(_loss_calls(truths, effort.side), effort.repetitions)
    progress("one step of edn")
    step, losses_alone = _step_calls(effort.side)
    (seconds,) = least_times({"step": [step]}, effort.step_repetitions)["step"]
    alone = least_times(losses_alone, effort.repetitions)
    return Times(
        side=effort.side,
        n_objects=list(effort.n_objects),
        losses=losses,
        boxes=found["boxes"],
        cells=found["cells"],
        step=seconds,
        alone={name: seconds for name, (seconds,) in alone.items()},
    )


def least_times(contenders: Mapping[str, Sequence[Call]], repetitions: int) -> dict[str, list[float]]:
    """Return the least processor time of each call; contenders take turns, the first round warms up."""
    names = list(contenders)
    least = {name: [float("inf")] * len(contenders[name]) for name in names}
    for repetition in range(repetitions + 1):
        for index in range(len(contenders[names[0]])):
            first = (repetition + index) % len(names)
            for name in names[first:] + names[:first]:
                start = time.thread_time()
                contenders[name][index]()
                seconds = time.thread_time() - start
                if repetition:
                    least[name][index] = min(least[name][index], seconds)
        progress(f"  repetition {repetition} of {repetitions}")
    return least


def _loss_calls(truths: Sequence[Tensor], side: int) -> dict[str, list[Call]]:
    torch.manual_seed(0)
    maps = [torch.randn(_N_IMAGES, 1, side, side).requires_grad_() for _ in range(_N_MAPS)]

    def step(loss: torch.nn.Module, gt: Tensor, boxes: Tensor, labels: Tensor | None) -> None:
        for logits in maps:
            logits.grad = None
        loss(maps, gt, boxes, labels).backward()

    boxes = [boxes_of(gt, min_area=0) for gt in truths]
    calls: dict[str, list[Call]] = {
        "plain": [
            partial(step, PlainLoss(*_TERMS), gt, rows, None)
            for gt, rows in zip(truths, boxes, strict=True)
        ]
    }
    for name, options in _OPTIONS.items():
        kind, loss = options["parts"], SizeInvariantLoss(*_TERMS, **options)
        labels = [None if kind == "boxes" else labels_of(gt, min_area=0) for gt in truths]
        calls[name] = [
            partial(step, loss, gt, rows, found)
            for gt, rows, found in zip(truths, boxes, labels, strict=True)
        ]
    return calls


def _step_calls(side: int) -> tuple[Call, dict[str, list[Call]]]:
    """Return a step of EDN with the plain loss, and the losses of its maps alone."""
    torch.manual_seed(0)
    network = networks.create("edn")
    gt = make_truth(2, side, 2)
    images, boxes, labels = torch.rand(2, 3, side, side), boxes_of(gt), labels_of(gt)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-6)
    losses = {
        "plain": PlainLoss.for_network("edn"),
        "cells": SizeInvariantLoss.for_network("edn", parts="cells", image_weight=0.5),
    }
    maps = [logits.detach().requires_grad_() for logits in network(images)]

    def step() -> None:
        optimizer.zero_grad()
        losses["plain"](network(images), gt).backward()
        optimizer.step()

    def alone(loss: torch.nn.Module) -> None:
        torch.autograd.grad(loss(maps, gt, boxes, labels), maps)

    return step, {name: [partial(alone, loss)] for name, loss in losses.items()}


def _text(times: Times) -> str:
    return "\n\n".join([markdown(TABLE_HEAD, [row.cells() for row in times.rows()]), times.table()])


def page(content: Mapping[str, Any]) -> str:
    """What loss_parts.md says, from what loss_parts.json holds."""
    head = (
        "Made by `python -m benchmarks.speed.loss_parts` (processor time of one thread; the least of "
        "interleaved runs)."
    )
    return f"{head}\n\n{_text(Times(**content['times']))}\n"


if __name__ == "__main__":
    main()
