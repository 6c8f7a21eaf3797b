"""Images and masks -> batches: reading, common augmentation, then boxes, all in the workers.

The augmentation of an image depends on (seed, epoch, index of the image) alone. So the number of
workers, the number of processes and the step at which a run was resumed change nothing.
"""

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, cast

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from sisod.common.exceptions import InputError, is_missing
from sisod.common.imports import explain_errors, import_attribute
from sisod.common.streams import progress_bar
from sisod.data import truths
from sisod.data.datasets import Sample
from sisod.data.images import read_array, read_colour, resize
from sisod.data.storage import read_bytes
from sisod.losses import parts_of
from sisod.networks.network import Network
from sisod.scoring.loss_options import Weighting
from sisod.scoring.partition import cut_mask
from sisod.training.recipe_parts import DataPart

Plane = NDArray[np.uint8]
Transform = Callable[..., Mapping[str, Any]]
ValidationItem = tuple[Tensor, NDArray[np.bool_]]
LEVEL = 128  # grey value from which a pixel of a mask is salient
_ASPECT_TOLERANCE = 0.05  # image and mask may differ in size, but not in aspect ratio


class TrainingBatch(NamedTuple):
    """The input of a training step.

    Attributes:
        images: (B, 3, H, W) RGB, uint8.
        labels: from every target of the network, such as `mask`, to (B, 1, H, W), uint8.
        boxes: rows (image, y0, x0, y1, x1) of the masks' frames; on the CPU.
        names: of the images.
        parts: (B, H, W), the part of every pixel, for losses over cells; None for boxes.
    """

    images: Tensor
    labels: dict[str, Tensor]
    boxes: Tensor
    names: tuple[str, ...]
    parts: Tensor | None = None


class ValidationBatch(NamedTuple):
    """Images of one size and masks of their own sizes, (H, W), bool."""

    images: Tensor
    masks: tuple[Tensor, ...]


class Item(NamedTuple):
    """One image of a batch."""

    image: Plane
    labels: dict[str, Plane]
    boxes: NDArray[np.int64]
    name: str
    parts: NDArray[np.integer] | None = None


@dataclass(eq=False)
class TrainingSet(Dataset[Item]):
    """Augmented images by (epoch, index).

    Attributes:
        samples: images and masks.
        part: size and augmentation.
        seed: of the augmentation.
        network: the class that declares the targets to learn.
        labels_dir: folder of the labels of its auxiliary targets, as `write_labels` writes it; None
            derives them from the masks.
        weighting: says the parts of the masks that the loss is taken over; by default boxes.
        transform: augmentation of one's own, as `load_transform` returns it.
    """

    samples: Sequence[Sample]
    part: DataPart
    seed: int = 0
    network: type[Network] = Network
    labels_dir: Path | None = None
    weighting: Weighting = field(default_factory=Weighting)
    transform: Transform | None = None

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, key: tuple[int, int]) -> Item:
        """Return an image as augmented in an epoch."""
        epoch, index = key
        sample = self.samples[index]
        planes = {"image": read_image(sample), "mask": read_truth(sample).astype(np.uint8) * 255}
        if self.labels_dir is not None:
            for target in self.network.auxiliary_targets():
                planes[target] = read_array(self.labels_dir / target, f"{sample.name}.png")
        rng = np.random.default_rng((self.seed, epoch, index))
        if self.transform is not None:
            seed = int(np.random.default_rng((self.seed, epoch, index, 1)).integers(2**31))
            planes |= transform_pair(self.transform, planes["image"], planes["mask"], seed)
        planes = augment(planes, self.part, rng)
        mask, kind = planes["mask"], self.weighting.parts
        if self.labels_dir is None:
            planes |= self.network.split_mask(mask)
        found = parts_of(
            mask >= LEVEL,
            kind,
            connectivity=self.weighting.connectivity,
            min_area=self.weighting.min_area,
        )
        parts = None if kind == "boxes" else found["labels"][0].numpy()
        image = planes.pop("image")
        return Item(image, planes, found["boxes"].numpy()[:, 1:], sample.name, parts)


