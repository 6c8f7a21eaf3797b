"""Theorem 4.2: the generalisation bound, its Lipschitz constants, and rho against rho'."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.common.arguments import check_number
from sisod.common.exceptions import InputError
from sisod.scoring.arrays import as_mask
from sisod.scoring.partition import Partition, cut_mask

# of the loss of one pixel: l1 and mse in the probability; bce in the logit, as it has none in the former
PIXEL_LIPSCHITZ = {"l1": 1.0, "mse": 2.0, "bce": 1.0}


class Bound(NamedTuple):
    """The two terms of the bound: of the function class, proportional to L, and of the confidence."""

    capacity: float
    confidence: float

    @property
    def total(self) -> float:
        """The bound on expected risk minus empirical risk."""
        return self.capacity + self.confidence


def generalization_bound(
    *,
    n_samples: int,
    n_pixels: int,
    lipschitz: float,
    rademacher: float,
    delta: float = 0.05,
    epsilon: float = 0.1,
    constant: float = 1.0,
) -> Bound:
    """Return C L sqrt(pixels)/N R log^(3/2 + epsilon)(N/R) + 3 sqrt(log(2/delta) / 2N).

    C exists for every epsilon but its value is unknown, so only ratios of two bounds are meaningful.

    Args:
        n_samples: N, the number of images.
        n_pixels: pixels of an image, K in the theorem.
        lipschitz: L of the risk of one image, in the maximum norm.
        rademacher: R, the largest worst-case Rademacher complexity of an output coordinate: a sum over
            samples, not a mean, so between 0 and N; it grows as sqrt(N) for the usual classes.
        delta: probability that the bound does not hold.
        epsilon: a positive number.
        constant: C.

    Example:
        >>> bound = generalization_bound(n_samples=10000, n_pixels=1, lipschitz=1, rademacher=100)
        >>> round(bound.capacity, 4), round(bound.confidence, 4)
        (0.1151, 0.0407)
    """
    check_number("n_samples", n_samples, least=1)
    check_number("delta", delta, above=True, most=1)
    check_number("rademacher", rademacher, above=True, most=n_samples)  # a sum, not a mean
    growth = math.log(n_samples / rademacher) ** (1.5 + epsilon)
    capacity = constant * lipschitz * math.sqrt(n_pixels) / n_samples * rademacher * growth
    return Bound(capacity, 3 * math.sqrt(math.log(2 / delta) / (2 * n_samples)))


def separable_lipschitz(
    mu: float, *, n_frames: int = 1, alpha: float = 0.0, normalize: bool = True
) -> float:
    """Return L of a size-invariant separable loss with a mu-Lipschitz loss per pixel (case 1).

    It is mu for the normalised loss. Eq. 16 as printed has weights that sum to K + alpha, so its L is
    (K + alpha) mu.

    Example:
        >>> separable_lipschitz(1.0, n_frames=3, alpha=9.0)
        1.0
        >>> separable_lipschitz(1.0, n_frames=3, alpha=9.0, normalize=False)
        12.0
    """
    check_number("mu", mu)
    return mu if normalize else (n_frames + alpha) * mu


def dice_lipschitz(rho: float) -> float:
    """Return the theorem's L = 4 / rho of the mean over frames of 1 - 2 sum pg / (sum p + sum g).

    Args:
        rho: least salient share of a frame; for the plain loss, the salient share rho' of the image.

    Example:
        >>> dice_lipschitz(0.5)
        8.0
    """
    return 4 / check_number("rho", rho, above=True, most=1)


def sharp_dice_lipschitz(rho: float) -> float:
    """Return the smallest L of the same loss: for small rho, an eighth of the theorem's.

    With r = 1/rho - 1 it is r^2 / (2 (r - 1)), reached where p is 1 - 2/r on the object and 0 outside;
    2 where r is 2 or less, reached at p = 0.

    Example:
        >>> round(sharp_dice_lipschitz(0.01), 2), dice_lipschitz(0.01)
        (50.01, 400.0)
    """
    r = 1 / check_number("rho", rho, above=True, most=1) - 1
    return r * r / (2 * (r - 1)) if r > 2 else 2.0


def squared_dice_lipschitz(rho: float) -> float:
    """Return an L for Dice with squares, 1 - 2 sum pg / (sum p^2 + sum g^2), as in `sisod.losses`.

    It is 2 + 1/sqrt(rho), our own result: with D the denominator, the gradient's absolute sum is at most
    2 sum g / D + 4 sum pg sum p / D^2, where sum g <= D, sum pg <= D / 2 and
    sum p <= sqrt(S sum p^2) <= D / (2 sqrt(rho)).

    Example:
        >>> squared_dice_lipschitz(0.01)
        12.0
    """
    return 2 + 1 / math.sqrt(check_number("rho", rho, above=True, most=1))


@dataclass(frozen=True, eq=False)
class Shares:
    """Salient shares of the frames of one image, and of the image: `right`, rho'."""

    frames: NDArray[np.float64]
    right: float

    @property
    def left(self) -> float:
        """The least share of a frame: rho."""
        return float(self.frames.min())

    @property
    def holds(self) -> bool:
        """Whether rho > rho', as the paper assumes."""
        return self.left > self.right

    @property
    def dice_lipschitz(self) -> float:
        """L of this image's size-invariant Dice loss, the mean over frames of 4 / share."""
        return float(np.mean(4 / self.frames))


def salient_shares(gt: ArrayLike, *, partition: Partition | None = None) -> Shares:
    """Return the salient shares of the frames (rho is the least) and of the image (rho').

    Args:
        gt: mask with at least one salient pixel.
        partition: frames; by default `sisod.partition(gt)`.

    Example:
        A diagonal of 3 pixels on 5 x 10:

        >>> gt = np.zeros((5, 10), dtype=bool)
        >>> gt[[0, 1, 2], [0, 1, 2]] = True
        >>> shares = salient_shares(gt)
        >>> round(shares.left, 3), shares.right, shares.holds
        (0.333, 0.06, True)
    """
    mask = as_mask(gt)
    parts = cut_mask(mask) if partition is None else partition
    if parts.shape != mask.shape or parts.regions is not None or len(parts) == 0:
        raise InputError(f"rho needs one or more boxes of a mask of shape {mask.shape}")
    return Shares(parts.salient_shares(mask), float(mask.mean()))
