"""Images -> maps at their own size, with any network that can be loaded; nothing is unpickled."""

import hashlib
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
from numpy.typing import NDArray
from torch import Tensor

from sisod import networks
from sisod.common.arguments import check_whole
from sisod.common.errors import InputError, UsageError
from sisod.data.images import resize
from sisod.networks.checkpoints import read_state
from sisod.networks.map_folder import GreyMap, Prediction, write_maps
from sisod.networks.map_shards import Container
from sisod.networks.memory import check_memory, memory_errors
from sisod.networks.network import WEIGHTS_FILE, Network, eval_mode
from sisod.networks.others.factory import Factory
from sisod.networks.others.wrapped import module_errors
from sisod.networks.saved import recognise
from sisod.networks.values import check_size

DEFAULT_SIZE = 384  # of the paper
RECIPE_FILE = "recipe.toml"  # of a run folder


def load_network(
    checkpoint: str | Path,
    *,
    network: str | None = None,
    origin: str = "authors",
    factory: Factory | None = None,
) -> Network:
    """Return the network of a checkpoint, in eval mode.

    Args:
        checkpoint: a run folder of `sisod train`, a folder of `save_pretrained`, a safetensors file, a
            repository on the Hugging Face hub, or an authors' checkpoint.
        network: name of the network of an authors' checkpoint; by default recognised by its key names.
        origin: whose checkpoint it is, `"authors"` or `"si-sod"`; see `networks.load_published`.
        factory: as for `networks.from_pretrained`.
    """
    path = Path(checkpoint)
    if path.is_file() and (path.suffix != ".safetensors" or network is not None):
        state = read_state(path)
        name = network or recognise(state, source=str(path))
        return networks.load_published(name, state, origin=origin).eval()
    if network is not None:
        raise UsageError(
            f"--network is for the file of an authors' checkpoint, got {str(checkpoint)!r}; leave it out"
        )
    weights = path / WEIGHTS_FILE  # its header names the network
    return networks.from_pretrained(weights if weights.is_file() else checkpoint, factory=factory)


def trained_size(checkpoint: str | Path) -> int | None:
    """Return the size that the recipe of a run folder trained at; None for any other checkpoint."""
    path = Path(checkpoint)
    if not path.exists():  # "hf:x" and "owner/x" are no paths: their folder has nothing to do with them
        return None
    try:
        recipe = tomllib.loads(
            ((path if path.is_dir() else path.parent) / RECIPE_FILE).read_text("utf-8")
        )
        return int(recipe["data"]["size"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def default_size(network: Network, checkpoint: str | Path) -> tuple[int, int]:
    """Return height and width of the input: as the run was trained, else as the network says, or 384."""
    trained = check_size(trained_size(checkpoint))
    return trained or network.input_size or (DEFAULT_SIZE, DEFAULT_SIZE)


def predict_folder(
    network: Network,
    images: str | Path,
    out: str | Path,
    *,
    size: int | tuple[int, int] | None = None,
    batch: int = 8,
    device: str = "auto",
    resume: bool = False,
    overwrite: bool = False,
    container: Container | None = None,
) -> Prediction:
    """Write one PNG for each image, at the image's size, under its path below `images`.

    Maps have 8 bits; those of a calibrated network have 16, so that fewer levels merge. The network is
    moved to `device`; afterwards it is in training mode if it was before.

    Args:
        network: its `input_spec` says how an image becomes its input, its `calibration` how a logit
            becomes a probability.
        images: folder of images, URL or container; subfolders are kept.
        out: folder for the maps and `run.json`; must not exist, or be empty.
        size: side of the square, or height and width, that images are resized to for the network; by
            default the network's `input_size`, or 384.
        batch: images per batch.
        device: as PyTorch names it; `"auto"` is the first GPU if there is one, else the CPU.
        resume: keep the maps of an unfinished run of the same network on the same images.
        overwrite: replace an earlier result of `predict`; it stays until all maps are written.
        container: `"parquet"` or `"tar"` packs the maps into shards in `out` instead of single files.
    """
    torch_device = find_device(device)
    height, width = check_size(size) or network.input_size or (DEFAULT_SIZE, DEFAULT_SIZE)
    batch = check_whole("batch", batch, least=1)
    check_memory(network, batch=batch, height=height, width=width, advice="lower --size or --batch")
    with memory_errors(f"a batch of {batch} images of {height} x {width}"), eval_mode(network):
        model = _TorchModel(network.to(torch_device), (height, width))
        return write_maps(
            model,
            images,
            out,
            batch=batch,
            resume=resume,
            overwrite=overwrite,
            container=container,
        )


@dataclass(frozen=True)
class _TorchModel:
    """A network as `write_maps` runs it."""

    network: Network
    size: tuple[int, int]

    @property
    def versions(self) -> dict[str, str]:
        return {"torch": torch.__version__}

    def settings(self) -> dict[str, Any]:
        settings = {"network": self.network.config(), "weights": weights_digest(self.network)}
        calibration = self.network.calibration
        return settings if calibration is None else settings | {"calibration": calibration.to_json()}

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return np.ascontiguousarray(resize(image, self.size)[..., ::-1].transpose(2, 0, 1))

    def predict(
        self, images: NDArray[Any], shapes: Sequence[tuple[int, int]]
    ) -> list[Callable[[], GreyMap]]:
        maps = predict_batch(self.network, torch.from_numpy(images), shapes)
        return [partial(lambda array: array, array) for array in maps]


@torch.inference_mode()
def predict_batch(network: Network, images: Tensor, shapes: Sequence[tuple[int, int]]) -> list[GreyMap]:
    """Return maps of the given heights and widths: 8-bit, or 16-bit of a calibrated network.

    Args:
        network: in eval mode.
        images: (B, 3, H, W) RGB, uint8.
        shapes: one for each image; the logits are resized to it.
    """
    probs = (network.saliency(logits) for logits in predict_logits(network, images, shapes))
    if network.calibration is None:
        return [(p * 255).round().to(torch.uint8).cpu().numpy() for p in probs]
    return [(p.double() * 65535).round().int().cpu().numpy().astype(np.uint16) for p in probs]


@torch.inference_mode()
def predict_logits(network: Network, images: Tensor, shapes: Sequence[tuple[int, int]]) -> list[Tensor]:
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


def find_device(name: str) -> torch.device:
    """Return a device by its name; `"auto"` is the first GPU if there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch_device = torch.device(name)
        torch.empty(1, device=torch_device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"device {name!r} cannot be used ({first}); cpu is always available") from error
    return torch_device


def weights_digest(network: Network) -> str:
    """Return the SHA-256 of all tensors of a network, with their names."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
