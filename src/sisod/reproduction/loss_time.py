"""The time that the size-invariant loss takes on this machine, beside the paper's two tables of time.

The paper's tables are seconds per epoch on a GeForce RTX 3090, and seconds to preprocess the masks of a
data set. Machines differ, so ratios are compared: the same training step with either loss.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from sisod import networks, paper
from sisod.common.grid import Format, Grid, render
from sisod.common.progress import progress_bar
from sisod.data.catalogue import KNOWN
from sisod.data.textured_scenes import textured_scenes
from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of
from sisod.reproduction.stopwatch import duration, interleaved_medians, machine

_PACKAGES = ("sisod", "torch", "numpy", "opencv-python-headless")
_MASK_SIDE = 384  # of the masks whose boxes are computed
_LOSS_REPETITIONS = 10  # times as many for the loss alone: it is quick, the difference small


@dataclass(frozen=True)
class BenchSize:
    """How much is measured.

    Attributes:
        encoder: of all networks.
        side: of the images; PoolNet's are at least 128.
        repetitions: that are timed, after one to warm up.
        n_masks: whose boxes are computed.
    """

    encoder: str
    side: int
    repetitions: int
    n_masks: int


FULL = BenchSize("resnet50", 384, 3, 16)
QUICK = BenchSize("efficientnet_lite0", 64, 1, 4)
_N_IMAGES = 2  # of a step


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

    def grids(self) -> tuple[Grid, Grid]:
        """Return the paper's two tables with our times beside them."""
        return epochs_grid(self.steps), preprocessing_grid(self.boxes_seconds)

    def render(self, kind: Format) -> str:
        """Return the tables for a document, with their caption; or the measurements for a program."""
        content = self.content()
        if kind in ("csv", "json"):
            return render(self.grids()[0], content["steps"], content, kind)
        return "\n\n".join([*(render(grid, (), None, kind) for grid in self.grids()), self.caption()])

    def content(self) -> dict[str, Any]:
        """Return everything in the form that is written as JSON."""
        return {
            "machine": self.machine,
            "boxes_seconds": self.boxes_seconds,
            "steps": [
                asdict(step) | {"ratio": step.ratio, "ratio_of_losses": step.ratio_of_losses}
                for step in self.steps
            ],
        }

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
    options: dict[str, Any] = {"repetitions": size.repetitions, "encoder": size.encoder}
    steps = []
    with progress_bar("measuring", len(names) + 1) as advance:
        boxes = measure_boxes(size.n_masks, repetitions=size.repetitions)
        advance(1)
        for name in names:
            side = max(size.side, 128) if name == "poolnet" else size.side
            steps.append(measure_step(name, make_truth(_N_IMAGES, side, 2), device=device, **options))
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
    network: str,
    gt: Tensor,
    *,
    repetitions: int,
    encoder: str = "resnet50",
    device: str = "cpu",
    after_round: Callable[[int], object] = lambda _: None,
) -> Step:
    """Time a step of a network with random weights on random images.

    Args:
        network: one of the paper's.
        gt: masks (B, 1, H, W) of the images.
        repetitions: that are timed.
        encoder: of the network.
        device: as PyTorch names it.
        after_round: see `sisod.reproduction.stopwatch.interleaved_medians`.
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

    def loss_alone(loss: Callable[..., Tensor], maps: Sequence[Tensor]) -> None:
        torch.autograd.grad(loss(maps, labels, boxes), maps)
        wait()

    calls = {name: [partial(step, loss)] for name, loss in losses.items()}
    seconds = interleaved_medians(calls, repetitions=repetitions, after_round=after_round)
    maps = [logits.detach().requires_grad_() for logits in module(images)]
    calls = {name: [partial(loss_alone, loss, maps)] for name, loss in losses.items()}
    alone = interleaved_medians(calls, repetitions=_LOSS_REPETITIONS * repetitions)
    return Step(
        network=network,
        side=gt.shape[-1],
        n_images=len(gt),
        plain=seconds["plain"][0],
        size_invariant=seconds["si"][0],
        added=alone["si"][0] - alone["plain"][0],
    )


def measure_boxes(n_masks: int, *, repetitions: int) -> float:
    """Return the seconds that a worker takes to compute the boxes of one mask of 384 x 384."""
    scenes = textured_scenes(n_masks, shape=(_MASK_SIDE, _MASK_SIDE))
    masks = [torch.from_numpy(scene.mask > 0) for scene in scenes]
    calls = {"boxes": [partial(boxes_of, mask) for mask in masks]}
    return statistics.fmean(interleaved_medians(calls, repetitions=repetitions)["boxes"])


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


def epochs_grid(steps: Sequence[Step]) -> Grid:
    """Return the paper's table of training cost with our ratios beside it."""
    ours = {step.network: step for step in steps}
    rows = []
    for row in paper.table("time_cost").iter_rows(named=True):
        network = row["name"].lower()
        cells = ["not measured", "-", "-"]
        if (step := ours.get(network)) is not None:
            times = f"{step.size_invariant:.3g} s / {step.plain:.3g} s, {step.side} x {step.side}"
            cells = [times, f"{step.ratio:.3f}", f"{step.ratio_of_losses:.4f}"]
        printed = (f"{row['plain']:g} s", f"{row['si']:g} s", f"{row['si'] / row['plain']:.2f}")
        rows.append((network, *printed, *cells))
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
