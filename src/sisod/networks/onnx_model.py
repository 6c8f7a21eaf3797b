"""Maps of an ONNX file, by onnxruntime alone: PyTorch need not be installed."""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import check_whole, shown
from sisod.common.errors import InputError, UsageError, require, shorten_list
from sisod.common.imports import describe_error
from sisod.data.images import resize
from sisod.networks.map_folder import GreyMap, Prediction, write_maps
from sisod.networks.map_shards import Container
from sisod.networks.others.kinds import KINDS, ModelOptions, split_kind
from sisod.networks.values import (
    EPSILON,
    IMAGENET_MEAN,
    IMAGENET_STD,
    Activation,
    Normalization,
    Triple,
    check_probabilities,
    check_reading,
    check_size,
    check_triple,
    check_unit_mean,
    object_channel,
)

# in files that `sisod export` wrote: the network's config, and height and width, as JSON
METADATA_KEY = "sisod"
SIZE_KEY = "sisod_size"
LOGIT = "saliency_logit"  # output of such files that is resized, as the logits of a network are
_OLDER_SIZE = (384, 384)  # of files for any size that do not say it
_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
_CHUNK = 1 << 20

Shape = tuple[int, int]


class OnnxModel:
    """An ONNX file that maps a batch of RGB images (B, 3, H, W) to maps (B, 1, h, w) or (B, h, w).

    Attributes:
        title: name of the file.
        size: height and width of the input.
        batch: number of images that the file takes at once; None for any number.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        size: int | Shape | None = None,
        mean: Triple | None = None,
        std: Triple | None = None,
        output: int | str = 0,
        activation: Activation | None = None,
        normalize: Normalization = "none",
        channel: int | None = None,
        device: str = "auto",
    ) -> None:
        """Open the file; nothing in it is run as Python code.

        Args:
            path: the file; if `sisod export` wrote it, it says mean, std, activation and size itself.
            size: side, or height and width, of a file that takes any size.
            mean: of each channel, of values in [0, 1]; by default ImageNet's.
            std: the same for the standard deviation.
            output: position or name of the output that is the prediction.
            activation: as for `networks.wrap`; by default `"sigmoid"`, unless the values look like
                probabilities: then it has to be given.
            normalize: as for `networks.wrap`.
            channel: as for `networks.wrap`.
            device: `"cpu"`, `"cuda"`, `"cuda:1"`; `"auto"` is a GPU if this onnxruntime has one.
        """
        require("an ONNX file", "onnxruntime")
        self.path = Path(path)
        self.title = self.path.name
        self._session = _open_session(self.path, device)
        reading = "sigmoid" if activation is None else activation
        self._channel = check_reading(reading, normalize, channel)
        config = _own_config(self._session)
        is_own = config is not None
        self._calibration = (config or {}).get("calibration")
        names = [item.name for item in self._session.get_outputs()]
        is_default = output == 0 and not isinstance(output, bool) and activation is None
        has_logit = is_own and LOGIT in names and is_default
        self._activation: Activation | None = activation or ("none" if is_own else None)
        self._normalize = normalize
        if has_logit:
            output, self._activation = LOGIT, "sigmoid"
            self._normalize = (config or {}).get("normalize", normalize)
        if is_own and (mean or std):
            raise UsageError(
                f"{str(path)!r} was written by 'sisod export' and prepares its images itself; leave out "
                "mean and std"
            )
        self._mean = check_triple("mean", mean or ((0.0,) * 3 if is_own else IMAGENET_MEAN))
        check_unit_mean(self._mean)
        self._std = check_triple("std", std or ((1.0,) * 3 if is_own else IMAGENET_STD))
        self._input = _only_input(self._session, self.path)
        self.batch = _fixed(self._input.shape[0])
        self.size = self._input_size(check_size(size), is_own=is_own)
        self._output = self._output_name(output)

    @property
    def versions(self) -> dict[str, str]:
        """The version of onnxruntime."""
        import onnxruntime

        return {"onnxruntime": onnxruntime.__version__}

    def settings(self) -> dict[str, Any]:
        """Return what decides the maps, with the hash of the file and of its data beside it."""
        config = {
            "network": "onnx",
            "source": f"onnx:{self.path.name}",
            "mean": self._mean,
            "std": self._std,
            "output": self._output,
            "activation": self._activation or "sigmoid",
            "normalize": self._normalize,
            "channel": self._channel,
        }
        settings = {"network": config, "weights": _digest(self.path)}
        return settings if self._calibration is None else settings | {"calibration": self._calibration}

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[Any]:
        """Return an image (BGR) as the file's input, without the batch."""
        rgb = resize(image, self.size)[..., ::-1].astype(np.float32) / np.float32(255)
        values = (rgb - np.asarray(self._mean, np.float32)) / np.asarray(self._std, np.float32)
        return np.ascontiguousarray(values.transpose(2, 0, 1), dtype=_TYPES[self._input.type])

    def predict(self, images: NDArray[Any], shapes: Sequence[Shape]) -> list[Callable[[], GreyMap]]:
        """Run the file on a batch; each function returned resizes one map and makes it grey levels."""
        maps = self.run(images)
        if self._activation is None:
            least, most = float(maps.min()), float(maps.max())
            if least >= 0 and most <= 1:
                raise InputError(
                    f"the values of {self.title} are from {least:.3g} to {most:.3g}: say that they are "
                    "probabilities with the activation none (--activation none), or logits with sigmoid"
                )
            self._activation = "sigmoid"
        return [partial(self._finish, values, shape) for values, shape in zip(maps, shapes, strict=True)]

    def run(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Return the values of the prediction (B, C, h, w) of prepared images."""
        n_images = len(images)
        if self.batch is not None and n_images < self.batch:  # the last batch
            images = np.concatenate([images, np.repeat(images[-1:], self.batch - n_images, axis=0)])
        try:
            (values,) = self._session.run([self._output], {self._input.name: images})
        except Exception as error:  # onnxruntime has a class for each status, without a common base
            raise InputError(
                f"{self.title} failed on a batch of shape {images.shape}: {describe_error(error)}"
            ) from error
        if isinstance(values, np.ndarray) and values.ndim == 3:
            values = values[:, None]
        if (
            not isinstance(values, np.ndarray)
            or values.ndim != 4
            or len(values) != len(images)
            or not np.issubdtype(values.dtype, np.floating)
            or 0 in values.shape
        ):
            shape = values.shape if isinstance(values, np.ndarray) else ()
            kind = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
            names = shorten_list([item.name for item in self._session.get_outputs()], most=8)
            raise InputError(
                f"the output {self._output!r} of {self.title} has shape {shape} and type {kind}; "
                f"expected floating maps of shape ({len(images)}, 1, height, width); choose another "
                f"with output, of {names}"
            )
        return values[:n_images].astype(np.float32, copy=False)

    def _finish(self, values: NDArray[np.float32], shape: Shape) -> GreyMap:
        """Return the map of one image: the logits are resized, as for our own networks."""
        logits = np.ascontiguousarray(self._logits(values))
        if logits.shape != shape:
            height, width = shape
            logits = np.asarray(cv2.resize(logits, (width, height), interpolation=cv2.INTER_LINEAR))
        if np.isnan(logits).any():
            raise InputError(
                f"the map of {self.title} is not finite; its weights are broken, or they do not fit an "
                f"input of {self.size[0]} x {self.size[1]}"
            )
        probs = _sigmoid(logits)
        if self._normalize == "minmax":
            least, most = probs.min(), probs.max()
            if most - least >= EPSILON:
                probs = (probs - least) / (most - least)
        if self._calibration is not None:
            return np.rint(probs.astype(np.float64) * 65535).astype(np.uint16)
        return np.rint(probs * 255).astype(np.uint8)

    def _logits(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        activation = self._activation or "sigmoid"
        channel = object_channel(len(values), self._channel, activation, self.title)
        chosen: NDArray[np.float32] = values[channel]
        if activation == "sigmoid":
            return chosen
        if activation == "softmax":
            others = np.delete(values, channel, axis=0)
            largest = others.max(axis=0)
            return np.asarray(chosen - np.log(np.exp(others - largest).sum(axis=0)) - largest)
        check_probabilities(float(chosen.min()), float(chosen.max()), self.title)
        clipped = chosen.clip(EPSILON, 1 - EPSILON)
        return np.asarray(np.log(clipped / (1 - clipped)))

    def _input_size(self, size: Shape | None, *, is_own: bool) -> Shape:
        fixed = tuple(_fixed(side) for side in self._input.shape[2:])
        if None in fixed and size is None and not is_own:
            raise UsageError(f"{self.title} takes images of any size; say which with --size")
        height, width = (
            side or given
            for side, given in zip(fixed, size or _exported_size(self._session), strict=True)
        )
        if size is not None and size != (height, width):
            raise UsageError(
                f"{self.title} takes images of {height} x {width} only, got the size "
                f"{size[0]} x {size[1]}; leave --size out"
            )
        return height, width

    def _output_name(self, output: int | str) -> str:
        names = [item.name for item in self._session.get_outputs()]
        if isinstance(output, str) and output in names:
            return output
        if (
            isinstance(output, int)
            and not isinstance(output, bool)
            and -len(names) <= output < len(names)
        ):
            return str(names[output])
        raise UsageError(
            f"output is {shown(output)}, but the outputs of {self.title} are "
            f"{shorten_list(names, most=8)}; give a name, or a position from 0 to {len(names) - 1}"
        )


def open_onnx(model: str, options: ModelOptions, *, device: str = "auto") -> OnnxModel:
    """Return the model that the command line names, `onnx:FILE`."""
    KINDS["onnx"].check_installed()
    if options.trust_remote_code:
        raise UsageError("--trust-remote-code is for models hf: only; leave it out")
    given: dict[str, Any] = options.given()
    return OnnxModel(split_kind(model)[1], device=device, **given)


def predict_onnx(
    model: OnnxModel,
    images: str | Path,
    out: str | Path,
    *,
    batch: int = 8,
    resume: bool = False,
    overwrite: bool = False,
    container: Container | None = None,
) -> Prediction:
    """Write one PNG for each image, at the image's size; as `predict_folder` does for networks."""
    batch = model.batch or check_whole("batch", batch, least=1)
    return write_maps(
        model, images, out, batch=batch, resume=resume, overwrite=overwrite, container=container
    )


def _open_session(path: Path, device: str) -> Any:
    import onnxruntime

    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{str(path)!r} {problem}; expected an ONNX file")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # its errors are raised too, and its warnings are about speed
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=_providers(device))
    except UsageError:
        raise
    except Exception as error:  # onnxruntime has a class for each status, without a common base
        raise InputError(
            f"{str(path)!r} cannot be opened by onnxruntime ({describe_error(error)}); expected an ONNX "
            "file"
        ) from error


