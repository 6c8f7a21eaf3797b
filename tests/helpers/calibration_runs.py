"""A run of `tiny` on synthetic scenes, trained on some of the images, and maps with known errors."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from helpers.training_runs import train_tiny, write_data
from sisod.data.scenes import make_scenes

N_IMAGES, N_TRAINED = 32, 8


def write_run(root: Path, *settings: str, **options: Any) -> tuple[Path, Path]:
    """Train one epoch on 8 of 32 images; return the folders of the run and of the data."""
    data = write_data(root / "data", N_IMAGES)
    options = {"limit": N_TRAINED} | options
    train_tiny(data, root / "run", "train.epochs=1", *settings, **options)
    return root / "run", data


def write_maps(root: Path, count: int = 24, *, shift: float = 1.0) -> tuple[Path, Path]:
    """Write masks, and maps whose logits are those of calibrated noise plus a shift."""
    rng = np.random.default_rng(7)
    for kind in ("maps", "mask"):
        (root / kind).mkdir(parents=True)
    for scene in make_scenes(count, seed=5, shape=(40, 56)):
        logits = rng.normal(np.where(scene.mask > 0, 1.0, -1.0), 2**0.5)
        probs = 1 / (1 + np.exp(-(logits + prior(scene.mask) + shift)))
        cv2.imwrite(str(root / "maps" / f"{scene.name}.png"), np.rint(255 * probs).astype(np.uint8))
        cv2.imwrite(str(root / "mask" / f"{scene.name}.png"), scene.mask)
    return root / "maps", root / "mask"


def prior(mask: NDArray[Any]) -> float:
    """Return the logit of the salient share, which makes the noise above calibrated in its image."""
    share = float((mask > 0).mean())
    return float(np.log(share / (1 - share)))
