"""The paper's tables as data, with its misprints."""

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, get_args

from sisod.common.arguments import check_known
from sisod.common.exceptions import UsageError
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    import polars as pl


TableName = Literal["quantitative", "ablation", "datasets", "time_cost", "preprocessing"]
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


@dataclass(frozen=True)
class GroupClaim:
    """A gain that the paper's text claims for a group of objects or images.

    Attributes:
        group: which objects or images.
        dataset: as the paper calls it.
        network: as the paper calls it.
        metric: key of the metric.
        gain: improvement by the paper's loss; positive is better, also where a lower value is.
        section: of the paper.
    """

    group: str
    dataset: str
    network: str
    metric: str
    gain: float
    section: str


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
    tables, `dataset` and `alpha` in the ablation, `name` in the others.
    """
    import polars as pl

    check_known("table of the paper", name, get_args(TableName))
    content = _data()[name]
    if name == "quantitative":
        rows = [
            row(d, n, size_invariant=si) for d in datasets() for n in networks() for si in (False, True)
        ]
        keys = ("dataset", "network", "size_invariant")
        return pl.DataFrame({key: getattr(r, key) for key in keys} | r.values for r in rows)
    if name == "ablation":
        labelled = [
            ({"dataset": dataset, "alpha": alpha}, values)
            for dataset, lines in content.items()
            if dataset != "metrics"
            for alpha, values in lines.items()
        ]
    else:
        labelled = [({"name": key}, values) for key, values in content.items() if key != "columns"]
    columns = content.get("metrics") or content["columns"]
    return pl.DataFrame(label | dict(zip(columns, values, strict=True)) for label, values in labelled)


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


def group_claims() -> tuple[GroupClaim, ...]:
    """Return what the paper's text claims for small objects and for images of several objects.

    Example:
        >>> [(claim.group[:16], claim.metric, claim.gain) for claim in group_claims()]
        [('objects of 0 to ', 'si_mae', 0.024), ('images of two or', 'si_mae', 0.007)]
    """
    return tuple(GroupClaim(**claim) for claim in _data()["group_claims"])


def facts() -> dict[str, float]:
    """Return single numbers from the text: objects of MSOD, objects per image of DUTS-TR."""
    return dict(_data()["facts"])


def _known(what: str, name: str, names: tuple[str, ...]) -> str:
    spelled = {known.casefold(): known for known in names}.get(str(name).casefold(), name)
    check_known(what, spelled, names)
    return spelled


@functools.cache
def _data() -> dict[str, Any]:
    text = resources.files("sisod.paper").joinpath("tables.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
