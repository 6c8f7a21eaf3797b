"""Estimates of what a cell will take: GPU hours from multiply-adds, disk space from counts.

A training image costs three times the multiply-adds of a prediction (forward, and twice that backward),
and a multiply-add is two operations.
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch

from sisod import networks, paper
from sisod.common.grid import Grid
from sisod.data.catalogue import KNOWN
from sisod.reproduction.cells import GridCell, Scale, cell_recipe
from sisod.reproduction.sets import TRAINING

# Sustained, not peak: computed from the paper's epochs with the plain loss on a GeForce RTX 3090, see
# `paper_throughputs`; their median is 10.7 TFLOP/s.
TFLOPS = 10.0
_OPERATIONS = 6  # of a multiply-add, for one training image
_MAP_BYTES = 130_000  # a PNG of 400 x 300 and 16 bits, 1.1 bytes per pixel, as EDN's on MSOD
_LABEL_BYTES = 40_000  # the same with 8 bits, a third of a byte per pixel
_RESULT_BYTES = 5_000  # an image in the results of both protocols; synthetic ones take 4.2 kB


class Cost(NamedTuple):
    """The estimate for a cell.

    Attributes:
        gpu_hours: from multiply-adds and an assumed throughput.
        paper_hours: the same epochs at the paper's time per image; 0 where it states none.
        disk: bytes at the end; while a checkpoint is being replaced there are two of it.
    """

    gpu_hours: float = 0.0
    paper_hours: float = 0.0
    disk: int = 0


def estimate_cost(
    cell: GridCell, scale: Scale, counts: Mapping[str, int], *, tflops: float = TFLOPS
) -> Cost:
    """Estimate the cost of a cell.

    Args:
        cell: of any kind.
        scale: of its recipe.
        counts: data set -> number of images; DUTS-TR and the test sets.
        tflops: operations per second, in 10^12, that the GPU sustains.

    Example:
        One hundred epochs of EDN at 10 TFLOP/s; an epoch of the paper takes 340 s.

        >>> from sisod.reproduction.cells import find_cell
        >>> cost = estimate_cost(find_cell("edn-plain"), "full", {"DUTS-TR": 10_553, "MSOD": 300})
        >>> round(cost.gpu_hours, 1), round(cost.paper_hours, 1), round(cost.disk / 1e9, 1)
        (3.6, 9.4, 0.7)
    """
    if cell.kind not in ("train", "labels"):
        return Cost()
    recipe = cell_recipe(cell, scale)
    macs, parameters = _macs_and_parameters(cell.network, recipe.network.encoder, recipe.data.size)
    n_train = counts[TRAINING]
    if cell.kind == "labels":
        epochs, n_predicted, image_bytes = recipe.labels.epochs, n_train, 2 * _LABEL_BYTES
    else:
        per_epoch = max(1, n_train // recipe.train.images_per_step)
        epochs = recipe.train.epochs or math.ceil(recipe.train.steps / per_epoch)
        n_predicted, image_bytes = sum(counts.values()) - n_train, _MAP_BYTES + _RESULT_BYTES
    operations = _OPERATIONS * macs * (epochs * n_train + n_predicted / 3)
    seconds = _paper_times()[cell.network][cell.loss] * epochs * n_train / KNOWN[TRAINING].count
    n_copies = 3 if recipe.optimizer.name == "sgd" else 4  # network, checkpoint, moments
    return Cost(
        gpu_hours=operations / (tflops * 1e12) / 3600,
        paper_hours=seconds / 3600 if scale == "full" else 0.0,
        disk=n_copies * 4 * parameters + image_bytes * n_predicted,
    )


def costs_grid(
    cells: Sequence[GridCell],
    scale: Scale,
    counts: Mapping[str, int],
    *,
    tflops: float = TFLOPS,
    states: Mapping[str, str] | None = None,
) -> Grid:
    """Return one row per cell and their sums; `states` maps cells to `cell_state`."""
    states = states or {}
    costs = {cell.name: estimate_cost(cell, scale, counts, tflops=tflops) for cell in cells}
    rows = [(name, states.get(name, "to do"), *_texts([cost])) for name, cost in costs.items()]
    rows.append(("all", "", *_texts(costs.values())))
    if "finished" in states.values():
        left = [cost for name, cost in costs.items() if states.get(name) != "finished"]
        rows.append(("left", "", *_texts([Cost(), *left])))
    head = ("cell", "state", "GPU hours", "at the paper's speed", "disk")
    return Grid(head, tuple(rows), n_text=2)


def _texts(costs: Iterable[Cost]) -> tuple[str, str, str]:
    """Return the sums of costs."""
    hours, published, disk = (sum(column) for column in zip(*costs, strict=True))
    return f"{hours:.1f}", f"{published:.1f}" if published else "-", f"{disk / 1e9:.1f} GB"


def paper_throughputs() -> dict[str, float]:
    """Return the TFLOP/s of the paper's epochs with the plain loss on DUTS-TR, by network.

    Example:
        >>> {name: round(tflops, 1) for name, tflops in paper_throughputs().items()}
        {'edn': 3.8, 'poolnet': 13.3, 'icon': 9.7, 'gatenet': 18.3, 'ldf': 10.7}
    """
    operations = _OPERATIONS * KNOWN[TRAINING].count
    return {
        name: operations * _macs_and_parameters(name, "resnet50", 384)[0] / times["plain"] / 1e12
        for name, times in _paper_times().items()
    }


def _paper_times() -> dict[str, dict[str, float]]:
    """Return the seconds of the paper's epochs: network -> loss -> time."""
    return {row["name"].lower(): row for row in paper.table("time_cost").iter_rows(named=True)}


@functools.cache
def _macs_and_parameters(network: str, encoder: str, side: int) -> tuple[int, int]:
    """Return multiply-adds for an image, and the number of parameters."""
    with torch.device("meta"):
        module = networks.create(network, encoder=encoder)
    return module.count_macs((side, side)), sum(p.numel() for p in module.parameters())
