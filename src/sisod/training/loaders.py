"""Loaders that feed a run: each process takes its share of every batch, whatever their number."""

from collections.abc import Sequence
from typing import Any

import lightning as L  # noqa: N812  (the name everybody knows it by)
import torch
from torch.utils.data import DataLoader

from sisod.common.errors import UsageError
from sisod.data.datasets import Sample
from sisod.evaluation.runners import default_jobs
from sisod.training.data import (
    EpochSampler,
    Labels,
    ShareSampler,
    TrainingSet,
    ValidationSet,
    collate,
    collate_validation,
    quiet_worker,
)
from sisod.training.recipe import Recipe


class Data(L.LightningDataModule):
    """The loaders."""

    def __init__(
        self,
        recipe: Recipe,
        samples: Sequence[Sample],
        val_samples: Sequence[Sample],
        *,
        workers: int | None,
        labels: Labels | None,
    ) -> None:
        super().__init__()
        self.recipe = recipe
        self.workers = workers if workers is not None else default_workers()
        self.training = TrainingSet(samples, recipe.data, seed=recipe.train.seed, labels=labels)
        self.validation = ValidationSet(val_samples, recipe.data.size)
        self.rank, self.world = 0, 1

    def set_processes(self, rank: int, world: int) -> None:
        """Say which process this is; each takes its share of every batch."""
        if self.recipe.train.batch % world:
            raise UsageError(
                f"a batch of {self.recipe.train.batch} images cannot be shared by {world} processes; "
                f"set train.batch to a multiple of {world}"
            )
        self.rank, self.world = rank, world

    @property
    def n_steps(self) -> int:
        """Steps of an epoch."""
        return self._sampler().n_used // self.recipe.train.images_per_step

    def train_dataloader(self) -> Any:
        """Return the loader; the epoch is set here since Lightning, resuming, sets it too late."""
        sampler = self._sampler()
        if self.trainer is not None:
            progress: Any = self.trainer.fit_loop.epoch_progress.current
            sampler.set_epoch(progress.processed)
        return DataLoader(
            self.training,
            batch_size=self.recipe.train.batch // self.world,
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
            batch_size=max(1, self.recipe.train.batch // self.world),
            sampler=ShareSampler(len(self.validation), rank=self.rank, world=self.world),
            collate_fn=collate_validation,
            **self._options(),
        )

    def _sampler(self) -> EpochSampler:
        train = self.recipe.train
        return EpochSampler(
            len(self.training),
            step=train.images_per_step,
            seed=train.seed,
            rank=self.rank,
            world=self.world,
        )

    def _options(self) -> dict[str, Any]:
        return {
            "num_workers": self.workers,
            "worker_init_fn": quiet_worker,
            "persistent_workers": self.workers > 0,
            "pin_memory": torch.cuda.is_available(),
        }


def default_workers() -> int:
    """Return as many workers as there are cores, up to eight."""
    return min(8, default_jobs())
