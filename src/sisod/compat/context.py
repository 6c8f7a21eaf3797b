"""Context-measure (Wang et al., 2025) of PySODMetrics: agreement of map and mask within a context."""

import math

import cv2
import numpy as np

from sisod.compat.handlers import ImageMetric
from sisod.compat.pairs import CheckedPair
from sisod.scoring.arrays import Mask, Values
from sisod.scoring.families.family import EPS

_LINE = 1e-12  # of 1 - the squared correlation of rows and columns: the pixels are on a sloping line


class ContextMeasure(ImageMetric):
    """How well the map fits the neighbourhood of the object, and how completely it covers the object."""

    result = "cm"

    def __init__(self, beta2: float = 1.0, alpha: float = 6.0) -> None:
        super().__init__()
        self.beta2 = beta2
        self.alpha = alpha
        self.scores = self.values

    def _score(self, pair: CheckedPair) -> float:
        p = pair.values.astype(np.float64, copy=False)
        kernel = _kernel(pair.gt, self.alpha)
        near = cv2.filter2D(pair.gt.astype(np.float32), cv2.CV_32F, kernel)
        fit = float((near * p).sum()) / (float(p.sum()) + EPS)
        covered = 1 - np.exp(-cv2.filter2D(p, -1, kernel)[pair.gt])
        complete = math.e / (math.e - 1) * float(covered.sum()) / (covered.size + EPS)
        weighted = self.beta2 * fit + complete + EPS
        return (1 + self.beta2) * fit * complete / weighted


def _kernel(gt: Mask, alpha: float) -> Values:
    """Return a Gaussian with the shape of the object and a size of `alpha`, up to three deviations."""
    covariance, reach = _context(gt, alpha)
    steps = [np.arange(-side, side + 1) for side in reach]
    offsets = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1)
    distance = np.einsum("yxi,ij,yxj->yx", offsets, np.linalg.inv(covariance), offsets)
    kernel = np.exp(-distance / 2)
    return np.asarray(kernel / kernel.sum())


def _context(gt: Mask, alpha: float) -> tuple[Values, list[int]]:
    """Return covariance of the Gaussian, and the reach of its window in rows and columns."""
    points = np.argwhere(gt)
    if len(points) <= 1:
        return np.diag([0.25, 0.25]), [1, 1]
    covariance = np.cov(points, rowvar=False).astype(np.float64)
    diagonal = np.diag_indices(2)
    covariance[diagonal] = np.where(covariance[diagonal] == 0, EPS, covariance[diagonal])
    variances = covariance[diagonal]
    if 1 - covariance[0, 1] ** 2 / variances.prod() < _LINE:
        raise ValueError(
            "the salient pixels of gt are on a sloping line, for which ContextMeasure is undefined; "
            "leave the image out"
        )
    size = math.sqrt(float(variances.sum()))
    # the order of operations decides how a half is rounded
    reach = [round(3 * (alpha * math.sqrt(float(value)) / size)) for value in variances]
    return alpha**2 * covariance / size**2, reach
