"""The data loaders of a run, and the auxiliary labels that a network of a first stage predicts for it.

Each process of a run takes its share of every batch.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightning as L  # noqa: N812  (the name everybody knows it by)
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch.utils.data import DataLoader

from sisod.common.exceptions import InputError, UsageError
from sisod.common.output import output_path, write_png
from sisod.common.processes import default_jobs
from sisod.common.progress import progress_bar
from sisod.common.run_folder import open_run
from sisod.data.containers import works_in_fork
from sisod.data.datasets import Sample
from sisod.networks.network import Network
from sisod.training.data import (
    EpochSampler,
    TrainingSet,
    ValidationSet,
    collate,
    collate_validation,
    quiet_worker,
    read_image,
    to_input,
)
from sisod.training.recipe_parts import TrainPart


class SaliencyData(L.LightningDataModule):
    """The loaders of a run.

    Args:
        train: says the batch and the seed.
        training: images to train on.
        validation: images to validate on; may be empty.
        workers: processes that read images; None for one per core, up to eight.
        rank: the index of this process, which takes its share of every batch.
        world: the number of processes.
    """

    def __init__(
        self,
        train: TrainPart,
        training: TrainingSet,
        validation: ValidationSet,
        *,
        workers: int | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        super().__init__()
        if train.batch % world:
            raise UsageError(
                f"a batch of {train.batch} images cannot be shared by {world} processes; set "
                f"train.batch to a multiple of {world}"
            )
        self.train, self.training, self.validation = train, training, validation
        self.workers = min(8, default_jobs()) if workers is None else workers
        self.rank, self.world = rank, world

    def train_dataloader(self) -> Any:
        """Return the loader; the epoch is set here since Lightning, resuming, sets it too late."""
        sampler = EpochSampler(
            len(self.training),
            step=self.train.images_per_step,
            seed=self.train.seed,
            rank=self.rank,
            world=self.world,
        )
        if self.trainer is not None:
            progress: Any = self.trainer.fit_loop.epoch_progress.current
            sampler.set_epoch(progress.processed)
        return DataLoader(
            self.training,
            batch_size=self.train.batch // self.world,
            sampler=sampler,
            collate_fn=collate,
            **self._options(),
        )

    def val_dataloader(self) -> Any:
        """Return the loader, or nothing."""
        if not len(self.validation):
            return []
        return DataLoader(
            self.validation,
            batch_size=self.train.batch // self.world,
            sampler=range(self.rank, len(self.validation), self.world),  # its own images, none twice
            collate_fn=collate_validation,
            **self._options(),
        )

    def _options(self) -> dict[str, Any]:
        samples = (*self.training.samples, *self.validation.samples)
        can_fork = all(works_in_fork(path) for one in samples for path in (one.image, one.mask))
        return {
            "multiprocessing_context": None if can_fork or not self.workers else "spawn",
            "num_workers": self.workers,
            "worker_init_fn": quiet_worker,
            "persistent_workers": self.workers > 0,
            "pin_memory": torch.cuda.is_available(),
        }


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