def _providers(device: str) -> list[Any]:
    import onnxruntime

    name, _, number = device.partition(":")
    has_cuda = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    if name == "auto":
        name = "cuda" if has_cuda else "cpu"
    if name == "cpu" and not number:
        return ["CPUExecutionProvider"]
    if name == "cuda" and has_cuda and (not number or number.isdecimal()):
        return [("CUDAExecutionProvider", {"device_id": int(number or 0)}), "CPUExecutionProvider"]
    raise UsageError(
        f"device {device!r} cannot be used by this onnxruntime; cpu is always available, and cuda with "
        "the package onnxruntime-gpu"
    )


def _own_config(session: Any) -> dict[str, Any] | None:
    """Return the config of the network that `sisod export` wrote; None for files of other origin."""
    try:
        config = json.loads(session.get_modelmeta().custom_metadata_map[METADATA_KEY])
    except (KeyError, ValueError, RecursionError):
        return None
    return config if isinstance(config, dict) else None


def _exported_size(session: Any) -> Shape:
    """Return height and width for which `sisod export` wrote a file of any size."""
    try:
        height, width = map(_fixed, json.loads(session.get_modelmeta().custom_metadata_map[SIZE_KEY]))
    except (KeyError, ValueError, TypeError, RecursionError):
        return _OLDER_SIZE
    return (height, width) if height and width else _OLDER_SIZE


