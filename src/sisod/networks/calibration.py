"""Calibration of a network's maps: two numbers between its logits and the sigmoid."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sisod.common.arguments import check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

_Logits = TypeVar("_Logits", "Tensor", "NDArray[Any]")
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0
MOST_SHIFT = 1000.0


@dataclass(frozen=True)
class Calibration:
    """The calibrated logit is logit / temperature + shift: increasing, so the order of pixels stays.

    Attributes:
        temperature: above 1 makes maps softer, below 1 harder; from 0.01 to 100.
        shift: below 0 makes maps darker, above 0 brighter.

    Example:
        >>> import numpy as np
        >>> Calibration(temperature=2.0, shift=-0.5).apply(np.array([-1.0, 0.0, 3.0])).tolist()
        [-1.0, -0.5, 1.0]
    """

    temperature: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        temperature = check_number(
            "temperature", self.temperature, least=LEAST_TEMPERATURE, most=MOST_TEMPERATURE
        )
        object.__setattr__(self, "temperature", temperature)
        shift = check_number("shift", self.shift, least=-MOST_SHIFT, most=MOST_SHIFT)
        object.__setattr__(self, "shift", shift)

    def __str__(self) -> str:
        return f"temperature {self.temperature:g}, shift {self.shift:+g}"

    def apply(self, logits: _Logits) -> _Logits:
        """Return the calibrated logits, of a tensor or an array."""
        return logits / self.temperature + self.shift

    def to_json(self) -> dict[str, float]:
        """Return the two numbers as plain data."""
        return asdict(self)
