"""A run of `tiny` on synthetic scenes, trained on some of the images."""

from pathlib import Path
from typing import Any

from helpers.training_runs import train_tiny, write_data

N_IMAGES, N_TRAINED = 32, 8


def write_run(root: Path, *settings: str, **options: Any) -> tuple[Path, Path]:
    """Train one epoch on 8 of 32 images; return the folders of the run and of the data."""
    data = write_data(root / "data", N_IMAGES)
    options = {"limit": N_TRAINED} | options
    train_tiny(data, root / "run", "train.epochs=1", *settings, **options)
    return root / "run", data
