"""The time that the size-invariant loss takes on this machine, beside the paper's two tables of time.

The paper's tables are seconds per epoch on a GeForce RTX 3090, and seconds to preprocess the masks of a
data set. Machines differ, so ratios are compared: the same training step with either loss.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sisod import networks, paper
from sisod.common.grid import Format, Grid, render
from sisod.common.streams import progress_bar
from sisod.data.catalogue import KNOWN
from sisod.data.scenes import textured_scenes
from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of
from sisod.reproduction.stopwatch import duration, interleaved_medians, machine

_PACKAGES = ("sisod", "torch", "numpy", "opencv-python-headless")
_LOSS_REPETITIONS = 10  # times as many for the loss alone: it is quick, the difference small


class BenchSize(NamedTuple):
    """How much is measured: encoder, side of the images, timed repetitions, masks to find boxes in."""

    encoder: str
    side: int
    repetitions: int
    n_masks: int


FULL = BenchSize("resnet50", 384, 3, 16)
QUICK = BenchSize("efficientnet_lite0", 64, 1, 4)


@dataclass(frozen=True)
class Step:
    """Seconds of one training step: forward, backward, optimiser.

    Attributes:
        network: its name.
        side: of the images.
        n_images: of the step.
        plain: with the plain loss.
        size_invariant: with the size-invariant loss.
        added: difference of the two losses, forward and backward of the loss alone. The noise of a
            whole step would hide so small a difference.
    """

    network: str
    side: int
    n_images: int
    plain: float
    size_invariant: float
    added: float

    @property
    def ratio(self) -> float:
        """Time of a step with the size-invariant loss, divided by that with the plain loss."""
        return self.size_invariant / self.plain

    @property
    def ratio_of_losses(self) -> float:
        """The same, computed from the times of the losses alone, which are less noisy."""
        return 1 + self.added / self.plain


@dataclass(frozen=True)
class Bench:
    """The measurements.

    Attributes:
        steps: one for each network of the paper's table.
        boxes_seconds: to compute the boxes of one mask of 384 x 384, our only preprocessing.
        machine: facts about the hardware and versions, without a name.
    """

    steps: tuple[Step, ...]
    boxes_seconds: float
    machine: dict[str, Any]

    def grids(self) -> dict[str, Grid]:
        """Return the paper's two tables with our times beside them, by title."""
        preprocessing = preprocessing_grid(self.boxes_seconds)
        return {"Training cost": epochs_grid(self.steps), "Preprocessing": preprocessing}

    def render(self, kind: Format) -> str:
        """Return the tables for a document, with their caption; or the measurements for a program."""
        grids, content = list(self.grids().values()), self.content()
        if kind in ("csv", "json"):
            return render(grids[0], content["steps"], content, kind)
        return "\n\n".join([*(render(grid, (), None, kind) for grid in grids), self.caption()])

    def content(self) -> dict[str, Any]:
        """Return everything in the form that is written as JSON."""
        ratios = ({"ratio": step.ratio, "ratio_of_losses": step.ratio_of_losses} for step in self.steps)
        content = asdict(self)
        return content | {"steps": [a | b for a, b in zip(content["steps"], ratios, strict=True)]}

    def caption(self) -> str:
        """Return how the numbers were obtained, and their limits."""
        device = self.machine["device"]
        cheap = " Beside a network on a CPU every loss looks cheap." if device == "cpu" else ""
        misprints = (
            f" The paper prints {misprint.printed} s for {' '.join(misprint.location)}; "
            f"{misprint.value:g} s is {misprint.reason}."
            for misprint in paper.misprints()
            if misprint.table == "preprocessing"
        )
        return (
            f"Measured on {device}, encoder {self.machine['encoder']}, synthetic scenes; compare "
            "ratios, not the seconds of two machines. The times of whole steps are noisy, those of the "
            f"losses alone far less.{cheap}{''.join(misprints)}"
        )


def run_bench(size: BenchSize = FULL) -> Bench:
    """Time a step of each of the paper's networks with both losses, and the computation of boxes.

    Runs on the first GPU if there is one.
    """
    names = paper_networks()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    steps = []
    with progress_bar("measuring", len(names) + 1) as advance:
        boxes = measure_boxes(size.n_masks, repetitions=size.repetitions)
        advance(1)
        for name in names:
            side = max(size.side, 128) if name == "poolnet" else size.side
            gt = torch.stack(_masks(2, side))[:, None].float()
            steps.append(
                measure_step(name, gt, repetitions=size.repetitions, encoder=size.encoder, device=device)
            )
            advance(1)
    facts = machine(_PACKAGES, threads=torch.get_num_threads()) | {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "encoder": size.encoder,
    }
    return Bench(tuple(steps), boxes, facts)


