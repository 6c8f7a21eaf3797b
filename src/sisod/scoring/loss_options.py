"""Options of a loss: its terms, such as `"bce"` or `"focal(2)"`, and what weighs the parts of an image.

Checked here without PyTorch, for recipes too.
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from sisod.common.arguments import (
    check_choice,
    check_flag,
    check_int,
    check_number,
    short_repr,
    unknown_name_message,
)
from sisod.common.exceptions import UsageError
from sisod.scoring.partition import Alpha, check_partition_settings

Mode = Literal["binary", "multiclass", "multilabel"]
PartKind = Literal["boxes", "cells"]
# the recommended loss, for `BalancedLoss` and `sisod train --loss balanced`: small objects gain, and
# false objects are punished as well, because every pixel belongs to a part and half of the loss is that
# of the whole image
BALANCED_TERMS = ("bce", "tversky(0.3,0.7)")
BALANCED_PARTS: PartKind = "cells"
BALANCED_IMAGE_WEIGHT = 0.5
# of the numbers in brackets
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "bce": (),
    "mse": (),
    "l1": (),
    "focal": ("g",),
    "dice": (),
    "iou": (),
    "auc": (),
    "tversky": ("a", "b"),
}
# name of a term -> how it is written, if not as its name alone
_EXAMPLES = {
    "focal": ("focal(2)",),
    "dice": ("dice", "dice(squared=false)"),
    "tversky": ("tversky(0.3,0.7)",),
}
TERM_NAMES = tuple(
    f"{name}({','.join(names)})" if names else name for name, names in _PARAMETERS.items()
)
_DICE = re.compile(r"dice\(\s*squared\s*=\s*(true|false)\s*\)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?")
_TERM = re.compile(r"([a-z0-9]+)(?:\((.*)\))?", re.DOTALL)


def parse_term(text: object) -> tuple[str, dict[str, float]]:
    """Return the name of a term and its numbers.

    Example:
        >>> parse_term("dice")
        ('dice', {})
        >>> parse_term("dice(squared=false)")  # which is Tversky's loss with 0.5 and 0.5
        ('tversky', {'a': 0.5, 'b': 0.5})
        >>> parse_term("tversky(0.3, 0.7)")
        ('tversky', {'a': 0.3, 'b': 0.7})
    """
    if isinstance(text, str) and (dice := _DICE.fullmatch(text)):
        text = "dice" if dice[1].lower() == "true" else "tversky(0.5,0.5)"
    match = _TERM.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[1] not in _PARAMETERS:
        raise UsageError(unknown_name_message("term", text, TERM_NAMES))
    name, inside = match[1], match[2]
    numbers = [] if inside is None else [number.strip() for number in inside.split(",")]
    parameters = _PARAMETERS[name]
    if len(numbers) != len(parameters) or not all(_NUMBER.fullmatch(number) for number in numbers):
        forms = " or ".join(map(repr, _EXAMPLES.get(name, (name,))))
        raise UsageError(f"term {short_repr(text)} must be like {forms}, with numbers >= 0")
    return name, check_term_numbers(name, *map(float, numbers))


def check_term_numbers(name: str, *values: object) -> dict[str, float]:
    """Return the numbers of a term by name; raise for negative ones and those without meaning."""
    form = f"{name}({','.join(_PARAMETERS[name])})"
    numbers = {
        parameter: check_number(f"{parameter} of {form}", value)
        for parameter, value in zip(_PARAMETERS[name], values, strict=True)
    }
    if name == "tversky" and not any(numbers.values()):
        raise UsageError("tversky(0,0) counts no errors; give at least one number above 0")
    return numbers


@dataclass(frozen=True)
class Weighting:
    """What the objects of a target are and how its parts are weighed; see `SizeInvariantLoss`.

    Example:
        >>> Weighting(parts="discs")
        Traceback (most recent call last):
        sisod.common.exceptions.UsageError: parts must be 'boxes' or 'cells', got 'discs'
    """

    parts: PartKind = "boxes"
    mode: Mode = "binary"
    ignore_index: int | None = None
    image_weight: float = 0.0
    alpha: Alpha = "ratio"
    min_area: float = 0.0002
    connectivity: Literal[4, 8] = 8
    normalize: bool = True
    gamma: float = 1.0
    check_parts: bool = True

    def __post_init__(self) -> None:
        """Raise for invalid options, and options that contradict each other."""
        check_choice("mode", self.mode, get_args(Mode))
        if self.ignore_index is not None:
            check_int("ignore_index", self.ignore_index, least=-(2**31))
        check_choice("parts", self.parts, get_args(PartKind))
        check_partition_settings(
            kind="boxes", connectivity=self.connectivity, min_area=self.min_area, alpha=self.alpha
        )
        check_flag("normalize", self.normalize)
        check_flag("check_parts", self.check_parts)
        check_number("image_weight", self.image_weight, most=1)
        check_number("gamma", self.gamma, most=1)
        if self.parts != "boxes" and (self.gamma, self.alpha) != (1, "ratio"):
            raise UsageError(
                f"gamma and alpha weigh boxes and the background between them, but parts is "
                f"{self.parts!r}; leave gamma at 1 and alpha at 'ratio'"
            )
        if not self.normalize and (self.parts, self.image_weight, self.gamma) != ("boxes", 0, 1):
            raise UsageError(
                "without normalize the loss is Eq. 16 as printed, a sum over boxes; use it with parts "
                "'boxes', image_weight 0 and gamma 1 only"
            )
