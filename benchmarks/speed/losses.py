"""Cost of the size-invariant loss as ratios to the plain loss, measured in one run on one thread.

`python -m benchmarks.speed.losses` prints the tables and writes `losses.json` and `losses.md` to
`benchmarks/results`; with `--quick` it does everything with fewer repetitions and smaller maps,
and writes nothing.
"""

import os

# read when numpy and torch are first imported
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.timing import (
    TABLE_HEAD,
    Call,
    Row,
    duration,
    interleaved_medians,
    machine,
    markdown,
    progress,
    write_results,
)
from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of, parts_of
from sisod.reproduction.loss_time import (
    Step,
    epochs_grid,
    measure_boxes,
    measure_step,
    paper_networks,
    preprocessing_grid,
)

_PACKAGES = ("sisod", "numpy", "opencv-python-headless", "torch")
_N_IMAGES, _N_MAPS = 12, 5  # what EDN is trained with
_N_MASKS = 16
_TERMS = ("bce", "dice")


@dataclass(frozen=True)
class Effort:
    """How much is measured: side of the maps, repetitions, numbers of frames, networks."""

    side: int
    repetitions: int
    loop_repetitions: int
    n_frames: tuple[int, ...]
    edn: tuple[int, int, int]  # images, side, repetitions
    networks: tuple[int, int, int]  # the same for the others


_FULL = Effort(384, 41, 3, (1, 2, 5, 10, 20, 50), (2, 384, 7), (2, 192, 7))
_QUICK = Effort(48, 1, 1, (1, 5), (2, 32, 1), (0, 0, 0))


