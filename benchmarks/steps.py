"""Whole training steps with the plain and the size-invariant loss, beside the paper's tables of cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from timing import Row, interleaved_medians, markdown, milliseconds, progress
from torch import Tensor, nn

from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of

NO_NETWORKS = "skipped: no networks"
# the paper, "Practical training cost per epoch": seconds on a GeForce RTX 3090, plain and size-invariant
PAPER_EPOCHS = {
    "edn": (340.0, 543.8),
    "poolnet": (523.5, 690.2),
    "icon": (162.0, 340.1),
    "gatenet": (561.2, 1270.2),
    "ldf": (109.2, 244.5),
}
# the paper, "Practical pre-process time for each dataset": images, seconds of stages (a) and (b), and
# the total as printed
PAPER_PREPROCESSING = {
    "DUTS-TE": (5019, 474.0, 188.2, 658.2),
    "ECSSD": (1000, 91.8, 40.5, 132.3),
    "DUT-OMRON": (5168, 470.7, 220.1, 690.8),
    "HKU-IS": (4447, 508.8, 190.1, 698.9),
    "XPIE": (10000, 1432.2, 316.5, 1748.7),
}


@dataclass(frozen=True)
class Step:
    """Seconds of one training step: forward, backward, optimiser.

    Attributes:
        plain: with the plain loss.
        size_invariant: with the size-invariant loss.
        added: by how much the losses differ, forward and backward of the loss alone. Noise of a whole
            step hides so small a difference.
    """

    network: str
    side: int
    n_images: int
    plain: float
    size_invariant: float
    added: float

    @property
    def ratio(self) -> float:
        """How many times as long the step with the size-invariant loss takes."""
        return self.size_invariant / self.plain

    def row(self) -> Row:
        """The step as a line of the main table."""
        return Row(
            what=f"one {self.network.upper()} step with the SI loss, {self.n_images} images of "
            f"{self.side} x {self.side}; with the plain loss",
            ours=(self.size_invariant,),
            peer=self.plain,
            value=self.ratio,
            target=1.05,
            at_least=False,
        )


def measure_step(network: str, gt: Tensor, *, repetitions: int) -> Step | None:
    """Time a step of a network with random weights; None where there are no networks."""
    if find_spec("sisod.networks") is None:
        return None
    progress(f"one step of {network}")
    torch.manual_seed(0)
    module: nn.Module = import_module("sisod.networks").create(network)
    images = torch.rand(len(gt), 3, *gt.shape[-2:])
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-6)
    boxes = boxes_of(gt)
    labels = {"mask": gt, "body": gt, "detail": gt} if network == "ldf" else gt
    losses: dict[str, Callable[..., Tensor]] = {
        "plain": PlainLoss.for_network(network),
        "si": SizeInvariantLoss.for_network(network),
    }

    def step(loss: Callable[..., Tensor]) -> None:
        optimizer.zero_grad()
        loss(module(images), labels, boxes).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def loss_alone(loss: Callable[..., Tensor], maps: Sequence[Tensor]) -> None:
        torch.autograd.grad(loss(maps, labels, boxes), maps)

    calls = {name: [partial(step, loss)] for name, loss in losses.items()}
    seconds = interleaved_medians(calls, repetitions=repetitions)
    maps = [map_.detach().requires_grad_() for map_ in module(images)]
    calls = {name: [partial(loss_alone, loss, maps)] for name, loss in losses.items()}
    alone = interleaved_medians(calls, repetitions=10 * repetitions)
    return Step(
        network=network,
        side=gt.shape[-1],
        n_images=len(gt),
        plain=seconds["plain"][0],
        size_invariant=seconds["si"][0],
        added=alone["si"][0] - alone["plain"][0],
    )


def epochs_table(steps: Sequence[Step | None]) -> str:
    """The paper's table of training cost with our ratios beside."""
    ours = {step.network: step for step in steps if step is not None}
    absent = "not measured" if ours else NO_NETWORKS
    lines = []
    for network, (plain, size_invariant) in PAPER_EPOCHS.items():
        step = ours.get(network)
        ours_here = [absent, "-", "-"]
        if step is not None:
            times = f"{step.size_invariant:.3g} s / {step.plain:.3g} s, {step.side} x {step.side}"
            ours_here = [times, f"{step.ratio:.3f}", f"{1 + step.added / step.plain:.4f}"]
        paper = [f"{plain:g} s", f"{size_invariant:g} s", f"{size_invariant / plain:.2f}"]
        lines.append([network, *paper, *ours_here])
    head = ["network", "paper, epoch, plain", "paper, epoch, SI", "ratio"]
    return markdown([*head, "ours, step, SI / plain", "ratio", "ratio, from the losses alone"], lines)


def preprocessing_table(seconds_per_image: float) -> str:
    """The paper's table of preprocessing beside ours, which is no step of its own."""
    lines = []
    for name, (n_images, components, weights, total) in PAPER_PREPROCESSING.items():
        ours = f"{seconds_per_image * n_images:.2g} s"
        each = milliseconds(total / n_images)
        lines.append(
            [name, str(n_images), f"{components:g} s", f"{weights:g} s", f"{total:g} s", each, ours]
        )
    head = ["data set", "images", "paper (a)", "paper (b)", "paper, total", "an image", "ours, boxes"]
    return markdown(head, lines)


def facts(steps: Sequence[Step | None]) -> list[dict[str, Any]]:
    """The steps for the JSON file."""
    return [
        {**vars(step), "ratio": step.ratio} if step is not None else {"skipped": NO_NETWORKS}
        for step in steps
    ]