def paper_networks() -> tuple[str, ...]:
    """Return the networks of the paper's table of training cost, by their names in `sisod.networks`."""
    return tuple(name.lower() for name in paper.table("time_cost")["name"])


def measure_step(
    network: str, gt: Tensor, *, repetitions: int, encoder: str = "resnet50", device: str = "cpu"
) -> Step:
    """Time a step of a network with random weights on random images.

    Args:
        network: one of the paper's.
        gt: masks (B, 1, H, W) of the images.
        repetitions: that are timed.
        encoder: of the network.
        device: as PyTorch names it.
    """
    torch.manual_seed(0)
    module = networks.create(network, encoder=encoder).to(device)
    images = torch.rand(len(gt), 3, *gt.shape[-2:]).to(device)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-6)
    boxes, gt = boxes_of(gt).to(device), gt.to(device)
    labels = dict.fromkeys(module.targets, gt) if module.auxiliary_targets() else gt
    losses: dict[str, Callable[..., Tensor]] = {
        "plain": PlainLoss.for_network(network),
        "si": SizeInvariantLoss.for_network(network),
    }

    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize()  # a call returns before the GPU has finished

    def step(loss: Callable[..., Tensor]) -> None:
        optimizer.zero_grad()
        loss(module(images), labels, boxes).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        wait()

    def loss_alone(loss: Callable[..., Tensor]) -> None:
        torch.autograd.grad(loss(maps, labels, boxes), maps)
        wait()

    def medians(call: Callable[..., None], repetitions: int) -> tuple[float, float]:
        calls = {name: [partial(call, loss)] for name, loss in losses.items()}
        seconds = interleaved_medians(calls, repetitions=repetitions)
        return seconds["plain"][0], seconds["si"][0]

    plain, si = medians(step, repetitions)
    maps = [logits.detach().requires_grad_() for logits in module(images)]
    plain_alone, si_alone = medians(loss_alone, _LOSS_REPETITIONS * repetitions)
    return Step(network, gt.shape[-1], len(gt), plain, si, si_alone - plain_alone)


def measure_boxes(n_masks: int, *, repetitions: int) -> float:
    """Return the seconds that a worker takes to compute the boxes of one mask of 384 x 384."""
    calls = {"boxes": [partial(boxes_of, mask) for mask in _masks(n_masks, 384)]}
    return statistics.fmean(interleaved_medians(calls, repetitions=repetitions)["boxes"])


def _masks(count: int, side: int) -> list[Tensor]:
    return [torch.from_numpy(scene.mask > 0) for scene in textured_scenes(count, shape=(side, side))]


def epochs_grid(steps: Sequence[Step]) -> Grid:
    """Return the paper's table of training cost with our ratios beside it."""
    ours = {step.network: step for step in steps}
    rows = []
    for name, plain, si in paper.table("time_cost").select("name", "plain", "si").iter_rows():
        cells = ("not measured", "-", "-")
        if (step := ours.get(name.lower())) is not None:
            times = f"{step.size_invariant:.3g} s / {step.plain:.3g} s, {step.side} x {step.side}"
            cells = times, f"{step.ratio:.3f}", f"{step.ratio_of_losses:.4f}"
        rows.append((name.lower(), f"{plain:g} s", f"{si:g} s", f"{si / plain:.2f}", *cells))
    paper_head = ("paper, epoch, plain", "paper, epoch, SI", "ratio")
    our_head = ("ours, step, SI / plain", "ratio", "ratio, from the losses alone")
    return Grid(("network", *paper_head, *our_head), tuple(rows), n_text=1)


def preprocessing_grid(seconds_per_image: float) -> Grid:
    """Return the paper's table of preprocessing with our times beside it."""
    rows = []
    for row in paper.table("preprocessing").iter_rows(named=True):
        n_images, total = KNOWN[row["name"]].count, row["total"]
        ours = seconds_per_image * n_images
        printed = (f"{row['components']:g} s", f"{row['weights']:g} s", f"{total:g} s")
        per_image = (duration(total / n_images), f"{ours:.2g} s", f"{total / ours:.3g}")
        rows.append((row["name"], str(n_images), *printed, *per_image))
    head = ("data set", "images", "paper, components", "paper, weights", "paper, total")
    return Grid((*head, "an image", "ours, boxes", "paper / ours"), tuple(rows), n_text=1)
