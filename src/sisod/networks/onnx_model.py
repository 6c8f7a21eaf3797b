"""Maps of an ONNX file, by onnxruntime alone: PyTorch need not be installed."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import short_repr
from sisod.common.exceptions import InputError, UsageError, require, shorten_list
from sisod.common.imports import explain_errors
from sisod.data.images import resize
from sisod.networks.map_folder import MapModel, MapOptions, Prediction, Probabilities, write_maps
from sisod.networks.specs import (
    CONFIG_KEY,
    EPSILON,
    IMAGENET,
    Activation,
    InputSpec,
    NetworkConfig,
    Normalization,
    OutputSpec,
    Size,
    Triple,
    check_size,
)

LOGIT = "saliency_logit"  # output of exported files that is resized, as the logits of a network are
_UNCHANGED = InputSpec(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


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
        size: int | Size | None = None,
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
            path: the file; if `sisod export` wrote it, it says all of the following itself.
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
        import onnxruntime

        self.path = Path(path)
        self.title = self.path.name
        self.versions = {"onnxruntime": onnxruntime.__version__}
        providers = _providers(device, onnxruntime.get_available_providers())
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4  # its errors are raised too, and its warnings are about speed
        with explain_errors(f"{str(path)!r} cannot be opened by onnxruntime", "expected an ONNX file"):
            self._session = onnxruntime.InferenceSession(str(path), settings, providers=providers)
        self._input = self._only_input()
        self._input_spec = InputSpec(mean=mean or IMAGENET.mean, std=std or IMAGENET.std)
        self._output_spec = OutputSpec(activation or "sigmoid", normalize, channel)
        self._is_guess = activation is None  # that the values are logits
        self._calibration = exported_size = None
        text = self._session.get_modelmeta().custom_metadata_map.get(CONFIG_KEY)
        if text is not None:  # the graph of `sisod export` prepares images and calibrates
            if mean or std or output != 0 or activation or normalize != "none" or channel is not None:
                raise UsageError(
                    f"{str(path)!r} was written by 'sisod export' and says itself how images and maps "
                    "are prepared; give no option but --size"
                )
            config = NetworkConfig.parse(text, source=str(path))
            self._input_spec, output, self._is_guess = _UNCHANGED, LOGIT, False
            self._output_spec = OutputSpec(normalize=config.output_spec.normalize)
            self._calibration, exported_size = config.calibration, config.size
        self.batch, *sides = (_fixed(side) for side in (self._input.shape[0], *self._input.shape[2:]))
        self.size = self._input_size(sides, check_size(size), exported_size)
        names = self._output_names = [item.name for item in self._session.get_outputs()]
        advice = f"its outputs are {shorten_list(names, most=8)}"
        with explain_errors(f"{self.title} has no output {short_repr(output)}", advice):
            self._output = names[names.index(output) if isinstance(output, str) else output]

    def settings(self) -> dict[str, Any]:
        """Return what decides the maps, with the hash of the file and of its data beside it."""
        digest = hashlib.sha256()
        for end in ("", ".data", "_data"):
            part = self.path.with_name(self.path.name + end)
            if part.is_file():
                with part.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
        config = {
            "network": "onnx",
            "source": f"onnx:{self.title}",
            "input_spec": asdict(self._input_spec),
            "output": self._output,
            "output_spec": asdict(self._output_spec),
        }
        calibration = {} if self._calibration is None else {"calibration": asdict(self._calibration)}
        return {"network": config, "weights": digest.hexdigest(), **calibration}

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[Any]:
        """Return an image (BGR) as the file's input, without the batch."""
        rgb = resize(image, self.size)[..., ::-1].astype(np.float32) / np.float32(255)
        mean, std = np.array((self._input_spec.mean, self._input_spec.std), dtype=np.float32)
        values = (rgb - mean) / std
        return np.ascontiguousarray(values.transpose(2, 0, 1), dtype=_TYPES[self._input.type])

    def predict(self, images: NDArray[Any], shapes: Sequence[Size]) -> list[Callable[[], Probabilities]]:
        """Run the file on a batch; each function returned resizes one map."""
        maps = self.run(images)
        least, most = float(maps.min()), float(maps.max())
        if self._is_guess and least >= 0 and most <= 1:
            raise InputError(
                f"the values of {self.title} are from {least:.3g} to {most:.3g}: say that they are "
                "probabilities with the activation none (--activation none), or logits with sigmoid"
            )
        self._is_guess = False
        return [partial(self._finish, values, shape) for values, shape in zip(maps, shapes, strict=True)]

    def run(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Return the values of the prediction (B, C, h, w) of prepared images."""
        n_images = len(images)
        if self.batch is not None and n_images < self.batch:  # the last batch
            images = np.concatenate([images, np.repeat(images[-1:], self.batch - n_images, axis=0)])
        with explain_errors(f"{self.title} failed on a batch of shape {images.shape}"):
            (found,) = self._session.run([self._output], {self._input.name: images})
        values = found[:, None] if np.ndim(found) == 3 else np.asarray(found)
        is_map = values.ndim == 4 and values.size > 0 and np.issubdtype(values.dtype, np.floating)
        if not is_map or len(values) != len(images):
            raise InputError(
                f"the output {self._output!r} of {self.title} has shape {values.shape} and type "
                f"{values.dtype}; expected floating maps of shape ({len(images)}, 1, height, width); "
                f"choose another with output, of {shorten_list(self._output_names, most=8)}"
            )
        return values[:n_images].astype(np.float32, copy=False)

    def _finish(self, values: NDArray[np.float32], shape: Size) -> Probabilities:
        """Return the map of one image: the logits are resized, as for our own networks."""
        logits = np.ascontiguousarray(self._logits(values))
        logits = np.asarray(cv2.resize(logits, shape[::-1], interpolation=cv2.INTER_LINEAR))
        if np.isnan(logits).any():
            raise InputError(
                f"the map of {self.title} is not finite; its weights are broken, or they do not fit an "
                f"input of {self.size[0]} x {self.size[1]}"
            )
        small = np.exp(-np.abs(logits))  # of a negative number, which does not overflow
        probs = np.asarray(np.where(logits >= 0, 1, small) / (1 + small), dtype=np.float32)
        least, most = probs.min(), probs.max()
        if self._output_spec.normalize == "minmax" and most - least >= EPSILON:
            probs = (probs - least) / (most - least)
        return probs

    def _logits(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        spec = self._output_spec
        channel = spec.find_channel(len(values), self.title)
        chosen: NDArray[np.float32] = values[channel]
        if spec.activation == "sigmoid":
            return chosen
        if spec.activation == "softmax":
            others = np.delete(values, channel, axis=0)
            largest = others.max(axis=0)
            return np.asarray(chosen - np.log(np.exp(others - largest).sum(axis=0)) - largest)
        spec.check_values(float(chosen.min()), float(chosen.max()), self.title)
        clipped = chosen.clip(EPSILON, 1 - EPSILON)
        return np.asarray(np.log(clipped / (1 - clipped)))

    def _only_input(self) -> Any:
        """Return the one input, (batch, 3, height, width)."""
        first, *others = inputs = self._session.get_inputs()
        is_batch = len(first.shape) == 4 and _fixed(first.shape[1]) in (3, None)
        if others or not is_batch or first.type not in _TYPES:
            shapes = [f"{item.name} {item.shape} {item.type}" for item in inputs]
            raise InputError(
                f"{str(self.path)!r} has the input {' and '.join(shapes)}; expected one, RGB images "
                "(batch, 3, height, width) of type tensor(float) or tensor(float16)"
            )
        return first

    def _input_size(self, fixed: Sequence[int | None], size: Size | None, exported: Size | None) -> Size:
        free = size or exported or fixed
        height, width = fixed[0] or free[0], fixed[1] or free[1]
        if height is None or width is None or size not in (None, (height, width)):
            sides = " x ".join(str(side or "any") for side in fixed)
            raise UsageError(f"{self.title} takes images of {sides}, got --size {size}; correct it")
        return height, width


def predict_onnx(
    model: OnnxModel,
    images: str | Path,
    out: str | Path,
    *,
    batch: int = 8,
    **options: Unpack[MapOptions],
) -> Prediction:
    """Write one PNG for each image, at the image's size; as `predict_folder` does for networks.

    Args:
        model: the opened file.
        images: folder of images, URL or container.
        out: folder for the maps and `run.json`.
        batch: images per batch, unless the file fixes it.
        options: `resume`, `overwrite`, `container` and `bits`, as for `predict_folder`.
    """
    runs = MapModel(model.size, model.versions, model.settings(), model.prepare, model.predict)
    return write_maps(runs, images, out, batch=model.batch or batch, **options)


def _providers(device: str, available: Sequence[str]) -> list[Any]:
    name, _, number = device.partition(":")
    has_cuda = "CUDAExecutionProvider" in available
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


def _fixed(side: object) -> int | None:
    """Return a side of a shape that the file fixes; None for one that it leaves open."""
    return side if isinstance(side, int) and side > 0 else None