@dataclass(eq=False)
class ValidationSet(Dataset[ValidationItem]):
    """Images at the size of the network, masks at their own."""

    samples: Sequence[Sample]
    size: int

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> ValidationItem:
        """Return an image and its mask."""
        sample = self.samples[index]
        return to_input(read_image(sample), self.size), read_truth(sample)


def read_image(sample: Sample) -> Plane:
    """Read an image as RGB."""
    return np.ascontiguousarray(read_colour(sample.image.parent, sample.image.name)[..., ::-1])


def read_truth(sample: Sample) -> NDArray[np.bool_]:
    """Read a mask as the evaluation does."""
    return truths.read_truth(sample.mask.parent, sample.mask.name).mask(level=LEVEL)


def augment(planes: dict[str, Plane], part: DataPart, rng: np.random.Generator) -> dict[str, Plane]:
    """Crop, resize and flip an image and its labels in the same way.

    Args:
        planes: image and labels, (H, W, 3) or (H, W); they may have different sizes, as in some data
            sets.
        part: size of the result, probability of a flip, largest crop.
        rng: five numbers are drawn from it.

    Example:
        >>> mask = np.eye(2, dtype=np.uint8) * 255
        >>> part, rng = DataPart(size=2, flip=1.0), np.random.default_rng(0)
        >>> augment({"mask": mask}, part, rng)["mask"].tolist()
        [[0, 255], [255, 0]]
    """
    cut_y, cut_x, at_y, at_x, flip = rng.random(5)  # always five, whatever the recipe uses
    cut_y, cut_x = cut_y * part.crop, cut_x * part.crop
    augmented = {}
    for name, plane in planes.items():
        height, width = plane.shape[:2]
        y0 = min(round(at_y * cut_y * height), height - 1)  # at least one pixel
        x0 = min(round(at_x * cut_x * width), width - 1)
        y1 = y0 + max(1, round((1 - cut_y) * height))
        x1 = x0 + max(1, round((1 - cut_x) * width))
        resized = resize(plane[y0:y1, x0:x1], part.size)
        augmented[name] = np.ascontiguousarray(resized[:, ::-1]) if flip < part.flip else resized
    return augmented


def load_transform(name: str) -> Transform:
    """Return the augmentation that `[data] augment` names; this imports and runs code.

    Args:
        name: `py:module:function`, or a file that albumentations saved.
    """
    if not name.endswith((".json", ".yaml")):
        return cast("Transform", import_attribute(name.removeprefix("py:"), "augmentation"))
    if is_missing("albumentations"):
        raise InputError(f"{name!r} needs albumentations; install it with: pip install albumentations")
    import albumentations

    with explain_errors(f"{name!r} cannot be loaded by albumentations"):
        transform: Transform = albumentations.load(name, data_format=Path(name).suffix[1:])
    return transform


