"""The cells of the paper's grid: which trainings it consists of, and the recipe of each."""

from dataclasses import dataclass, replace
from typing import Literal

from sisod import paper
from sisod.common.arguments import check_known
from sisod.training.recipe import Recipe, find_recipe

Scale = Literal["full", "tiny"]
ABLATED = "edn"  # the network of the paper's ablation
LABELS = "ldf-labels"
# tiny: two steps each, so the scores mean nothing, but every step of the pipeline runs
_TINY = ("data.size=64", "train.batch=2", "train.epochs=1", "schedule.warmup_steps=0")
_TINY_OF_NETWORK = {"poolnet": ("data.size=128",), "ldf": ("labels.epochs=1",)}


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
    kind: Literal["train", "labels", "time", "tables"]
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
        >>> recipe = cell_recipe(find_cell("edn-alpha0"), "full")
        >>> recipe.network.encoder, recipe.train.epochs, recipe.loss.alpha
        ('resnet50', 100, 0.0)
    """
    recipe = find_recipe(cell.network)
    if scale == "tiny":
        settings = (*_TINY, *_TINY_OF_NETWORK.get(cell.network, ()))
        recipe = find_recipe(f"{cell.network}-lite", settings)
    return replace(recipe, loss=replace(recipe.loss, alpha=cell.alpha))
