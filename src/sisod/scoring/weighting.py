"""Options that weigh the parts of an image in a loss; checked here without PyTorch, for recipes too."""

from typing import Literal, get_args

from sisod.common.arguments import check_choice, check_flag, check_number
from sisod.common.errors import UsageError
from sisod.scoring.partition import Alpha, check_alpha

PartKind = Literal["boxes", "cells", "blobs"]


def check_weighting(
    *, parts: object, alpha: Alpha, normalize: object, whole: object, gamma: object
) -> None:
    """Refuse invalid options, and options that contradict each other; see `SizeInvariantLoss`."""
    check_choice("parts", parts, get_args(PartKind))
    check_alpha(alpha)
    check_flag("normalize", normalize)
    check_number("whole", whole, most=1)
    check_number("gamma", gamma, most=1)
    if parts != "boxes":
        if gamma != 1:
            raise UsageError(
                f"gamma weighs boxes by their size, but parts is {parts!r}; leave gamma at 1"
            )
        if alpha != "ratio":
            raise UsageError(
                f"alpha weighs the background between boxes, but parts is {parts!r}; "
                "leave alpha at 'ratio'"
            )
    if not normalize and (parts != "boxes" or whole != 0 or gamma != 1):
        raise UsageError(
            "normalize=False is Eq. 16 as printed: a sum over boxes; "
            "use it with parts='boxes', whole=0 and gamma=1 only"
        )
