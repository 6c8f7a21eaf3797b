"""The time that the size-invariant loss takes on this machine, beside the paper's two tables of time.

The paper's tables are seconds per epoch on a GeForce RTX 3090, and seconds to preprocess the masks of a
data set. Machines differ, so ratios are compared: the same training step with either loss.
"""

import statistics
import timeit
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import torch
from torch import Tensor

from sisod import networks, paper
from sisod.common.grid import Format, Grid, render
from sisod.common.streams import progress_bar
from sisod.common.version import __version__
from sisod.data.catalogue import KNOWN
from sisod.data.scenes import textured_scenes
from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of

_LOSS_REPETITIONS = 10  # times as many for the loss alone: it is quick, the difference small


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


@dataclass(frozen=True)
class Bench:
    """The measurements.

    Attributes:
        steps: one for each network of the paper's table.
        boxes_seconds: to compute the boxes of one mask of 384 x 384, our only preprocessing.
        machine: `device`, `encoder` and versions.
    """

    steps: tuple[Step, ...]
    boxes_seconds: float
    machine: dict[str, str]

    def grids(self) -> dict[str, Grid]:
        """Return the paper's two tables with our times beside them, by title."""
        preprocessing = preprocessing_grid(self.boxes_seconds)
        return {"Training cost": epochs_grid(self.steps), "Preprocessing": preprocessing}

    def render(self, kind: Format) -> str:
        """Return the tables for a document, with their caption; or the measurements for a program."""
        grids, content = list(self.grids().values()), asdict(self)
        if kind in ("csv", "json"):
            return render(grids[0], content["steps"], content, kind)
        return "\n\n".join([*(render(grid, (), None, kind) for grid in grids), self.caption()])

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


def run_bench(*, quick: bool = False) -> Bench:
    """Time a step of each of the paper's networks with both losses, and the computation of boxes.

    Runs on the first GPU if there is one.

    Args:
        quick: with a small encoder, small images and one repetition.
    """
    encoder, side, repetitions, n_masks = (
        ("efficientnet_lite0", 64, 1, 4) if quick else ("resnet50", 384, 3, 16)
    )
    names = paper_networks()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    steps = []
    with progress_bar("measuring", len(names) + 1) as advance:
        boxes = measure_boxes(n_masks, repetitions=repetitions)
        advance(1)
        for name in names:
            gt = torch.stack(_masks(2, max(side, 128) if name == "poolnet" else side))[:, None].float()
            steps.append(measure_step(name, gt, repetitions=repetitions, encoder=encoder, device=device))
            advance(1)
    title = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    versions = {"sisod": __version__, "torch": str(torch.__version__)}
    return Bench(tuple(steps), boxes, {"device": title, "encoder": encoder, **versions})


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
    losses = (PlainLoss.for_network(network), SizeInvariantLoss.for_network(network))

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

    plain, si = medians([partial(step, loss) for loss in losses], repetitions)
    maps = [logits.detach().requires_grad_() for logits in module(images)]
    alone = medians([partial(loss_alone, loss) for loss in losses], _LOSS_REPETITIONS * repetitions)
    return Step(network, gt.shape[-1], len(gt), plain, si, alone[1] - alone[0])


def measure_boxes(n_masks: int, *, repetitions: int) -> float:
    """Return the seconds that a worker takes to compute the boxes of one mask of 384 x 384."""
    return statistics.fmean(medians([partial(boxes_of, m) for m in _masks(n_masks, 384)], repetitions))


def medians(calls: Sequence[Callable[[], object]], repetitions: int) -> list[float]:
    """Return the median seconds of every call; they take turns, and a first round warms up.

    Example:
        >>> order = []
        >>> len(medians([lambda: order.append("a"), lambda: order.append("b")], 2)), "".join(order)
        (2, 'ababab')
    """
    rounds = [[timeit.timeit(call, number=1) for call in calls] for _ in range(repetitions + 1)]
    return [statistics.median(seconds) for seconds in zip(*rounds[1:], strict=True)]


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
            cells = times, f"{step.ratio:.3f}", f"{1 + step.added / step.plain:.4f}"
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
        per_image = (f"{1000 * total / n_images:.3g} ms", f"{ours:.2g} s", f"{total / ours:.3g}")
        rows.append((row["name"], str(n_images), *printed, *per_image))
    head = ("data set", "images", "paper, components", "paper, weights", "paper, total")
    return Grid((*head, "an image", "ours, boxes", "paper / ours"), tuple(rows), n_text=1)
