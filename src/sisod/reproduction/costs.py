"""Estimates of what a cell will take: GPU hours from multiply-adds, disk space from counts.

A training image costs three times the multiply-adds of a prediction (forward, and twice that backward),
and a multiply-add is two operations.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from sisod import networks, paper
from sisod.common.grid import Grid
from sisod.data.catalogue import KNOWN
from sisod.networks.network import count_macs
from sisod.reproduction.cells import GridCell, Scale, cell_recipe
from sisod.reproduction.sets import TRAINING
from sisod.training.recipe import Recipe

# Sustained, not peak: computed from the paper's epochs with the plain loss on a GeForce RTX 3090, see
# `paper_throughputs`; their median is 10.7 TFLOP/s.
TFLOPS = 10.0
_PASSES_PER_IMAGE, _OPERATIONS_PER_MAC = 3, 2
_MAP_BYTES = 40_000  # a PNG of 400 x 300, a third of a byte per pixel; synthetic maps take 31 kB
_RESULT_BYTES = 5_000  # an image in the results of both protocols; synthetic ones take 4.2 kB
_FLOAT_BYTES = 4


@dataclass(frozen=True)
class Cost:
    """The estimate for a cell.

    Attributes:
        gpu_hours: from multiply-adds and an assumed throughput.
        paper_hours: the same epochs at the paper's time per image; None where it states none.
        disk: bytes at the end; while a checkpoint is being replaced there are two of it.
    """

    gpu_hours: float
    paper_hours: float | None
    disk: int


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

        >>> from sisod.reproduction.cells import FULL, find_cell
        >>> cost = estimate_cost(find_cell("edn-plain"), FULL, {"DUTS-TR": 10_553, "MSOD": 300})
        >>> round(cost.gpu_hours, 1), round(cost.paper_hours, 1), round(cost.disk / 1e9, 1)
        (3.6, 9.4, 0.7)
    """
    if cell.kind not in ("train", "labels"):
        return Cost(0.0, None, 0)
    recipe = cell_recipe(cell, scale)
    macs, parameters = _macs_and_parameters(
        recipe.network.name, recipe.network.encoder, recipe.data.size
    )
    n_train = counts[TRAINING]
    n_test = sum(count for name, count in counts.items() if name != TRAINING)
    epochs = _epochs(cell, recipe, n_train)
    n_predicted = n_train if cell.kind == "labels" else n_test
    operations = _OPERATIONS_PER_MAC * macs * (_PASSES_PER_IMAGE * epochs * n_train + n_predicted)
    seconds = _paper_seconds(cell) if scale.name == "full" else None
    return Cost(
        gpu_hours=operations / (tflops * 1e12) / 3600,
        paper_hours=None
        if seconds is None
        else epochs * seconds * n_train / KNOWN[TRAINING].count / 3600,
        disk=_disk(cell, recipe, parameters, n_predicted),
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
    rows: list[tuple[str, ...]] = []
    total, paper_total, disk = 0.0, 0.0, 0
    for cell in cells:
        cost = estimate_cost(cell, scale, counts, tflops=tflops)
        total, disk = total + cost.gpu_hours, disk + cost.disk
        paper_total += cost.paper_hours or 0.0
        state = (states or {}).get(cell.name, "to do")
        rows.append((cell.name, state, *_cells(cost.gpu_hours, cost.paper_hours, cost.disk)))
    rows.append(("all", "", *_cells(total, paper_total or None, disk)))
    if "finished" in (states or {}).values():
        left = [cell for cell in cells if (states or {})[cell.name] != "finished"]
        rows.append(("left", "", *costs_grid(left, scale, counts, tflops=tflops).rows[-1][2:]))
    head = ("cell", "state", "GPU hours", "at the paper's speed", "disk")
    return Grid(head, tuple(rows), n_text=2)


def _cells(hours: float, paper_hours: float | None, disk: int) -> tuple[str, str, str]:
    published = "-" if paper_hours is None else f"{paper_hours:.1f}"
    return f"{hours:.1f}", published, f"{disk / 1e9:.1f} GB"


def paper_throughputs() -> dict[str, float]:
    """Return the TFLOP/s of the paper's epochs with the plain loss on DUTS-TR, by network.

    Example:
        >>> {name: round(tflops, 1) for name, tflops in paper_throughputs().items()}
        {'edn': 3.8, 'poolnet': 13.3, 'icon': 9.7, 'gatenet': 18.3, 'ldf': 10.7}
    """
    count = KNOWN[TRAINING].count
    throughputs = {}
    for row in paper.table("time_cost").iter_rows(named=True):
        name = row["name"].lower()
        macs, _ = _macs_and_parameters(name, "resnet50", 384)
        throughputs[name] = _OPERATIONS_PER_MAC * _PASSES_PER_IMAGE * macs * count / row["plain"] / 1e12
    return throughputs


def _epochs(cell: GridCell, recipe: Recipe, n_train: int) -> int:
    if cell.kind == "labels":
        return recipe.labels.epochs
    per_epoch = max(1, n_train // recipe.train.images_per_step)
    return recipe.train.epochs or math.ceil(recipe.train.steps / per_epoch)


def _disk(cell: GridCell, recipe: Recipe, parameters: int, n_predicted: int) -> int:
    moments = 2 if recipe.optimizer.name != "sgd" else 1
    checkpoint = _FLOAT_BYTES * parameters * (1 + moments)
    network = _FLOAT_BYTES * parameters
    per_image = 2 * _MAP_BYTES if cell.kind == "labels" else _MAP_BYTES + _RESULT_BYTES
    return checkpoint + network + per_image * n_predicted


def _paper_seconds(cell: GridCell) -> float:
    for row in paper.table("time_cost").iter_rows(named=True):
        if row["name"].lower() == cell.network:
            return float(row[cell.loss])
    raise KeyError(cell.network)


@functools.cache
def _macs_and_parameters(network: str, encoder: str, side: int) -> tuple[int, int]:
    """Return multiply-adds for an image, and the number of parameters."""
    with torch.device("meta"):
        module = networks.create(network, encoder=encoder)
    return count_macs(module, (side, side)), sum(p.numel() for p in module.parameters())
