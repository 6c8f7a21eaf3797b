"""Make sure that results are of the same images, protocol and ground truths before they are compared."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.common.errors import InputError, UsageError, printable, shorten_list

if TYPE_CHECKING:
    from sisod.evaluation.result import Evaluation


def check_same_images(evaluations: "Mapping[str, Evaluation]") -> dict[str, NDArray[np.int64]]:
    """Refuse results of different images; return the order that sorts each like the first."""
    if not evaluations:
        raise UsageError("there are no results to compare; pass at least one")
    first, *others = evaluations
    base = evaluations[first]
    names = base.images["image"].to_list()
    orders = {first: np.arange(len(names))}
    for other in others:
        evaluation = evaluations[other]
        index = {name: i for i, name in enumerate(evaluation.images["image"].to_list())}
        _check_names(first, names, other, index)
        if evaluation.protocol != base.protocol:
            raise InputError(
                f"{first!r} was scored under the protocol {base.protocol.name!r} and {other!r} under "
                f"{evaluation.protocol.name!r}; evaluate both under one"
            )
        orders[other] = np.array([index[name] for name in names])
        _check_truths(first, base, other, evaluation, orders[other])
    return orders


def _check_names(first: str, names: list[str], other: str, index: Mapping[str, int]) -> None:
    only_first = [name for name in names if name not in index]
    known = set(names)
    only_other = [name for name in index if name not in known]
    if not only_first and not only_other:
        return
    differences = [
        f"{len(missing)} only in {whose!r} ({shorten_list(missing)})"
        for whose, missing in ((first, only_first), (other, only_other))
        if missing
    ]
    raise InputError(
        f"{first!r} and {other!r} are of different images: {', '.join(differences)}; "
        "evaluate both on the same"
    )


def _check_truths(
    first: str, base: "Evaluation", other: str, evaluation: "Evaluation", order: NDArray[np.int64]
) -> None:
    columns = ("height", "width", "n_objects")
    sizes = np.stack([base.images[key].to_numpy() for key in columns], axis=1)
    other_sizes = np.stack([evaluation.images[key].to_numpy() for key in columns], axis=1)[order]
    differ = np.flatnonzero((sizes != other_sizes).any(axis=1))
    if len(differ):
        name = printable(base.images["image"][int(differ[0])])
        raise InputError(
            f"{first!r} and {other!r} were scored against different ground truths: {len(differ)} "
            f"images differ in size or number of objects, the first is {name}; evaluate them again"
        )
