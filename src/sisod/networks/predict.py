"""Images -> maps at their own size, with any network."""

import hashlib
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
from numpy.typing import NDArray
from torch import Tensor

from sisod.common.exceptions import InputError, UsageError
from sisod.common.imports import explain_errors
from sisod.common.processes import available_memory
from sisod.data.images import resize
from sisod.networks.map_folder import MapModel, MapOptions, Prediction, Probabilities, write_maps
from sisod.networks.network import Network, eval_mode, module_errors
from sisod.networks.specs import Size, check_size

DEFAULT_SIZE = (384, 384)  # of the paper
_LEAST_MEMORY = 64  # bytes for every pixel of a batch: less than the smallest network needs


def predict_folder(
    network: Network,
    images: str | Path,
    out: str | Path,
    *,
    size: int | Size | None = None,
    batch: int = 8,
    device: str = "auto",
    **options: Unpack[MapOptions],
) -> Prediction:
    """Write one PNG for each image, at the image's size, under its path below `images`.

    The network is moved to `device`; afterwards it is in training mode if it was before.

    Args:
        network: its `input_spec` says how an image becomes its input, its `calibration` how a logit
            becomes a probability.
        images: folder of images, URL or container; subfolders are kept.
        out: folder for the maps and `run.json`; must not exist, or be empty.
        size: side of the square, or height and width, that images are resized to for the network; by
            default the network's `input_size`, that of its training, or 384.
        batch: images per batch.
        device: as PyTorch names it; `"auto"` is the first GPU if there is one, else the CPU.
        options: `resume=True` keeps the maps of an unfinished run of the same network on the same
            images. `overwrite=True` replaces an earlier result of `predict`, which stays until all maps
            are written. `container`, `"parquet"` or `"tar"`, packs the maps into shards in `out`.
            `bits` is 8, or 16 to compare networks by values over all thresholds, such as
            `object_f1_max`: maps of 8 bits end at logit 5.5. By default 8, and 16 of a calibrated
            network.

    Returns:
        The folder, and how many maps are new or were kept.

    Example:
        >>> import tempfile
        >>> from sisod import networks
        >>> from sisod.data.scenes import write_scenes
        >>> with tempfile.TemporaryDirectory() as root:
        ...     images = write_scenes(f"{root}/data", 2, shape=(40, 48)) / "image"
        ...     done = predict_folder(networks.create("tiny"), images, f"{root}/maps", size=32)
        >>> done.n_new, done.n_kept
        (2, 0)
    """
    torch_device = find_device(device)
    size = check_size(size) or network.input_size or DEFAULT_SIZE
    check_memory(batch, size, advice="lower --size or --batch")
    with eval_mode(network):
        model = _map_model(network.to(torch_device), size)
        return write_maps(model, images, out, batch=batch, **options)


def _map_model(network: Network, size: Size) -> MapModel:
    def prepare(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return np.ascontiguousarray(resize(image, size)[..., ::-1].transpose(2, 0, 1))

    def predict(images: NDArray[Any], shapes: Sequence[Size]) -> list[Callable[[], Probabilities]]:
        maps = predict_batch(network, torch.from_numpy(images), shapes)
        return [lambda array=array: array for array in maps]  # type: ignore[misc]

    settings = {"network": network.config(), "weights": weights_digest(network)}
    if network.calibration is not None:
        settings["calibration"] = network.calibration.to_json()
    return MapModel(size, {"torch": str(torch.__version__)}, settings, prepare, predict)


@torch.inference_mode()
def predict_batch(network: Network, images: Tensor, shapes: Sequence[Size]) -> list[Probabilities]:
    """Return maps of the given heights and widths, calibrated if the network is.

    Args:
        network: in eval mode.
        images: (B, 3, H, W) RGB, uint8.
        shapes: one for each image; the logits are resized to it.

    Returns:
        Probabilities (height, width) for each image.

    Example:
        >>> from sisod import networks
        >>> images = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
        >>> predict_batch(networks.create("tiny").eval(), images, [(20, 24)])[0].shape
        (20, 24)
    """
    logits = predict_logits(network, images, shapes)
    return [network.saliency(values).float().cpu().numpy() for values in logits]


@torch.inference_mode()
def predict_logits(network: Network, images: Tensor, shapes: Sequence[Size]) -> list[Tensor]:
    """Return the logits of the prediction, not calibrated, at the given heights and widths.

    The arguments are those of `predict_batch`.
    """
    tensor = next(chain(network.parameters(), network.buffers()), images)
    with module_errors(network, images.shape):
        logits = network(network.input_spec.apply(images.to(tensor.device)))[0]
    resized = []
    for logit, shape in zip(logits, shapes, strict=True):
        values = F.interpolate(logit[None], size=shape, mode="bilinear", align_corners=False)[0, 0]
        if bool(torch.isnan(values).any()):
            raise InputError(
                f"the map of {network.facts.name} is not finite; its weights are broken, or they do not "
                f"fit an input of shape {tuple(images.shape)}"
            )
        resized.append(values)
    return resized


def check_memory(batch: int, size: Size, *, advice: str) -> None:
    """Raise if a batch of images surely needs more than the available memory, before it runs out."""
    needed, free = batch * size[0] * size[1] * _LEAST_MEMORY / 1e9, available_memory()
    if free is not None and needed > free / 1e9:
        raise UsageError(
            f"{batch} images of {size[0]} x {size[1]} need at least {needed:.3g} GB of memory, and "
            f"{free / 1e9:.3g} GB are free; {advice}"
        )


def find_device(name: str) -> torch.device:
    """Return a device by its name; `"auto"` is the first GPU if there is one, else the CPU.

    Raises:
        InputError: this PyTorch or this machine does not have it.

    Example:
        >>> find_device("cpu")
        device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with explain_errors(f"device {name!r} cannot be used", "cpu is always available"):
        return torch.empty(1, device=name).device


def weights_digest(network: torch.nn.Module) -> str:
    """Return the SHA-256 of all tensors of a module, with their names.

    Example:
        >>> weights_digest(torch.nn.ReLU())[:8]  # of nothing
        'e3b0c442'
    """
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
