"""The two sides of a statement."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sides:
    """Both sides of one statement, on one example.

    Attributes:
        left: the left side.
        right: the right side.
        assumed: whether the example meets the paper's condition.
        holds: whether the statement is true for the example.
    """

    left: float
    right: float
    assumed: bool
    holds: bool
