"""The cells of the paper's grid: what is trained, and how."""

from dataclasses import dataclass, replace
from typing import Literal

from sisod import paper
from sisod.common.arguments import unknown_name_message
from sisod.common.errors import UsageError
from sisod.training.recipe import Recipe, find_recipe

Kind = Literal["train", "labels", "time", "tables"]
ABLATED = "edn"  # the network of the paper's ablation
LABELS = "ldf-labels"
# rows of the paper's ablation -> cells; two of them are rows of the quantitative tables too
ABLATION = {
    "plain": f"{ABLATED}-plain",
    "0": f"{ABLATED}-alpha0",
    "1": f"{ABLATED}-alpha1",
    "ratio": f"{ABLATED}-si",
}


@dataclass(frozen=True)
class Cell:
    """One job.

    Attributes:
        name: how the command line calls it.
        kind: `train` trains, predicts and scores; `labels` is LDF's first stage, once for both losses;
            `time` measures what the losses cost; `tables` writes the tables from what is there.
        network: of `train` and `labels`.
        loss: `plain` or `si`.
        alpha: weight of the background in the size-invariant loss.
        needs: cells that come first.
    """

    name: str
    kind: Kind
    network: str = ""
    loss: str = ""
    alpha: str | float = "ratio"
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scale:
    """How large everything is.

    Attributes:
        name: how the command line calls it.
        suffix: of the recipes' names.
        settings: replaced in every recipe.
        own_settings: network -> replaced in its recipe.
        made: train and test on made scenes instead of the paper's data sets.
    """

    name: str
    suffix: str = ""
    settings: tuple[str, ...] = ()
    own_settings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    made: bool = False


FULL = Scale("full")
# two steps each; what is learnt means nothing, but every part of the path is walked
TINY = Scale(
    "tiny",
    suffix="-lite",
    settings=("data.size=64", "train.batch=2", "train.epochs=1", "schedule.warmup_steps=0"),
    own_settings=(("poolnet", ("data.size=128",)), ("ldf", ("labels.epochs=1",))),
    made=True,
)
SCALES = {scale.name: scale for scale in (FULL, TINY)}


def grid() -> tuple[Cell, ...]:
    """Return the cells, those that others need first.

    Example:
        >>> [cell.name for cell in grid()][:5]
        ['poolnet-plain', 'poolnet-si', 'ldf-labels', 'ldf-plain', 'ldf-si']
    """
    cells = []
    for network in (name.lower() for name in paper.networks()):
        needs = (LABELS,) if network == "ldf" else ()
        if needs:
            cells.append(Cell(LABELS, "labels", network, "plain"))
        cells += [
            Cell(f"{network}-{loss}", "train", network, loss, needs=needs) for loss in ("plain", "si")
        ]
    cells += [Cell(ABLATION[str(a)], "train", ABLATED, "si", alpha=float(a)) for a in (0, 1)]
    cells.append(Cell("time", "time"))
    cells.append(Cell("tables", "tables", needs=tuple(cell.name for cell in cells)))
    return tuple(cells)


def find_cell(name: str) -> Cell:
    """Return a cell by its name."""
    cells = {cell.name: cell for cell in grid()}
    if name not in cells:
        raise UsageError(unknown_name_message("cell", name, cells))
    return cells[name]


def recipe_of(cell: Cell, scale: Scale) -> Recipe:
    """Return how a cell is trained: its network's recipe, with the cell's alpha.

    Example:
        >>> recipe = recipe_of(find_cell("edn-alpha0"), FULL)
        >>> recipe.network.encoder, recipe.train.epochs, recipe.loss.alpha
        ('resnet50', 100, 0.0)
    """
    settings = (*scale.settings, *dict(scale.own_settings).get(cell.network, ()))
    recipe = find_recipe(cell.network + scale.suffix, settings)
    return replace(recipe, loss=replace(recipe.loss, alpha=cell.alpha))
