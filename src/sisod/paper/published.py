"""The paper's tables as data, with its misprints."""

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from sisod.common.arguments import check_known, unknown_name_message
from sisod.common.errors import UsageError
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    import polars as pl


TableName = Literal["quantitative", "ablation", "datasets", "time_cost", "preprocessing"]
_TABLES = ("quantitative", "ablation", "datasets", "time_cost", "preprocessing")
_SUFFIX = "_SI"  # of a network trained with the paper's loss


@dataclass(frozen=True)
class PublishedRow:
    """One row of the paper's quantitative tables.

    Attributes:
        dataset: as the paper calls it.
        network: as the paper calls it.
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
        table: name of the table, or `claims` for a number in the text.
        location: its keys in the table: data set, row, column.
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
        raise UsageError(
            f"{name!r} names no row of the paper; expected DATASET/NETWORK, like MSOD/EDN+SI"
        )
    plain, plus, _ = network.upper().partition("+SI")
    return row(dataset, plain, size_invariant=bool(plus))


def table(name: TableName) -> "pl.DataFrame":
    """Return a whole table.

    The first columns identify the row: `dataset`, `network` and `size_invariant` in the quantitative
    tables, `dataset` and `alpha` in the ablation, `name` in the others.
    """
    import polars as pl

    check_known("table of the paper", name, _TABLES)
    content = _data()[name]
    if name == "quantitative":
        published = [
            row(d, n, size_invariant=si) for d in datasets() for n in networks() for si in (False, True)
        ]
        return pl.DataFrame(
            {"dataset": r.dataset, "network": r.network, "size_invariant": r.size_invariant} | r.values
            for r in published
        )
    if name == "ablation":
        return pl.DataFrame(
            {"dataset": dataset, "alpha": alpha} | dict(zip(content["metrics"], values, strict=True))
            for dataset, rows in content.items()
            if dataset != "metrics"
            for alpha, values in rows.items()
        )
    rows = {key: values for key, values in content.items() if key != "columns"}
    return pl.DataFrame(
        {"name": key} | dict(zip(content["columns"], values, strict=True))
        for key, values in rows.items()
    )


@functools.cache
def misprints() -> tuple[Misprint, ...]:
    """Return every printed number and formula that is believed to be wrong."""
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
    return {
        key: sum(_improvement(key, after[key], before[key]) for before, after in pairs) / len(pairs)
        for key in pairs[0][0]
    }


def claimed_gains() -> dict[str, dict[str, float]]:
    """Return the mean improvements that the paper's text claims: data set -> metric key -> gain."""
    return {dataset: dict(claims) for dataset, claims in _data()["claims"].items()}


def facts() -> dict[str, float]:
    """Return single numbers from the text: objects of MSOD, objects per image of DUTS-TR."""
    return dict(_data()["facts"])


def _improvement(key: str, after: float, before: float) -> float:
    return after - before if METRICS[key].direction == "up" else before - after


def _known(what: str, name: str, names: tuple[str, ...]) -> str:
    for known in names:
        if isinstance(name, str) and known.casefold() == name.casefold():
            return known
    raise UsageError(unknown_name_message(what, name, names))


@functools.cache
def _data() -> dict[str, Any]:
    text = resources.files("sisod.paper").joinpath("tables.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
