"""The data loaders of a run, and the auxiliary labels that a network of a first stage predicts for it.

Each process of a run takes its share of every batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
from torch.utils.data import DataLoader, Sampler

from sisod.common.exceptions import InputError, UsageError
from sisod.common.output import output_path, write_png
from sisod.common.processes import default_jobs
from sisod.common.run_folder import open_run
from sisod.common.streams import progress_bar
from sisod.data.containers import works_in_fork
from sisod.data.datasets import Sample
from sisod.losses import collate_boxes, collate_labels
from sisod.networks.network import Network
from sisod.training.data import (
    Item,
    TrainingBatch,
    TrainingSet,
    ValidationBatch,
    ValidationItem,
    ValidationSet,
    read_image,
    to_input,
)
from sisod.training.recipe_parts import TrainPart


def steps_per_epoch(n_images: int, images_per_step: int) -> int:
    """Return how many whole steps the images fill; at least one.

    Example:
        >>> steps_per_epoch(22, 4)
        5
    """
    if n_images < images_per_step:
        raise InputError(
            f"{n_images} images do not fill one step of {images_per_step}; lower train.batch or "
            "train.accumulate with --set, or give more images"
        )
    return n_images // images_per_step


@dataclass(eq=False)
class EpochSampler(Sampler[tuple[int, int]]):
    """The order of images by seed and epoch; every process takes its share of each batch.

    Images that do not fill a whole step are left out, so that every step has the same number.

    Attributes:
        n_images: number of images.
        step: images of one step, over all processes.
        seed: of the order.
        rank: index of this process.
        world: number of processes.
        epoch: set by Lightning.

    Example:
        >>> list(EpochSampler(5, step=2, seed=0))  # epoch and index
        [(0, 2), (0, 4), (0, 3), (0, 0)]
    """

    n_images: int
    step: int
    seed: int
    rank: int = 0
    world: int = 1
    epoch: int = 0

    def __post_init__(self) -> None:
        self.n_used = steps_per_epoch(self.n_images, self.step) * self.step

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; Lightning calls this."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.n_used // self.world

    def __iter__(self) -> Iterator[tuple[int, int]]:
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.n_images)
        for index in order[: self.n_used][self.rank :: self.world].tolist():
            yield self.epoch, index


def collate(items: Sequence[Item]) -> TrainingBatch:
    """Stack items to a batch."""
    images = np.stack([item.image for item in items]).transpose(0, 3, 1, 2)
    parts = [item.parts for item in items if item.parts is not None]  # of all or of none
    return TrainingBatch(
        torch.from_numpy(np.ascontiguousarray(images)),
        {
            kind: torch.from_numpy(np.stack([item.labels[kind] for item in items])[:, None])
            for kind in items[0].labels
        },
        collate_boxes([item.boxes for item in items]),
        tuple(item.name for item in items),
        collate_labels(parts) if parts else None,
    )


def collate_validation(items: Sequence[ValidationItem]) -> ValidationBatch:
    """Stack images; masks keep their own sizes."""
    images = torch.stack([image for image, _ in items])
    return ValidationBatch(images, tuple(torch.from_numpy(mask) for _, mask in items))


def quiet_worker(_: int) -> None:
    """Limit a worker process to one thread, since there are several workers."""
    cv2.setNumThreads(0)
    torch.set_num_threads(1)


def make_loaders(
    part: TrainPart,
    training: TrainingSet,
    validation: ValidationSet,
    *,
    workers: int | None = None,
    rank: int = 0,
    world: int = 1,
) -> tuple[DataLoader[Item], DataLoader[ValidationItem] | None]:
    """Return the loaders of a run: of the images to train on, and of those to validate on, if any.

    Args:
        part: says the batch and the seed.
        training: images to train on.
        validation: images to validate on; may be empty.
        workers: processes that read images; None for one per core, up to eight.
        rank: the index of this process, which takes its share of every batch.
        world: the number of processes.
    """
    if part.batch % world:
        raise UsageError(
            f"a batch of {part.batch} images cannot be shared by {world} processes; set train.batch to "
            f"a multiple of {world}"
        )
    workers = min(8, default_jobs()) if workers is None else workers
    samples = (*training.samples, *validation.samples)
    can_fork = all(works_in_fork(path) for one in samples for path in (one.image, one.mask))
    options: dict[str, Any] = {
        "batch_size": part.batch // world,
        "multiprocessing_context": None if can_fork or not workers else "spawn",
        "num_workers": workers,
        "worker_init_fn": quiet_worker,
        "persistent_workers": workers > 0,
        "pin_memory": torch.cuda.is_available(),
    }
    sampler = EpochSampler(
        len(training), step=part.images_per_step, seed=part.seed, rank=rank, world=world
    )
    loader = DataLoader(training, sampler=sampler, collate_fn=collate, **options)
    if not len(validation):
        return loader, None
    own = range(rank, len(validation), world)  # images of this process, none twice
    return loader, DataLoader(validation, sampler=own, collate_fn=collate_validation, **options)


@torch.inference_mode()
def write_labels(network: Network, samples: Sequence[Sample], folder: Path, *, size: int) -> None:
    """Write TARGET/NAME.png for every auxiliary target and image, at its size, all files or none.

    Of several maps of a target the last one counts: that of the network's last pass.
    """
    last_map = {target: index for index, target in enumerate(network.targets) if target != "mask"}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network.to(device).eval()
    with (
        open_run(folder, kind="labels", overwrite=True) as run,
        progress_bar("labels", len(samples)) as advance,
    ):
        run.begin()
        for sample in samples:
            image = read_image(sample)
            maps = network(network.input_spec.apply(to_input(image, size)[None].to(device)))
            for target, index in last_map.items():
                probs = F.interpolate(maps[index], size=image.shape[:2], mode="bilinear").sigmoid()
                label = (probs[0, 0] * 255).round().cpu().numpy().astype(np.uint8)
                write_png(output_path(run.path / target, sample.name, ".png"), label)
            advance(1)
        run.finish(images=len(samples), size=size)


def check_labels(folder: Path | None, network: Network) -> None:
    """Raise if a folder lacks labels of the network, or the network learns none."""
    if folder is None:
        return
    targets = network.auxiliary_targets()
    if not targets:
        raise UsageError(
            f"--labels is for networks that learn body and detail; {network.facts.name} learns masks "
            "only; leave it out"
        )
    if not all((folder / target).is_dir() for target in targets):
        raise InputError(
            f"{str(folder)!r} has no folders {' and '.join(targets)}; expected the folder labels of "
            "another run"
        )
