"""What a cell will take, before it is run: GPU hours from multiply-adds, disk from counts.

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
from sisod.reproduction.cells import Cell, Scale, recipe_of
from sisod.reproduction.sets import TRAINING
from sisod.training.recipe import Recipe

# Sustained, not peak: what the paper's own plain epochs on a GeForce RTX 3090 come to, see
# `paper_throughputs`; their median is 10.7 TFLOP/s.
TFLOPS = 10.0
_PER_IMAGE, _PER_MAC = 3, 2
_MAP_BYTES = 40_000  # of a PNG of 400 x 300, a third of a byte a pixel; made maps take 31 kB
_RESULT_BYTES = 5_000  # of an image in the results of both protocols; made ones take 4.2 kB
_FLOAT = 4


@dataclass(frozen=True)
class Cost:
    """An estimate.

    Attributes:
        gpu_hours: from multiply-adds and an assumed throughput.
        paper_hours: the same epochs at the paper's seconds an image; None where it states none.
        disk: bytes in the end; while a checkpoint is replaced there are two of it.
    """

    gpu_hours: float
    paper_hours: float | None
    disk: int


def cost_of(cell: Cell, scale: Scale, counts: Mapping[str, int], *, tflops: float = TFLOPS) -> Cost:
    """Estimate a cell.

    Args:
        cell: which.
        scale: of its recipe.
        counts: data set -> number of images; DUTS-TR and those to test on.
        tflops: operations a second, in 10^12, that the GPU sustains.

    Example:
        One hundred epochs of EDN at 10 TFLOP/s; the paper's own take 340 s each.

        >>> from sisod.reproduction.cells import FULL, find_cell
        >>> cost = cost_of(find_cell("edn-plain"), FULL, {"DUTS-TR": 10_553, "MSOD": 300})
        >>> round(cost.gpu_hours, 1), round(cost.paper_hours, 1), round(cost.disk / 1e9, 1)
        (3.6, 9.4, 0.7)
    """
    if cell.kind not in ("train", "labels"):
        return Cost(0.0, None, 0)
    recipe = recipe_of(cell, scale)
    macs, parameters = _size_of(recipe.network.name, recipe.network.encoder, recipe.data.size)
    n_train = counts[TRAINING]
    n_test = sum(count for name, count in counts.items() if name != TRAINING)
    epochs = _epochs(cell, recipe, n_train)
    n_predicted = n_train if cell.kind == "labels" else n_test
    operations = _PER_MAC * macs * (_PER_IMAGE * epochs * n_train + n_predicted)
    seconds = _paper_seconds(cell) if scale.name == "full" else None
    return Cost(
        gpu_hours=operations / (tflops * 1e12) / 3600,
        paper_hours=None
        if seconds is None
        else epochs * seconds * n_train / KNOWN[TRAINING].count / 3600,
        disk=_disk(cell, recipe, parameters, n_predicted),
    )


def costs_grid(
    cells: Sequence[Cell],
    scale: Scale,
    counts: Mapping[str, int],
    *,
    tflops: float = TFLOPS,
    states: Mapping[str, str] | None = None,
) -> Grid:
    """Return one row per cell and their sums; `states` says of each how far it is."""
    rows: list[tuple[str, ...]] = []
    total, paper_total, disk = 0.0, 0.0, 0
    for cell in cells:
        cost = cost_of(cell, scale, counts, tflops=tflops)
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
    """Return the TFLOP/s that the paper's plain epochs on DUTS-TR come to, by network.

    Example:
        >>> {name: round(found, 1) for name, found in paper_throughputs().items()}
        {'edn': 3.8, 'poolnet': 13.3, 'icon': 9.7, 'gatenet': 18.3, 'ldf': 10.7}
    """
    count = KNOWN[TRAINING].count
    found = {}
    for row in paper.table("time_cost").iter_rows(named=True):
        name = row["name"].lower()
        macs, _ = _size_of(name, "resnet50", 384)
        found[name] = _PER_MAC * _PER_IMAGE * macs * count / row["plain"] / 1e12
    return found


def _epochs(cell: Cell, recipe: Recipe, n_train: int) -> int:
    if cell.kind == "labels":
        return recipe.labels.epochs
    per_epoch = max(1, n_train // recipe.train.images_per_step)
    return recipe.train.epochs or math.ceil(recipe.train.steps / per_epoch)


def _disk(cell: Cell, recipe: Recipe, parameters: int, n_predicted: int) -> int:
    moments = 2 if recipe.optimizer.name != "sgd" else 1
    checkpoint = _FLOAT * parameters * (1 + moments)
    network = _FLOAT * parameters
    per_image = 2 * _MAP_BYTES if cell.kind == "labels" else _MAP_BYTES + _RESULT_BYTES
    return checkpoint + network + per_image * n_predicted


def _paper_seconds(cell: Cell) -> float:
    for row in paper.table("time_cost").iter_rows(named=True):
        if row["name"].lower() == cell.network:
            return float(row[cell.loss])
    raise KeyError(cell.network)


@functools.cache
def _size_of(network: str, encoder: str, side: int) -> tuple[int, int]:
    """Return multiply-adds of an image, and parameters."""
    with torch.device("meta"):
        module = networks.create(network, encoder=encoder)
    return count_macs(module, (side, side)), sum(p.numel() for p in module.parameters())