@dataclass(frozen=True)
class Losses:
    """Seconds of forward and backward by number of frames an image.

    Attributes:
        n_frames: of every image.
        plain: `PlainLoss`.
        by_hand: the plain loss as everybody writes it.
        size_invariant: ours.
        loop: the size-invariant loss crop by crop, for the numbers of frames in `looped`.
    """

    side: int
    n_frames: list[int]
    plain: list[float]
    by_hand: list[float]
    size_invariant: list[float]
    looped: list[int]
    loop: list[float]

    def rows(self) -> list[Row]:
        """The two numbers that have targets."""
        ratios = [ours / plain for ours, plain in zip(self.size_invariant, self.plain, strict=True)]
        what = f"{_N_IMAGES} x {_N_MAPS} maps of {self.side} x {self.side}, BCE + Dice, boxes given"
        frames = f"{self.n_frames[0]} to {self.n_frames[-1]} frames an image"
        return [
            Row(
                what=f"{what}, mean over {frames}; the plain loss",
                ours=(statistics.fmean(self.size_invariant),),
                peer=statistics.fmean(self.plain),
                value=statistics.fmean(ratios),
                target=1.2,
                at_least=False,
            ),
            Row(
                what=f"{what}, growth over {frames}, ratio of ratios",
                ours=(self.size_invariant[0], self.size_invariant[-1]),
                peer=None,
                value=ratios[-1] / ratios[0],
                target=1.3,
                at_least=False,
            ),
        ]

    def table(self) -> str:
        """One line per number of frames."""
        loops = dict(zip(self.looped, self.loop, strict=True))
        lines = []
        for n, plain, hand, ours in zip(
            self.n_frames, self.plain, self.by_hand, self.size_invariant, strict=True
        ):
            loop = f"{loops[n] / plain:.2f}" if n in loops else "-"
            times = [duration(seconds) for seconds in (plain, hand, ours)]
            lines.append([str(n), *times, f"{ours / plain:.2f}", f"{ours / hand:.2f}", loop])
        head = ["frames", "plain", "plain by hand", "SI", "SI / plain", "SI / by hand", "loop / plain"]
        return markdown(head, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables and, unless quick, write them."""
    parser = argparse.ArgumentParser(description="Measure the losses.")
    parser.add_argument("--quick", action="store_true", help="few repetitions, small sizes, no files")
    quick = parser.parse_args(arguments).quick
    effort = _QUICK if quick else _FULL
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    losses = measure_losses(effort)
    progress("boxes")
    boxes = measure_boxes(_N_MASKS, repetitions=effort.repetitions)
    steps = measure_steps(effort)
    one_line = measure_one_line(effort.side, effort.repetitions)
    rows = [*one_line, *losses.rows(), _step_row(steps[0]), _boxes_row(boxes, steps[0])]
    text = _text(rows, losses, boxes, steps)
    print(text)
    if not quick:
        _write(rows, losses, boxes, steps)


def measure_losses(effort: Effort) -> Losses:
    """Time forward and backward of the losses, all numbers of frames next to each other."""
    progress("losses")
    torch.manual_seed(0)
    shape = (_N_IMAGES, 1, effort.side, effort.side)
    maps = [torch.randn(shape).requires_grad_() for _ in range(_N_MAPS)]
    truths = [make_truth(_N_IMAGES, effort.side, n) for n in effort.n_frames]
    boxes = [boxes_of(gt, min_area=0) for gt in truths]
    ours, plain = SizeInvariantLoss(*_TERMS), PlainLoss(*_TERMS)
    _check_agreement(maps, truths[0], boxes[0])
    contenders: dict[str, list[Call]] = {
        "plain": [partial(_step, plain, maps, gt) for gt in truths],
        "by hand": [partial(_step, plain_by_hand, maps, gt) for gt in truths],
        "ours": [partial(_step, ours, maps, gt, rows) for gt, rows in zip(truths, boxes, strict=True)],
    }
    seconds = interleaved_medians(contenders, repetitions=effort.repetitions)
    few = [index for index, n in enumerate(effort.n_frames) if n in (1, 5, 50)]
    loops = {"loop": [partial(_step, loop_by_hand, maps, truths[i], boxes[i]) for i in few]}
    looped = interleaved_medians(loops, repetitions=effort.loop_repetitions)
    return Losses(
        side=effort.side,
        n_frames=list(effort.n_frames),
        plain=seconds["plain"],
        by_hand=seconds["by hand"],
        size_invariant=seconds["ours"],
        looped=[effort.n_frames[index] for index in few],
        loop=looped["loop"],
    )


def measure_one_line(side: int, repetitions: int) -> list[Row]:
    """Time `loss(input, target)`, which finds the parts itself, and the same with the parts given."""
    progress("one line")
    torch.manual_seed(0)
    gt = make_truth(_N_IMAGES, side, 5)
    logits = torch.randn(gt.shape).requires_grad_()
    losses: dict[str, tuple[float, float, SizeInvariantLoss]] = {
        "boxes": (1.2, 1.15, SizeInvariantLoss(*_TERMS)),
        "cells, image_weight 0.5": (
            1.5,
            1.2,
            SizeInvariantLoss(*_TERMS, parts="cells", image_weight=0.5),
        ),
    }
    contenders: dict[str, list[Call]] = {"plain": [partial(_step, PlainLoss(*_TERMS), [logits], gt)]}
    for name, (_, _, loss) in losses.items():
        found = parts_of(gt, loss.weighting.parts).values()
        contenders[f"{name}: one line"] = [partial(_step, loss, [logits], gt)]
        contenders[f"{name}: parts given"] = [partial(_step, loss, [logits], gt, *found)]
    n_classes, n_images, small = 20, 4, side // 2
    classes = _make_classes(n_images, small, n_classes)
    maps = torch.randn((n_images, n_classes, small, small)).requires_grad_()
    plain = PlainLoss(*_TERMS, mode="multiclass")
    loss = SizeInvariantLoss(*_TERMS, mode="multiclass")
    contenders["classes plain"] = [partial(_step, plain, [maps], classes)]
    contenders["classes"] = [partial(_step, loss, [maps], classes)]
    seconds = {k: v[0] for k, v in interleaved_medians(contenders, repetitions=repetitions).items()}

    def row(what: str, name: str, peer: str, target: float) -> Row:
        ratio = seconds[name] / seconds[peer]
        return Row(what, (seconds[name],), seconds[peer], ratio, target, at_least=False)

    rows = []
    for kind, at in (("one line", 0), ("parts given", 1)):
        for name, limits in losses.items():
            what = f"{kind}, {name}: {_N_IMAGES} x 1 map of {side} x {side}, 5 objects; the plain loss"
            rows.append(row(what, f"{name}: {kind}", "plain", float(limits[at])))  # type: ignore[arg-type]
    what = f"one line, boxes, {n_classes} classes: {n_images} x {small} x {small}; the plain loss"
    return [*rows[:2], row(what, "classes", "classes plain", 1.3), *rows[2:]]


def _make_classes(n_images: int, side: int, n_classes: int) -> Tensor:
    """Return class maps (B, side, side) of ellipses, each of a class of its own."""
    gt = make_truth(n_images, side, 9)[:, 0]
    cell = side // 3
    rows = torch.arange(side) // cell
    return (gt * (1 + (rows[:, None] * 3 + rows) % (n_classes - 1))).long()


def measure_steps(effort: Effort) -> list[Step]:
    """Time whole training steps: EDN at full size, then the networks of the paper's table."""
    wanted = [("edn", *effort.edn)]
    if effort.networks[0]:
        wanted += [(name, *effort.networks) for name in paper_networks() if name != "edn"]
    steps = []
    for name, n_images, side, repetitions in wanted:
        progress(f"one step of {name}")
        gt = make_truth(n_images, side, 2)
        steps.append(measure_step(name, gt, repetitions=repetitions))
    return steps


def make_truth(n_images: int, side: int, n_frames: int) -> Tensor:
    """Return masks (B, 1, side, side) with ellipses of very different sizes on a grid."""
    rng = np.random.default_rng(n_frames)
    cells = int(np.ceil(np.sqrt(n_frames)))
    cell_side = side // cells
    gt = np.zeros((n_images, 1, side, side), dtype=np.uint8)
    for image in range(n_images):
        for y, x in [divmod(k, cells) for k in rng.permutation(cells**2)[:n_frames]]:
            axes = rng.integers(max(cell_side // 8, 2), cell_side // 2 - 1, size=2)
            centre = (int((x + 0.5) * cell_side), int((y + 0.5) * cell_side))
            cv2.ellipse(gt[image, 0], centre, (int(axes[0]), int(axes[1])), 0, 0, 360, 1, -1)
    return torch.from_numpy(gt).float()


def plain_by_hand(maps: Sequence[Tensor], gt: Tensor) -> Tensor:
    """The plain loss as everybody writes it."""
    total = gt.new_zeros(())
    for logits in maps:
        p = logits.sigmoid()
        overlap, squares = (
            (p * gt).sum(dim=(1, 2, 3)),
            (p * p).sum(dim=(1, 2, 3)) + (gt * gt).sum(dim=(1, 2, 3)),
        )
        total = total + functional.binary_cross_entropy_with_logits(logits, gt)
        total = total + (1 - 2 * overlap / squares.clamp(min=1e-7)).mean()
    return total


def loop_by_hand(maps: Sequence[Tensor], gt: Tensor, boxes: Tensor) -> Tensor:
    """The size-invariant loss crop by crop, from Eq. 16, normalised."""
    total = gt.new_zeros(())
    for image in range(len(gt)):
        frames = [row[1:] for row in boxes.tolist() if row[0] == image]
        background = torch.ones(gt.shape[-2:], dtype=torch.bool)
        for y0, x0, y1, x1 in frames:
            background[y0:y1, x0:x1] = False
        alpha = float(background.sum()) / sum((y1 - y0) * (x1 - x0) for y0, x0, y1, x1 in frames)
        for logits in maps:
            x, g = logits[image, 0], gt[image, 0]
            crops = [(x[y0:y1, x0:x1], g[y0:y1, x0:x1]) for y0, x0, y1, x1 in frames]
            bce = torch.stack(
                [functional.binary_cross_entropy_with_logits(*crop) for crop in crops]
            ).sum()
            outside = functional.binary_cross_entropy_with_logits(x[background], g[background])
            dice = torch.stack([plain_dice(*crop) for crop in crops]).mean()
            total = total + (bce + alpha * outside) / (len(frames) + alpha) + dice
    return total / len(gt)


def plain_dice(logits: Tensor, g: Tensor) -> Tensor:
    """Dice of one crop."""
    p = logits.sigmoid()
    return 1 - 2 * (p * g).sum() / ((p * p).sum() + (g * g).sum())


def _step(loss: Callable[..., Tensor], maps: Sequence[Tensor], *arguments: Tensor) -> None:
    for logits in maps:
        logits.grad = None
    loss(maps, *arguments).backward()  # type: ignore[no-untyped-call]


def _check_agreement(maps: Sequence[Tensor], gt: Tensor, boxes: Tensor) -> None:
    """Make sure that all compute the same numbers before their times are compared."""
    ours, loop = SizeInvariantLoss(*_TERMS)(maps, gt, boxes), loop_by_hand(maps, gt, boxes)
    torch.testing.assert_close(ours, loop, rtol=1e-4, atol=0)
    torch.testing.assert_close(PlainLoss(*_TERMS)(maps, gt), plain_by_hand(maps, gt), rtol=1e-4, atol=0)


def _step_row(step: Step) -> Row:
    return Row(
        what=f"one {step.network.upper()} step with the SI loss, {step.n_images} images of "
        f"{step.side} x {step.side}; with the plain loss",
        ours=(step.size_invariant,),
        peer=step.plain,
        value=step.ratio,
        target=1.05,
        at_least=False,
    )


def _boxes_row(boxes: float, step: Step) -> Row:
    return Row(
        what="finding the boxes of an image, in a worker; an image's share of an EDN step",
        ours=(boxes,),
        peer=step.plain / step.n_images,
        value=boxes * step.n_images / step.plain,
        target=0.01,
        at_least=False,
    )


def _text(rows: Sequence[Row], losses: Losses, boxes: float, steps: Sequence[Step]) -> str:
    parts = [
        markdown(TABLE_HEAD, [row.cells() for row in rows]),
        losses.table(),
        f"Finding the boxes of a mask of 384 x 384: {duration(boxes)} (the paper: 132 ms).",
        epochs_grid(steps).markdown(),
        "Whole steps differ by the noise of the machine, what the losses alone add far less. Beside a "
        "network on a CPU every loss looks cheap: the table of the losses alone says more.",
        preprocessing_grid(boxes).markdown(),
    ]
    return "\n\n".join(parts)


def _write(rows: Sequence[Row], losses: Losses, boxes: float, steps: Sequence[Step]) -> None:
    known = {
        "machine": machine(_PACKAGES),
        "rows": [asdict(row) | {"met": row.met} for row in rows],
        "losses": asdict(losses),
        "boxes_seconds": boxes,
        "steps": [asdict(step) | {"ratio": step.ratio} for step in steps],
    }
    write_results("losses", known, page(known))


def page(content: Mapping[str, Any]) -> str:
    """What losses.md says, from what losses.json holds."""
    rows = [Row.saved(row) for row in content["rows"]]
    steps = [
        Step(**{key: value for key, value in step.items() if key != "ratio"})
        for step in content["steps"]
    ]
    text = _text(rows, Losses(**content["losses"]), content["boxes_seconds"], steps)
    head = "Made by `python -m benchmarks.speed.losses` (one thread; medians of interleaved runs)."
    return f"{head}\n\n{text}\n"


if __name__ == "__main__":
    main()