def transform_pair(transform: Transform, image: Plane, mask: Plane, seed: int) -> dict[str, Plane]:
    """Return image and mask after a transform that draws its random numbers from a seed.

    The seed is that of `random` and of NumPy's global generator; transforms of albumentations, which
    have their own generator, get it by `set_random_seed`.

    Example:
        >>> image, mask = np.zeros((2, 2, 3), np.uint8), np.eye(2, dtype=np.uint8)
        >>> def flip(image, mask):
        ...     return {"image": image[::-1], "mask": mask[::-1]}
        >>> transform_pair(flip, image, mask, seed=0)["mask"].tolist()
        [[0, 1], [1, 0]]
    """
    height, width = image.shape[:2]
    if mask.shape != (height, width):
        mask = cv2.resize(mask, (width, height), interpolation=cv2.INTER_NEAREST).astype(np.uint8)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (of the transform's own code)
    if hasattr(transform, "set_random_seed"):
        transform.set_random_seed(seed)
    done = transform(image=image, mask=mask)
    return {"image": np.asarray(done["image"], np.uint8), "mask": np.asarray(done["mask"], np.uint8)}


def to_input(image: Plane, size: int) -> Tensor:
    """Return an RGB image as (3, size, size), uint8.

    Example:
        >>> to_input(np.zeros((40, 60, 3), np.uint8), 32).shape
        torch.Size([3, 32, 32])
    """
    return torch.from_numpy(resize(image, size).transpose(2, 0, 1).copy())


def limit_samples(samples: Sequence[Sample], limit: int | None) -> tuple[Sample, ...]:
    """Return at most `limit` samples, spread over the whole set, the same ones for every seed.

    Example:
        >>> samples = [Sample(name, Path(), Path()) for name in "abcdef"]
        >>> [sample.name for sample in limit_samples(samples, 3)]
        ['c', 'd', 'f']
    """
    if limit is None or limit >= len(samples):
        return tuple(samples)
    chosen = np.random.default_rng(0).permutation(len(samples))[:limit]
    return tuple(samples[index] for index in sorted(chosen.tolist()))


def select_samples(
    samples: Sequence[Sample], *, limit: int | None, calibrate: float
) -> tuple[Sample, ...]:
    """Return the samples to train on: without the share kept for calibration, at most `limit`."""
    kept = samples if calibrate == 0 else [s for s in samples if name_order(s.name) >= calibrate]
    return limit_samples(kept, limit)


def name_order(name: str) -> float:
    """Return a number in [0, 1) that depends on the name of an image alone, like a random one.

    Example:
        >>> round(name_order("im1"), 3), round(name_order("im2"), 3)
        (0.248, 0.535)
    """
    digest = hashlib.sha256(f"sisod calibrate {name}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


class CheckedSamples(NamedTuple):
    """What was found by reading every file once.

    Attributes:
        samples: those that can be used.
        problems: a sentence about each of the others.
        n_components: of the masks of the usable samples, if there is a weighting.
        n_objects: how many of them are objects of the loss.
    """

    samples: tuple[Sample, ...]
    problems: tuple[str, ...] = ()
    n_components: int = 0
    n_objects: int = 0


def check_samples(
    samples: Sequence[Sample], *, skip_bad: bool = False, weighting: Weighting | None = None
) -> CheckedSamples:
    """Read every file once, so that a broken one is reported before training starts.

    Args:
        samples: images and masks.
        skip_bad: leave out those that cannot be used, instead of raising.
        weighting: count the objects of this loss, in masks of their own size, as `evaluate` does.
    """
    good, bad, n_components, n_objects = list[Sample](), list[str](), 0, 0
    with ThreadPoolExecutor() as pool, progress_bar("reading", len(samples)) as advance:
        for sample, found in zip(samples, pool.map(_check, samples, repeat(weighting)), strict=True):
            advance(1)
            if not isinstance(found, str):
                good.append(sample)
                n_components, n_objects = n_components + found[0], n_objects + found[1]
            elif skip_bad:
                bad.append(found)
            else:
                pool.shutdown(cancel_futures=True)
                raise InputError(f"{found}; or leave such images out with --skip-bad")
    if not good:
        raise InputError(f"none of the {len(samples)} images can be used; the first: {bad[0]}")
    return CheckedSamples(tuple(good), tuple(bad), n_components, n_objects)


def _check(sample: Sample, weighting: Weighting | None) -> tuple[int, int] | str:
    """Return the numbers of components and objects of a mask, or what is wrong with the files."""
    try:
        image, mask = read_image(sample), read_truth(sample)
    except InputError as error:
        return str(error)
    (height, width), (mask_height, mask_width) = image.shape[:2], mask.shape
    if abs(height * mask_width / (width * mask_height) - 1) > _ASPECT_TOLERANCE:
        is_rotated = abs(height * mask_height / (width * mask_width) - 1) <= _ASPECT_TOLERANCE
        cause = " (the mask is rotated, as if drawn without the photograph's EXIF orientation)"
        return (
            f"{str(sample.image)!r} is {width} x {height} pixels but its mask is {mask_width} x "
            f"{mask_height}; expected the same aspect ratio; rotate or replace one of them"
            + (cause if is_rotated else "")
        )
    if weighting is None:
        return 0, 0
    partition = cut_mask(mask, connectivity=weighting.connectivity, min_area=weighting.min_area)
    return len(partition.components), len(partition)


def image_digest(sample: Sample) -> bytes:
    """Return a digest of the bytes of an image file, which a copy under another name has too."""
    return file_digest(sample.image.parent, sample.image.name)


def file_digest(root: str | Path, path: str) -> bytes:
    """Return a digest of the bytes of a file, in a folder or a container."""
    return hashlib.sha256(read_bytes(root, path)).digest()
