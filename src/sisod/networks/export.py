"""Export to ONNX: the file takes RGB images and returns saliency, and needs no other preprocessing."""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from sisod.common.exceptions import InputError, require
from sisod.common.imports import describe_error
from sisod.common.output import write_file
from sisod.networks.network import Network, eval_mode
from sisod.networks.onnx_model import LOGIT
from sisod.networks.predict import DEFAULT_SIZE, check_memory
from sisod.networks.specs import CONFIG_KEY, Size

IMAGE = "image"
SALIENCY = "saliency"
_BATCH = 2  # of the example input; the exporter would treat 1 as a constant


@contextmanager
def _readable(network: Network, size: Size) -> Iterator[None]:
    """Silence the exporter's messages, and say in one sentence what it raises, a report of pages."""
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        reason = error.__cause__ or error  # that of the module's code
        raise InputError(
            f"{network.facts.title} cannot be exported for images of {size[0]} x {size[1]} "
            f"({describe_error(reason)})"
        ) from error
    finally:
        logging.disable(logging.NOTSET)


class Saliency(nn.Module):
    """RGB images in [0, 1] -> saliency in [0, 1] and its logit, with preparation and calibration."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return both as (B, 1, H, W)."""
        logits: Tensor = self.network(self.network.input_spec.apply(image))[0]
        return self.network.saliency(logits), self.network.calibrated(logits)


def export_onnx(
    network: Network,
    path: str | Path,
    *,
    size: Size | None = None,
    dynamic_size: bool = False,
) -> None:
    """Write the network as one ONNX file that takes any batch size.

    The input `image` is (batch, 3, height, width), RGB in [0, 1]; the output `saliency` is
    (batch, 1, height, width) in [0, 1], and `saliency_logit` its logit, which `sisod predict` resizes: a
    probability has lost what is beyond 0.999999. The metadata hold the network's config and `size`.

    Args:
        network: any of `networks.names()`.
        path: where to write.
        size: height and width of the input, by default the network's `input_size`, or 384; with
            `dynamic_size`, what `sisod predict` uses by default.
        dynamic_size: allow any height and width.

    Raises:
        InputError: PyTorch cannot export the network for this size.
    """
    require("export", "onnx", "onnxscript")  # PyTorch's exporter needs them
    size = size or network.input_size or DEFAULT_SIZE
    check_memory(_BATCH, size, advice="lower --height or --width")
    free = {0: "batch", 2: "height", 3: "width"} if dynamic_size else {0: "batch"}
    with _readable(network, size), eval_mode(network):
        program = torch.onnx.export(
            Saliency(network).eval(),
            (torch.rand(_BATCH, 3, *size),),
            input_names=[IMAGE],
            output_names=[SALIENCY, LOGIT],
            dynamic_shapes={IMAGE: free},
            dynamo=True,
            verbose=False,
        )
    assert program is not None  # noqa: S101  (for the type checker)
    config = network.config() | {"size": size}
    program.model.metadata_props.update({CONFIG_KEY: json.dumps(config, sort_keys=True)})
    with write_file(Path(path)) as unfinished:
        program.save(unfinished, external_data=False)
