"""A small synthetic data set on disk, and short training runs on it."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from sisod.data.scenes import make_scenes

# for tests that validate on the images they train on
same_data = pytest.mark.filterwarnings("ignore:.* images to validate on are trained on too")
SMALL = ("data.size=32", "train.epochs=2")


def write_data(root: Path, count: int = 16, *, black: bool = False) -> Path:
    """Write synthetic scenes as a data set; `black` makes the first mask black."""
    for kind in ("image", "mask"):
        (root / kind).mkdir(parents=True)
    for scene in make_scenes(count, seed=4, shape=(48, 64)):
        mask = np.zeros_like(scene.mask) if black and scene.name == "scene000" else scene.mask
        cv2.imwrite(str(root / "image" / f"{scene.name}.jpg"), scene.image)
        cv2.imwrite(str(root / "mask" / f"{scene.name}.png"), mask)
    return root


def train_tiny(
    data: Path | list[Path], out: Path, *settings: str, recipe: str = "tiny", **options: Any
) -> dict[str, Any]:
    """Train the recipe `tiny` for two epochs on small images, in this process; return the record."""
    from sisod.training.recipe import find_recipe
    from sisod.training.train import Machine, TrainingRequest, train

    settled = find_recipe(recipe, [*SMALL, *settings])
    own = {key: options.pop(key) for key in ("transform",) if key in options}
    return train(settled, TrainingRequest(data=data, out=out, **options), Machine(workers=0), **own)


def losses(out: Path) -> list[float]:
    """Return the loss of every step."""
    from sisod.training.trainer import read_metrics

    return [float(row["loss"]) for row in read_metrics(out / "metrics.csv") if row["loss"]]


def weights(out: Path) -> dict[str, Any]:
    """Return the tensors of a run's network."""
    from safetensors.torch import load_file

    return load_file(out / "model.safetensors")


def same_weights(a: Path, b: Path, *, tolerance: float = 0.0) -> None:
    """Check that the weights of two runs differ by no more than a tolerance."""
    first, second = weights(a), weights(b)
    assert first.keys() == second.keys()
    for key, value in first.items():
        assert float((value - second[key]).abs().max()) <= tolerance, key


def predicted_scores(run: Path, data: Path, maps: Path) -> dict[str, float]:
    """Return what `evaluate` says of the maps that `predict` writes with a run's network."""
    import sisod
    from sisod.networks.predict import predict_folder
    from sisod.networks.saved import load_network

    predict_folder(load_network(run), data / "image", maps, size=32, batch=1, device="cpu")
    return sisod.evaluate(maps, data / "mask", jobs=1).summary