def _only_input(session: Any, path: Path) -> Any:
    """Return the one input, (batch, 3, height, width)."""
    inputs = session.get_inputs()
    if len(inputs) != 1:
        listed = shorten_list([item.name for item in inputs], most=8) or "none"
        raise InputError(
            f"{str(path)!r} has {len(inputs)} inputs ({listed}); expected one, a batch of RGB images"
        )
    (only,) = inputs
    if len(only.shape) != 4 or _fixed(only.shape[1]) not in (3, None) or only.type not in _TYPES:
        shape = ", ".join(str(side or "?") for side in only.shape)
        raise InputError(
            f"the input {only.name!r} of {str(path)!r} has shape ({shape}) and type {only.type}; "
            "expected RGB images (batch, 3, height, width) of type tensor(float) or tensor(float16)"
        )
    return only


def _fixed(side: object) -> int | None:
    """Return a side of a shape that the file fixes; None for one that it leaves open."""
    return side if isinstance(side, int) and side > 0 else None


def _sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    # exp of a negative number does not overflow
    small = np.exp(-np.abs(logits))
    return np.asarray(np.where(logits >= 0, 1, small) / (1 + small), dtype=np.float32)


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file and of the weights beside it, NAME.data or NAME_data."""
    digest = hashlib.sha256()
    for part in (path, *(path.with_name(path.name + end) for end in (".data", "_data"))):
        if part.is_file():
            with part.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
    return digest.hexdigest()
