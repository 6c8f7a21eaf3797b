"""Base class of the networks: the contract of `forward`, facts, targets, saving and loading."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from huggingface_hub.constants import REPOCARD_NAME
from numpy.typing import NDArray
from torch import Tensor, nn

from sisod.common.arguments import check_known
from sisod.common.imports import explain_errors
from sisod.common.output import json_bytes, write_output
from sisod.networks.checkpoints import WEIGHTS_FILE, Rules, load_strictly, rename, write_state
from sisod.networks.encoders import INPUTS, load_encoder_weights
from sisod.networks.registry import Facts
from sisod.networks.specs import Calibration, InputSpec, Size

Target = Literal["mask", "body", "detail"]
_CARD = """\
---
library_name: sisod
pipeline_tag: image-segmentation
tags:
- salient-object-detection
---

A saliency network saved by sisod. Load it with `sisod.networks.from_pretrained`, a module of your own
with `factory=`, the function that builds it; `config.json` says which network it is and how an image
becomes its input.
"""


class Network(nn.Module):
    """Base of the networks: `forward` takes (B, 3, H, W) and returns logit maps (B, 1, H, W).

    The first map is the prediction, the others are supervised side outputs; train and eval mode return
    the same maps. The input is what `input_spec.apply` returns.

    Attributes:
        facts: name, paper, licence.
        targets: what each map is trained to be. Mask maps get the loss of the recipe, the others plain
            binary cross-entropy.
        published_inputs: the input spec of published weights by origin, `"authors"` or `"si-sod"`.
        renames: patterns that turn the authors' key names into ours.
        unused: prefixes of the names of parameters that no output depends on.
        input_spec: how an image becomes the input of these weights.
        input_size: height and width that images are resized to for these weights, by default those of
            the training; None if any will do.
        encoder_name: `"resnet50"` or `"efficientnet_lite0"`.
        calibration: applied to the logits of the prediction by `predict` and `export`, not by `forward`;
            None if the network is not calibrated.
    """

    facts: ClassVar[Facts]
    targets: ClassVar[tuple[Target, ...]] = ("mask",)
    published_inputs: ClassVar[Mapping[str, InputSpec]] = {}
    renames: ClassVar[Rules] = ()
    unused: ClassVar[tuple[str, ...]] = ()
    input_spec: InputSpec
    input_size: Size | None = None
    encoder_name: str
    encoder: nn.Module
    calibration: Calibration | None = None

    def __init__(self, encoder: str = "resnet50", input_spec: InputSpec | None = None) -> None:
        super().__init__()
        self.encoder_name = encoder
        self.input_spec = input_spec or INPUTS.get(encoder, InputSpec())

    @classmethod
    def auxiliary_targets(cls) -> tuple[Target, ...]:
        """Return the targets other than the mask, each once; most networks have none."""
        return tuple(target for target in dict.fromkeys(cls.targets) if target != "mask")

    @staticmethod
    def split_mask(mask: NDArray[Any]) -> dict[str, NDArray[np.uint8]]:  # noqa: ARG004
        """Return the label of every auxiliary target, in 0..255, derived from a mask."""
        return {}

    def config(self) -> dict[str, Any]:
        """Return the values from which this network can be built again."""
        config = {
            "network": self.facts.name,
            "encoder": self.encoder_name,
            "input_spec": asdict(self.input_spec),
            "size": self.input_size,
        }
        calibration = self.calibration
        return config if calibration is None else config | {"calibration": calibration.to_json()}

    def calibrated(self, logits: Tensor) -> Tensor:
        """Return the prediction's logits, calibrated if the network is."""
        return logits if self.calibration is None else self.calibration.apply(logits)

    def saliency(self, logits: Tensor) -> Tensor:
        """Return the probabilities of the prediction's logits, calibrated if the network is."""
        return self.calibrated(logits).sigmoid()

    def load_encoder(self, weights: str | Path) -> None:
        """Load ImageNet weights into the encoder: `"imagenet"`, or the path of a file."""
        load_encoder_weights(getattr(self, "encoder", None), weights, title=self.facts.name)

    @classmethod
    def load_published(cls, state_dict: Mapping[str, Tensor], *, origin: str = "authors") -> Self:
        """Return the network with published weights; see `sisod.networks.load_published`."""
        check_known(f"origin of weights of {cls.facts.name}", origin, cls.published_inputs)
        network = cls(input_spec=cls.published_inputs[origin])
        renamed, unknown = rename(state_dict, cls.renames)
        load_strictly(network, renamed, source=f"{cls.facts.name} checkpoint", unknown=unknown)
        return network

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `model.safetensors`, `config.json` and a model card into a folder, the weights last."""
        folder, config = Path(folder), self.config()
        write_output(folder / "config.json", json_bytes(config))
        write_output(folder / REPOCARD_NAME, _CARD.encode())
        write_state(folder / WEIGHTS_FILE, self.state_dict(), config)

    def count_macs(self, size: Size) -> int:
        """Return the multiply-adds of convolutions and matrix products for one image.

        The network must be on the device `meta`, which computes shapes only.

        Example:
            >>> from sisod import networks
            >>> with torch.device("meta"):
            ...     network = networks.create("tiny")
            >>> f"{network.count_macs((384, 384)) / 1e9:.2f} billion"
            '0.78 billion'
        """
        from torch.utils.flop_counter import FlopCounterMode

        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            self.eval()(torch.empty(1, 3, *size, device="meta"))
        return counter.get_total_flops() // 2


def module_errors(network: Network, shape: Sequence[int]) -> AbstractContextManager[None]:
    """Turn what a network raises for a batch of this shape into one sentence."""
    return explain_errors(f"{network.facts.title} failed on a batch of shape {tuple(shape)}")


@contextmanager
def eval_mode(network: nn.Module) -> Iterator[None]:
    """Put a network into eval mode, and every part of it back into its mode afterwards.

    Example:
        >>> network = nn.Dropout()
        >>> with eval_mode(network):
        ...     network.training
        False
        >>> network.training
        True
    """
    modes = [(part, part.training) for part in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
