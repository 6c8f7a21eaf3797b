"""The cells of the paper's grid: which trainings it consists of, their recipes, and what each costs.

GPU hours are estimated from multiply-adds, disk space from counts. A training image costs three times
the multiply-adds of a prediction (forward, and twice that backward), and one is two operations.
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch

from sisod import networks, paper
from sisod.common.arguments import check_known
from sisod.common.grid import Grid
from sisod.data.catalogue import KNOWN
from sisod.training.recipe import Recipe, find_recipe

Scale = Literal["full", "tiny"]
ABLATED = "edn"  # the network of the paper's ablation
LABELS = "ldf-labels"
DUTS_TR = "DUTS-TR"  # the data set to train on
# tiny: two steps each, so the scores mean nothing, but every step of the pipeline runs
_TINY = ("data.size=64", "train.batch=2", "train.epochs=1", "schedule.warmup_steps=0")
_TINY_OF_NETWORK = {"poolnet": ("data.size=128",), "ldf": ("labels.epochs=1",)}
# Sustained, not peak: the paper's epochs with the plain loss on a GeForce RTX 3090 come to 3.8 to 18.3
# TFLOP/s by our multiply-adds; their median is 10.7.
TFLOPS = 10.0
_OPERATIONS = 6  # of a multiply-add, for one training image
_MAP_BYTES = 130_000  # a PNG of 400 x 300 and 16 bits, 1.1 bytes per pixel, as EDN's on MSOD
_LABEL_BYTES = 40_000  # the same with 8 bits, a third of a byte per pixel
_RESULT_BYTES = 5_000  # an image in the results of both protocols; synthetic ones take 4.2 kB


@dataclass(frozen=True)
class GridCell:
    """One job.

    Attributes:
        name: as given on the command line.
        kind: `train` trains, predicts and scores; `labels` is LDF's first stage, shared by both losses;
            `tables` writes tables of the finished cells.
        network: of `train` and `labels`.
        loss: `plain` or `si`.
        alpha: weight of the background in the size-invariant loss.
        needs: names of the cells that must be finished first.
    """

    name: str
    kind: Literal["train", "labels", "tables"]
    network: str = ""
    loss: str = ""
    alpha: str | float = "ratio"
    needs: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The network's name as the paper spells it."""
        return next(name for name in paper.networks() if name.lower() == self.network)

    @property
    def method(self) -> str:
        """Name of the results of `train`, as `compare`, `report` and `plot` expect it.

        Example:
            >>> [find_cell(name).method for name in ("edn-plain", "edn-si", "edn-alpha0")]
            ['EDN', 'EDN+SI', 'EDN+alpha0']
        """
        if self.loss == "plain":
            return self.title
        return f"{self.title}+SI" if self.alpha == "ratio" else f"{self.title}+alpha{self.alpha:g}"


def grid() -> tuple[GridCell, ...]:
    """Return all cells; a cell comes after those that it needs.

    Example:
        >>> [cell.name for cell in grid()][:5]
        ['poolnet-plain', 'poolnet-si', 'ldf-labels', 'ldf-plain', 'ldf-si']
    """
    cells = []
    for network in (name.lower() for name in paper.networks()):
        needs = (LABELS,) if network == "ldf" else ()
        cells += [GridCell(LABELS, "labels", network, "plain") for _ in needs]
        cells += [
            GridCell(f"{network}-{loss}", "train", network, loss, needs=needs)
            for loss in ("plain", "si")
        ]
    cells += [GridCell(f"{ABLATED}-alpha{n}", "train", ABLATED, "si", alpha=float(n)) for n in (0, 1)]
    return (*cells, GridCell("tables", "tables", needs=tuple(cell.name for cell in cells)))


def find_cell(name: str) -> GridCell:
    """Return a cell by its name."""
    cells = {cell.name: cell for cell in grid()}
    check_known("cell", name, cells)
    return cells[name]


def cell_recipe(cell: GridCell, scale: Scale) -> Recipe:
    """Return the recipe of a cell: that of its network, with the cell's alpha.

    Example:
        >>> recipe = cell_recipe(find_cell("edn-alpha0"), "full")
        >>> recipe.network.encoder, recipe.train.epochs, recipe.loss.alpha
        ('resnet50', 100, 0.0)
    """
    recipe = find_recipe(cell.network)
    if scale == "tiny":
        settings = (*_TINY, *_TINY_OF_NETWORK.get(cell.network, ()))
        recipe = find_recipe(f"{cell.network}-lite", settings)
    return replace(recipe, loss=replace(recipe.loss, alpha=cell.alpha))


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

        >>> cost = estimate_cost(find_cell("edn-plain"), "full", {"DUTS-TR": 10_553, "MSOD": 300})
        >>> round(cost.gpu_hours, 1), round(cost.paper_hours, 1), round(cost.disk / 1e9, 1)
        (3.6, 9.4, 0.7)
    """
    if cell.kind == "tables":
        return Cost()
    recipe = cell_recipe(cell, scale)
    macs, parameters = _macs_and_parameters(cell.network, recipe.network.encoder, recipe.data.size)
    n_train = counts[DUTS_TR]
    if cell.kind == "labels":
        epochs, n_predicted, image_bytes = recipe.labels.epochs, n_train, 2 * _LABEL_BYTES
    else:
        per_epoch = max(1, n_train // recipe.train.images_per_step)
        epochs = recipe.train.epochs or math.ceil(recipe.train.steps / per_epoch)
        n_predicted, image_bytes = sum(counts.values()) - n_train, _MAP_BYTES + _RESULT_BYTES
    operations = _OPERATIONS * macs * (epochs * n_train + n_predicted / 3)
    times = {row["name"].lower(): row for row in paper.table("time_cost").iter_rows(named=True)}
    seconds = times[cell.network][cell.loss] * epochs * n_train / KNOWN[DUTS_TR].count
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
    """Return one row per cell and their sums; `states` maps cells to `Reproduction.state`."""
    costs = [estimate_cost(cell, scale, counts, tflops=tflops) for cell in cells]
    rows = [
        (cell.name, (states or {}).get(cell.name, "to do"), *_texts([cost]))
        for cell, cost in zip(cells, costs, strict=True)
    ]
    rows.append(("all", "", *_texts(costs)))
    head = ("cell", "state", "GPU hours", "at the paper's speed", "disk")
    return Grid(head, tuple(rows), n_text=2)


def _texts(costs: Iterable[Cost]) -> tuple[str, str, str]:
    """Return the sums of costs."""
    hours, published, disk = (sum(column) for column in zip(*costs, strict=True))
    return f"{hours:.1f}", f"{published:.1f}" if published else "-", f"{disk / 1e9:.1f} GB"


@functools.cache
def _macs_and_parameters(network: str, encoder: str, side: int) -> tuple[int, int]:
    """Return multiply-adds for an image, and the number of parameters."""
    with torch.device("meta"):
        module = networks.create(network, encoder=encoder)
    return module.count_macs((side, side)), sum(p.numel() for p in module.parameters())
