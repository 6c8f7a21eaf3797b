"""The cells of the paper's grid: which trainings it consists of, and the recipe of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sisod import paper
from sisod.common.arguments import check_known
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
class GridCell:
    """One job.

    Attributes:
        name: as given on the command line.
        kind: `train` trains, predicts and scores; `labels` is LDF's first stage, shared by both losses;
            `time` measures the time that the losses take; `tables` writes tables of the finished cells.
        network: of `train` and `labels`.
        loss: `plain` or `si`.
        alpha: weight of the background in the size-invariant loss.
        needs: names of the cells that must be finished first.
    """

    name: str
    kind: Kind
    network: str = ""
    loss: str = ""
    alpha: str | float = "ratio"
    needs: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """Name of the results of `train`, as `compare`, `report` and `plot` expect it.

        Example:
            >>> [find_cell(name).method for name in ("edn-plain", "edn-si", "edn-alpha0")]
            ['EDN', 'EDN+SI', 'EDN+alpha0']
        """
        name = paper_name(self.network)
        if self.loss == "plain":
            return name
        return f"{name}+SI" if self.alpha == "ratio" else f"{name}+alpha{self.alpha:g}"


@dataclass(frozen=True)
class Scale:
    """How large a reproduction is.

    Attributes:
        name: as given on the command line.
        suffix: added to the network's name for the name of the recipe.
        settings: changed in every recipe.
        network_settings: changed in one network's recipe only.
        synthetic: train and test on synthetic scenes instead of the paper's data sets.
    """

    name: str
    suffix: str = ""
    settings: tuple[str, ...] = ()
    network_settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    synthetic: bool = False


FULL = Scale("full")
# two steps each: the scores mean nothing, but every step of the pipeline runs
TINY = Scale(
    "tiny",
    suffix="-lite",
    settings=("data.size=64", "train.batch=2", "train.epochs=1", "schedule.warmup_steps=0"),
    network_settings={"poolnet": "data.size=128", "ldf": "labels.epochs=1"},
    synthetic=True,
)
SCALES = {scale.name: scale for scale in (FULL, TINY)}


def paper_name(network: str) -> str:
    """Return the name of a network as the paper spells it."""
    return next(name for name in paper.networks() if name.lower() == network)


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
    cells += [GridCell(ABLATION[str(n)], "train", ABLATED, "si", alpha=float(n)) for n in (0, 1)]
    cells.append(GridCell("time", "time"))
    return (*cells, GridCell("tables", "tables", needs=tuple(cell.name for cell in cells)))


def find_cell(name: str) -> GridCell:
    """Return a cell by its name."""
    cells = {cell.name: cell for cell in grid()}
    check_known("cell", name, cells)
    return cells[name]


def cell_recipe(cell: GridCell, scale: Scale) -> Recipe:
    """Return the recipe of a cell: that of its network, with the cell's alpha.

    Example:
        >>> recipe = cell_recipe(find_cell("edn-alpha0"), FULL)
        >>> recipe.network.encoder, recipe.train.epochs, recipe.loss.alpha
        ('resnet50', 100, 0.0)
    """
    own = scale.network_settings.get(cell.network)
    recipe = find_recipe(cell.network + scale.suffix, (*scale.settings, *([own] if own else ())))
    return replace(recipe, loss=replace(recipe.loss, alpha=cell.alpha))
