"""Metrics that are functions of counts: of pixels at every threshold, or of the sums of pixel errors.

To add one, add a function of `Counts` and its row in `COUNT_FAMILIES`. The first line of the function's
documentation says what it measures, and `sisod metrics` prints it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sisod.scoring.arrays import Values
from sisod.scoring.counting.histograms import LEVELS, Histogram
from sisod.scoring.families.family import Family

BETA2 = 0.3


@dataclass(frozen=True, eq=False)
class Counts:
    """Confusion matrices of several rows (an image or a frame each) at several thresholds.

    `positives` and `negatives` are NaN instead of 0, so that a metric that divides by them is undefined
    without a special case.
    """

    tp: Values
    fp: Values
    positives: Values
    negatives: Values
    n_negatives: Values
    size: Values
    alignment_size: Values

    @cached_property
    def predicted(self) -> Values:
        """Pixels at or above the threshold."""
        return self.tp + self.fp

    @cached_property
    def recall(self) -> Values:
        """TP / P."""
        return self.tp / self.positives

    @cached_property
    def fpr(self) -> Values:
        """FP / N."""
        return self.fp / self.negatives


def confusion_counts(above: Values, totals: Values) -> Counts:
    """Return the confusion matrices of the rows of a histogram, from its `above` and `totals`.

    E of the first row, which is the image, divides by HW - 1, E of a frame by S_k (docs/metrics.md).
    """
    size = totals.sum(axis=1, keepdims=True)
    alignment_size = size.copy()
    alignment_size[0] = max(float(size[0, 0]) - 1, 1)
    defined = np.where(totals == 0, np.nan, totals)
    return Counts(
        tp=above[:, 1],
        fp=above[:, 0],
        positives=defined[:, 1:],
        negatives=defined[:, :1],
        n_negatives=totals[:, :1],
        size=size,
        alignment_size=alignment_size,
    )


def absolute_error(h: Histogram) -> Values:
    """Mean of |p - g| over the pixels."""
    return h.absolute


def squared_error(h: Histogram) -> Values:
    """Mean of (p - g)^2 over the pixels."""
    return h.squared


def precision(c: Counts) -> Values:
    """TP / (TP + FP); 0 where nothing is predicted."""
    share: Values = c.tp / np.maximum(c.predicted, 1)
    share[np.isnan(c.positives[:, 0])] = np.nan
    return share


def recall(c: Counts) -> Values:
    """TP / (TP + FN)."""
    return c.recall


def f_measure(c: Counts) -> Values:
    """Weighted harmonic mean of precision and recall, beta^2 = 0.3."""
    # counts need no special case for P = R = 0; with the same operations in numerator and denominator
    # a perfect map scores exactly 1
    return (c.tp + BETA2 * c.tp) / (c.predicted + BETA2 * c.positives)


def iou(c: Counts) -> Values:
    """TP / (TP + FP + FN)."""
    return c.tp / (c.positives + c.fp)


def dice(c: Counts) -> Values:
    """2 TP / (2 TP + FP + FN)."""
    return 2 * c.tp / (c.positives + c.predicted)


def specificity(c: Counts) -> Values:
    """TN / (TN + FP)."""
    return 1 - c.fpr


def fpr(c: Counts) -> Values:
    """FP / (TN + FP)."""
    return c.fpr


def ber(c: Counts) -> Values:
    """Balanced error rate, 1 - (recall + specificity) / 2."""
    return 0.5 * (1 - c.recall + c.fpr)


def kappa(c: Counts) -> Values:
    """Cohen's kappa, (observed - expected agreement) / (1 - expected)."""
    # TP TN - FP FN = TP N - FP P
    agreement = 2 * (c.tp * c.negatives - c.fp * c.positives)
    return agreement / (c.predicted * c.negatives + c.positives * (c.size - c.predicted))


def accuracy(c: Counts) -> Values:
    """(TP + TN) / all."""
    # as a sum over pixels: the one separable metric with a curve
    return c.tp + (c.n_negatives - c.fp)


def e_measure(c: Counts) -> Values:
    """Enhanced alignment of map and ground truth (Fan et al., IJCAI 2018).

    It is the mean of (1 + x)^2 / 4 (the paper's appendix prints 1/2) with x = 2ab / (a^2 + b^2), where
    a and b are the binary prediction and the ground truth minus their means; with two values each there
    are four kinds of pixels. Without a salient pixel it is the share of pixels not predicted, with
    salient pixels only the share of pixels predicted.
    """
    p_mean, g_mean = c.predicted / c.size, c.positives / c.size
    p_out, g_out = 1 - p_mean, 1 - g_mean  # a predicted, a salient pixel minus the mean
    p2, g2, p_out2, g_out2 = p_mean * p_mean, g_mean * g_mean, p_out * p_out, g_out * g_out
    both, one, none = (p_out + g_out) ** 2, (p_out - g_mean) ** 2, (p_mean + g_mean) ** 2
    # (1 + x) / 2 = (a + b)^2 / (2 (a^2 + b^2))
    total = c.tp * (both / (p_out2 + g_out2)) ** 2
    total += c.fp * (one / (p_out2 + g2)) ** 2
    total += (c.positives - c.tp) * (one / (p2 + g_out2)) ** 2
    total += (c.negatives - c.fp) * (none / (p2 + g2)) ** 2
    total *= 0.25
    one_class = np.isnan(c.positives + c.negatives)[:, 0]
    if one_class.any():
        total[one_class] = accuracy(c)[one_class]
    return total / c.alignment_size


def auc(c: Counts) -> Values:
    """Area under the ROC curve on the grey levels, exact, ties one half."""
    tp, fp = c.tp[:, :LEVELS], c.fp[:, :LEVELS]
    # trapezoids, the last one down to the origin; integers below 2^53, exact in float64
    pairs = ((fp[:, :-1] - fp[:, 1:]) * (tp[:, :-1] + tp[:, 1:])).sum(axis=1)
    pairs = (pairs + fp[:, -1] * tp[:, -1]) / 2
    return np.asarray(pairs / (c.positives * c.negatives)[:, 0])


# recall and FPR fall with the threshold, specificity rises: their maximum is one end of the curve
_LOWEST = "it is the value at the lowest threshold, where nearly every pixel is predicted"
_HIGHEST = "it is the value at the highest threshold, where hardly a pixel is predicted"
_WORST = "it is the value at the worst threshold, about 0.5, where everything or nothing is predicted"

COUNT_FAMILIES = (
    Family("mae", "MAE", "down", absolute_error, "error", separable=True),
    Family("mse", "MSE", "down", squared_error, "error", separable=True),
    Family("f", "F", "up", f_measure, "curve", symbol=r"F_\beta"),
    Family("precision", "Precision", "up", precision, "curve"),
    Family("recall", "Recall", "up", recall, "curve", trivial_max=_LOWEST),
    Family("iou", "IoU", "up", iou, "curve"),
    Family("dice", "Dice", "up", dice, "curve"),
    Family("accuracy", "Accuracy", "up", accuracy, "curve", separable=True),
    Family("specificity", "Specificity", "up", specificity, "curve", trivial_max=_HIGHEST),
    Family("fpr", "FPR", "down", fpr, "curve", trivial_max=_LOWEST),
    Family("ber", "BER", "down", ber, "curve", trivial_max=_WORST),
    Family("kappa", "Kappa", "up", kappa, "curve", symbol=r"\kappa"),
    Family("e", "E", "up", e_measure, "curve", symbol=r"E_\xi"),
    Family("auc", "AUC", "up", auc, "scalar"),
)
