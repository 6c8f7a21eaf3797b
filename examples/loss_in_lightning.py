"""The size-invariant loss in a Lightning module.

Lightning moves every tensor of a batch, including the boxes, to the device; the loss copies none back.
Run `python examples/loss_in_lightning.py`.
"""

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from loss_in_a_loop import Sample, Scenes, collate, make_network
from torch import Tensor
from torch.utils.data import DataLoader

from sisod.losses import SizeInvariantLoss


class Saliency(lightning.LightningModule):
    """A toy network and the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.network = make_network()
        self.loss = SizeInvariantLoss("bce", "dice")

    def training_step(self, batch: Sample, _index: int) -> Tensor:
        """Return the loss of a batch."""
        images, masks, boxes = batch
        loss: Tensor = self.loss(self.network(images), masks, boxes)
        self.log("loss", loss, on_epoch=True, on_step=False, batch_size=len(images))
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam."""
        return torch.optim.Adam(self.parameters(), lr=1e-2)


class History(Callback):
    """Prints and keeps the mean loss of every epoch."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_train_epoch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        """Store the mean loss of the epoch."""
        self.losses.append(float(trainer.callback_metrics["loss"]))
        print(f"epoch {pl_module.current_epoch}: loss {self.losses[-1]:.3f}")


def main(n_epochs: int = 4) -> list[float]:
    """Train, print and return the mean loss of every epoch."""
    lightning.seed_everything(0, verbose=False)
    history = History()
    trainer = lightning.Trainer(
        max_epochs=n_epochs,
        accelerator="cpu",
        callbacks=[history],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Saliency(), DataLoader(Scenes(16), batch_size=8, shuffle=True, collate_fn=collate))
    return history.losses


if __name__ == "__main__":
    main()
