"""The paper's theory as functions: the decomposition of a score, the propositions, and the bound.

Every function returns both sides of a statement, so that it can be checked on any mask. If the paper's
statement needs a correction, the docstring says so; `docs/theory.md` has the counter-examples.
"""

from sisod.paper.theory.bound import (
    PIXEL_LIPSCHITZ,
    Bound,
    Shares,
    dice_lipschitz,
    generalization_bound,
    salient_shares,
    separable_lipschitz,
    sharp_dice_lipschitz,
    squared_dice_lipschitz,
)
from sisod.paper.theory.decomposition import AucDecomposition, Decomposition, decompose, decompose_auc
from sisod.paper.theory.propositions import (
    PredictorPair,
    Reattention,
    Sides,
    f_limit,
    next_frame_limit,
    proposition_3_3,
    proposition_4_1,
    proposition_b_1,
    single_object,
)

__all__ = [
    "PIXEL_LIPSCHITZ",
    "AucDecomposition",
    "Bound",
    "Decomposition",
    "PredictorPair",
    "Reattention",
    "Shares",
    "Sides",
    "decompose",
    "decompose_auc",
    "dice_lipschitz",
    "f_limit",
    "generalization_bound",
    "next_frame_limit",
    "proposition_3_3",
    "proposition_4_1",
    "proposition_b_1",
    "salient_shares",
    "separable_lipschitz",
    "sharp_dice_lipschitz",
    "single_object",
    "squared_dice_lipschitz",
]
