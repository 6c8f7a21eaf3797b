"""The paper: its tables as data, with their misprints, and a result compared with a published row."""

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, get_args

from sisod.common.arguments import check_known
from sisod.common.exceptions import InputError, UsageError, pluralize
from sisod.common.grid import Format, Grid, json_rows, number, render
from sisod.scoring.metrics import METRICS, arrow

if TYPE_CHECKING:
    import polars as pl

    from sisod.evaluation.result import Evaluation

__all__ = [
    "AgainstPaper",
    "Misprint",
    "PublishedRow",
    "against_paper",
    "claimed_gains",
    "datasets",
    "find_row",
    "gains",
    "misprints",
    "networks",
    "row",
    "table",
]

TableName = Literal["quantitative", "ablation", "datasets", "time_cost", "preprocessing", "group_claims"]
_SUFFIX = "_SI"  # of a network trained with the paper's loss
_FORMS = (False, True)  # trained with the paper's loss


@dataclass(frozen=True)
class PublishedRow:
    """One row of the paper's quantitative tables.

    Attributes:
        dataset, network: as the paper calls them.
        size_invariant: trained with the paper's loss.
        values: metric key -> value.
        notes: metric key -> why the printed number is believed to be wrong.
    """

    dataset: str
    network: str
    size_invariant: bool
    values: dict[str, float]
    notes: dict[str, str]

    @property
    def name(self) -> str:
        """Its name for `find_row` and the command line, such as MSOD/EDN+SI."""
        return f"{self.dataset}/{self.network}{'+SI' * self.size_invariant}"


@dataclass(frozen=True)
class Misprint:
    """A printed number or formula of the paper that is believed to be wrong.

    Attributes:
        table: name of the table, `claims` for a number in the text, or `formulas`.
        location: its keys in the table: data set, row, column; of a formula, its section and name.
        printed: as printed.
        value: the number in our tables; None for a formula.
        reason: why it is believed to be wrong.
    """

    table: str
    location: tuple[str, ...]
    printed: str
    value: float | None
    reason: str


def datasets() -> tuple[str, ...]:
    """Return the data sets of the quantitative tables."""
    return tuple(name for name in _data()["quantitative"] if name != "metrics")


def networks() -> tuple[str, ...]:
    """Return the networks of the quantitative tables."""
    return tuple(name for name in _data()["quantitative"]["MSOD"] if not name.endswith(_SUFFIX))


def row(dataset: str, network: str, *, size_invariant: bool = False) -> PublishedRow:
    """Return one row of the quantitative tables; names are case-insensitive.

    Example:
        >>> row("MSOD", "edn", size_invariant=True).values["si_mae"]
        0.0724
    """
    dataset, network = _known("data set", dataset, datasets()), _known("network", network, networks())
    name = network + _SUFFIX * size_invariant
    content = _data()["quantitative"]
    notes = {
        misprint.location[2]: f"printed {misprint.printed}: {misprint.reason}"
        for misprint in misprints()
        if misprint.table == "quantitative" and misprint.location[:2] == (dataset, name)
    }
    values = dict(zip(content["metrics"], content[dataset][name], strict=True))
    return PublishedRow(dataset, network, size_invariant, values, notes)


def find_row(name: str) -> PublishedRow:
    """Return a row by its name: `MSOD/EDN`, or `MSOD/EDN+SI` if trained with the paper's loss.

    Example:
        >>> find_row("ecssd/gatenet+si").name
        'ECSSD/GateNet+SI'
    """
    dataset, slash, network = name.partition("/")
    if not slash:
        raise UsageError(f"expected DATASET/NETWORK, like MSOD/EDN+SI, got {name!r}")
    plain, plus, _ = network.upper().partition("+SI")
    return row(dataset, plain, size_invariant=bool(plus))


def table(name: TableName) -> "pl.DataFrame":
    """Return a whole table.

    The first columns identify the row: `dataset`, `network` and `size_invariant` in the quantitative
    tables, `dataset` and `alpha` in the ablation, `name` in the others. `group_claims` are the gains
    that the text claims for small objects and for images of several objects.

    Example:
        >>> table("group_claims")["gain"].to_list()
        [0.024, 0.007]
    """
    import polars as pl

    check_known("table of the paper", name, get_args(TableName))
    content = _data()[name]
    if name == "group_claims":
        return pl.DataFrame(content)
    if name == "quantitative":
        every = (row(*key[:2], size_invariant=key[2]) for key in product(datasets(), networks(), _FORMS))
        names = ("dataset", "network", "size_invariant")
        return pl.DataFrame({name: getattr(one, name) for name in names} | one.values for one in every)
    if name == "ablation":
        keys, rows = content["metrics"], (one for one in content.items() if one[0] != "metrics")
        return pl.DataFrame(
            {"dataset": dataset, "alpha": alpha} | dict(zip(keys, values, strict=True))
            for dataset, lines in rows
            for alpha, values in lines.items()
        )
    keys, rows = content["columns"], (one for one in content.items() if one[0] != "columns")
    return pl.DataFrame({"name": key} | dict(zip(keys, values, strict=True)) for key, values in rows)


