"""Synthetic data of the benchmarks: ellipses of very different sizes, and maps as of a network."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring.metrics import METRICS, find_metrics

Grey = NDArray[np.uint8]
SHAPE = (300, 400)
# metrics of pixel counts: neither pixels metrics nor predicted objects
COUNT_KEYS = tuple(
    key for key in find_metrics(None) if METRICS[key].family.kind not in ("objects", "balanced")
)
_LEAST_AREA = 50  # smaller components get no frame in PySODMetrics, and the two would differ in work


@dataclass(frozen=True, eq=False)
class Pair:
    """A prediction, its ground truth (0 and 255), and both as PNG files in memory."""

    pred: Grey
    gt: Grey
    pred_file: Grey
    gt_file: Grey


def make_pairs(n_pairs: int, *, seed: int = 0) -> list[Pair]:
    """Return pairs of 300 x 400 pixels with 1 to 8 objects, each number equally often."""
    rng = np.random.default_rng(seed)
    return [_pair(*make_map(SHAPE, 1 + index % 8, rng)) for index in range(n_pairs)]


def make_map(shape: tuple[int, int], n_objects: int, rng: np.random.Generator) -> tuple[Grey, Grey]:
    """Return a prediction and its ground truth with exactly that many components."""
    gt = _objects(shape, n_objects, rng)
    return _prediction(gt, rng), gt


def _pair(pred: Grey, gt: Grey) -> Pair:
    return Pair(pred, gt, _encoded(pred), _encoded(gt))


def _encoded(image: Grey) -> Grey:
    _, file = cv2.imencode(".png", image)
    return np.asarray(file, dtype=np.uint8)


def _objects(shape: tuple[int, int], n_objects: int, rng: np.random.Generator) -> Grey:
    """Ellipses that do not touch, from some ten pixels across to more than half of the image."""
    gt = np.zeros(shape, dtype=np.uint8)
    unit = shape[0] / SHAPE[0]
    placed = 0
    while placed < n_objects:
        one = np.zeros_like(gt)
        # even in the logarithm: as many small objects as large ones
        axes = np.exp(rng.uniform(math.log(5), math.log(90), size=2)) * unit
        centre = rng.uniform(0.05, 0.95, size=2) * (shape[1], shape[0])
        cv2.ellipse(
            one,
            (int(centre[0]), int(centre[1])),
            (int(axes[0]), int(axes[1])),
            float(rng.uniform(0, 180)),
            0,
            360,
            255,
            -1,
        )
        around = cv2.dilate(one, np.ones((5, 5), dtype=np.uint8))
        if np.count_nonzero(one) >= _LEAST_AREA and not np.logical_and(around, gt).any():
            gt |= one
            placed += 1
    return gt


def _prediction(gt: Grey, rng: np.random.Generator) -> Grey:
    """Sigmoid of a blurred mask and smooth noise: mostly 0 or 255, soft edges, faint ghosts.

    Sharpness and noise are such that OpenCV's PNG of it needs as many bits a pixel as those of the 300
    real maps of MSOD (0.83), since decoding time is one of the things compared.
    """
    soft = cv2.GaussianBlur(gt.astype(np.float32) / 255, (0, 0), 3.0)
    coarse = rng.normal(size=(gt.shape[0] // 16 + 1, gt.shape[1] // 16 + 1)).astype(np.float32)
    noise = cv2.resize(coarse, gt.shape[::-1], interpolation=cv2.INTER_CUBIC)
    logits = 14 * (soft - 0.5) + 1.0 * noise
    return np.asarray(np.rint(255 / (1 + np.exp(-logits))), dtype=np.uint8)