@functools.cache
def misprints() -> tuple[Misprint, ...]:
    """Return the printed numbers and formulas that are believed to be wrong: those we know of."""
    return tuple(
        Misprint(**({"value": None} | entry | {"location": tuple(entry["location"])}))
        for entry in _data()["misprints"]
    )


def gains(dataset: str) -> dict[str, float]:
    """Return the mean improvement of each metric by the paper's loss, over the five networks.

    Example:
        >>> round(gains("MSOD")["si_mae"], 3)
        0.012
    """
    pairs = [
        (row(dataset, name).values, row(dataset, name, size_invariant=True).values)
        for name in networks()
    ]
    up = {key: METRICS[key].direction == "up" for key in pairs[0][0]}
    return {
        key: sum(b[key] - a[key] if up[key] else a[key] - b[key] for a, b in pairs) / len(pairs)
        for key in up
    }


def claimed_gains() -> dict[str, dict[str, float]]:
    """Return the mean improvements that the paper's text claims: data set -> metric key -> gain."""
    return {dataset: dict(claims) for dataset, claims in _data()["claims"].items()}


@dataclass(frozen=True, eq=False)
class AgainstPaper:
    """A run compared with a published row.

    Attributes:
        row: the published row.
        table: one row per metric: `metric`, `ours`, `published`, `difference` (ours minus published),
            `note` (on a misprint, else empty).
        images: number of images scored.
        code: the released code that scored them, SI-SOD or SI_Metric.
    """

    row: PublishedRow
    table: "pl.DataFrame"
    images: int
    code: str

    def grid(self) -> Grid:
        """Return the table as text."""
        rows = tuple(
            (
                f"{METRICS[row['metric']].title} {arrow(row['metric'])}",
                number(row["ours"]),
                number(row["published"]),
                number(row["difference"], sign=True),
            )
            for row in self.table.iter_rows(named=True)
        )
        return Grid(("metric", "ours", f"paper, {self.row.name}", "difference"), rows, n_text=1)

    def render(self, kind: Format) -> str:
        """Return the table for a document or a program."""
        content = {"row": self.row.name, "images": self.images, "metrics": json_rows(self.table)}
        return render(self.grid(), self.table.iter_rows(named=True), content, kind)

    def caption(self) -> str:
        """Return how the numbers were computed, and a line for each misprint."""
        origin = (
            f"{pluralize(self.images, 'image')}, scored as the paper's released code {self.code} does"
        )
        notes = [f"{METRICS[key].title} is {note}" for key, note in self.row.notes.items()]
        return "\n".join([origin, *notes])

    def _repr_html_(self) -> str:
        return self.grid().html(self.caption())


def against_paper(evaluation: "Evaluation", published: PublishedRow | str) -> AgainstPaper:
    """Compare a run with a published row; the run must have been scored as the released code does.

    Args:
        evaluation: the run, `sisod.evaluate(..., protocol="official")`, or `"official-metric"`.
        published: a row or its name, such as `MSOD/EDN+SI`.
    """
    import polars as pl

    expected = find_row(published) if isinstance(published, str) else published
    code = evaluation.protocol.released_code
    if not code:
        raise InputError(
            f"the run was scored under the protocol {evaluation.protocol.name!r}, the paper's numbers "
            "under that of its released code; evaluate again with --protocol official"
        )
    keys = [key for key in expected.values if key in evaluation.summary]
    columns = {
        "metric": keys,
        "ours": [evaluation.summary[key] for key in keys],
        "published": [expected.values[key] for key in keys],
    }
    table = pl.DataFrame(columns).with_columns(
        difference=pl.col("ours") - pl.col("published"),
        note=pl.Series([expected.notes.get(key, "") for key in keys], dtype=pl.String),
    )
    return AgainstPaper(expected, table, evaluation.images.height, code)


def _known(what: str, name: str, names: tuple[str, ...]) -> str:
    spelled = {known.casefold(): known for known in names}.get(str(name).casefold(), name)
    check_known(what, spelled, names)
    return spelled


@functools.cache
def _data() -> dict[str, Any]:
    text = resources.files("sisod.paper").joinpath("tables.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
