"""ONNX files: their maps are those of the values, their size is the graph's, PyTorch is not imported."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from helpers.command_line import error_message, run
from helpers.image_files import read_stored
from helpers.onnx_files import write_node, write_onnx
from numpy.typing import NDArray

from sisod.common.exceptions import InputError
from sisod.networks.onnx_model import OnnxModel, predict_onnx

pytestmark = pytest.mark.needs("onnx", "onnxruntime")
ZERO, ONE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
SIDE = 16


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Five images, three of the input's size."""
    rng = np.random.default_rng(0)
    (tmp_path / "images/deep").mkdir(parents=True)
    for index, name in enumerate(("a", "b", "c", "d", "deep/e")):
        shape = (SIDE, SIDE) if index % 2 == 0 else (20, 30)
        picture = cv2.resize(rng.integers(0, 256, (4, 4, 3), np.uint8), shape[::-1])
        assert cv2.imwrite(str(tmp_path / f"images/{name}.png"), picture)
    return tmp_path / "images"


def rgb(images: Path, name: str = "a") -> NDArray[np.float64]:
    return read_stored(images / f"{name}.png")[..., ::-1].astype(np.float64) / 255


def sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-values)))


def levels(probs: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.rint(255 * probs)


def predicted(model: OnnxModel, images: Path, out: Path, **options: Any) -> NDArray[np.float64]:
    predict_onnx(model, images, out, **options)
    return read_stored(out / "a.png").astype(np.float64)


def test_imagenet_is_the_default(images: Path, tmp_path: Path) -> None:
    """By hand: red minus mean over std, times 4; sigmoid; 255 levels."""
    model = OnnxModel(write_onnx(tmp_path / "m.onnx", {"map": [0]}, gain=4.0), size=SIDE)
    found = predicted(model, images, tmp_path / "out")
    expected = levels(sigmoid(4 * (rgb(images)[..., 0] - 0.485) / 0.229))
    assert np.ptp(expected) > 100
    assert np.abs(found - expected).max() <= 1
    assert read_stored(tmp_path / "out/b.png").shape == (20, 30)
    assert read_stored(tmp_path / "out/deep/e.png").dtype == np.uint8


@pytest.mark.parametrize(("output", "channel"), [(0, 0), (-1, 2), (1, 1), ("blue", 2)])
def test_the_output_is_chosen(output: int | str, channel: int, images: Path, tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "m.onnx", {"red": [0], "green": [1], "blue": [2]})
    model = OnnxModel(path, size=SIDE, mean=ZERO, std=ONE, output=output, activation="sigmoid")
    expected = levels(sigmoid(rgb(images)[..., channel]))
    assert np.abs(predicted(model, images, tmp_path / "out") - expected).max() <= 1


def test_softmax_of_a_channel(images: Path, tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "m.onnx", {"map": [0, 1, 2]}, gain=5.0)
    model = OnnxModel(path, size=SIDE, mean=ZERO, std=ONE, activation="softmax", channel=2)
    powers = np.exp(5 * rgb(images))
    expected = levels(powers[..., 2] / powers.sum(axis=-1))
    assert np.abs(predicted(model, images, tmp_path / "out") - expected).max() <= 1


def test_values_that_look_like_probabilities_are_not_guessed(images: Path, tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "m.onnx", {"map": [0]}, activation="Sigmoid")
    options: dict[str, Any] = {"size": SIDE, "mean": ZERO, "std": ONE}
    with pytest.raises(InputError, match=r"m.onnx are from 0\.\d+ to 0\.\d+: say that they are prob"):
        predict_onnx(OnnxModel(path, **options), images, tmp_path / "out")
    found = predicted(OnnxModel(path, activation="none", **options), images, tmp_path / "out")
    assert np.abs(found - levels(sigmoid(rgb(images)[..., 0]))).max() <= 1
    logits = write_onnx(tmp_path / "logits.onnx", {"map": [0]}, gain=9.0)
    with pytest.raises(InputError, match="the activation none expects probabilities"):
        predict_onnx(OnnxModel(logits, size=SIDE, activation="none"), images, tmp_path / "logits")


def test_size_and_batch_are_those_of_the_graph(images: Path, tmp_path: Path) -> None:
    fixed = OnnxModel(write_onnx(tmp_path / "fixed.onnx", {"map": [0]}, shape=(2, 3, 16, 24)))
    assert (fixed.size, fixed.batch) == ((16, 24), 2)
    done = predict_onnx(fixed, images, tmp_path / "out", batch=8)  # the last batch is filled up
    assert done.n_new == 5
    one = OnnxModel(write_onnx(tmp_path / "one.onnx", {"map": [0]}, shape=(1, 3, 16, 24)))
    predict_onnx(one, images, tmp_path / "ones")
    for path in (tmp_path / "ones").rglob("*.png"):
        np.testing.assert_array_equal(
            read_stored(path), read_stored(tmp_path / "out" / path.relative_to(tmp_path / "ones"))
        )
    settings = json.loads((tmp_path / "out/run.json").read_text())
    assert (settings["config"]["size"], settings["finished"]) == ([16, 24], True)
    assert "onnxruntime" in settings


def test_a_file_of_any_size_says_that_of_its_export(tmp_path: Path) -> None:
    config = {"network": "tiny", "encoder": "resnet50", "input_spec": {}, "size": [24, 40]}
    outputs = {"saliency": [0], "saliency_logit": [0]}
    path = write_onnx(tmp_path / "m.onnx", outputs, metadata={"sisod": json.dumps(config)})
    assert OnnxModel(path).size == (24, 40)
    assert OnnxModel(path, size=SIDE).size == (SIDE, SIDE)
    broken = write_onnx(tmp_path / "b.onnx", outputs, metadata={"sisod": "{"})
    with pytest.raises(InputError, match=r"b\.onnx: the config is not JSON"):
        OnnxModel(broken)


# --------------------------------------------------------------------------------- what is refused


def cut(path: Path) -> object:
    return path.write_bytes(write_onnx(path, {"map": [0]}).read_bytes()[:60])


def two_inputs(path: Path) -> object:
    return write_onnx(path, {"map": [0]}, inputs=("image", "points"))


def channels_last(path: Path) -> object:
    return write_onnx(path, {"map": [0]}, shape=(1, 16, 16, 3))


def class_of_image(path: Path) -> object:
    return write_node(path, "ReduceMean", axes=[1, 2, 3], keepdims=0)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (cut, "cannot be opened by onnxruntime ("),
    "absent": (lambda _: None, "cannot be opened by onnxruntime ("),
    "two inputs": (two_inputs, "tensor(float) and points ['batch'"),
    "channels last": (channels_last, "[1, 16, 16, 3] tensor(float); expected one, RGB images"),
    "a class": (class_of_image, "has shape (5,) and type float32; expected floating maps"),
    "integers": (lambda path: write_node(path, "Cast", to=6), "(5, 3, 16, 16) and type int32"),
    "three channels": (lambda path: write_node(path, "Identity"), "have 3 channels"),
    "not a number": (lambda path: write_node(path, "Log"), "is not finite; its weights are broken"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_sentence(name: str, images: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    write, expected = BROKEN[name]
    write(path)
    options: list[str | int] = ["--size", SIDE]
    options += ["--channel", 0] if name == "not a number" else []
    message = error_message(run("predict", f"onnx:{path}", images, tmp_path / "out", *options))
    assert "m.onnx" in message
    assert expected in message
    assert not (tmp_path / "out").exists()  # a run that fails before its first map leaves nothing


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "m.onnx takes images of any x 32, got --size None"),
        (
            {"size": 32, "output": "maps"},
            "m.onnx has no output 'maps' (ValueError",
        ),
        ({"size": 32, "device": "mps"}, "device 'mps' cannot be used by this onnxruntime"),
        ({"size": 32, "mean": (124.0, 116.0, 104.0)}, "mean is of values in [0, 1], got (124.0, "),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "m.onnx", {"map": [0], "other": [1]}, shape=("n", 3, "h", 32))
    assert OnnxModel(path, size=32).size == (32, 32)
    with pytest.raises(InputError, match=re.escape(message)):
        OnnxModel(path, **options)


# -------------------------------------------------------------------------------- the command line

WITHOUT_TORCH = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "lightning", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
from sisod.cli import app
app()
"""


def test_pytorch_is_not_needed(images: Path, tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "m.onnx", {"map": [0]}, gain=4.0)
    command = ["predict", f"onnx:{path}", str(images), str(tmp_path / "out"), "--size", str(SIDE)]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", WITHOUT_TORCH, *command],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"5 maps of m.onnx in {tmp_path / 'out'}\n"
    assert len(list((tmp_path / "out").rglob("*.png"))) == 5


def test_the_command_passes_every_option_on(images: Path, tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "u2net.onnx", {"d0": [0], "d1": [0, 1]}, activation="Sigmoid")
    result = run(
        "predict", f"onnx:{path}", images, tmp_path / "out", "--size", SIDE, "--mean", "0,0.1,0",
        "--std", "1,0.5,1", "--output", "d1", "--channel", 1, "--activation", "none",
        "--normalize", "minmax", "--batch", 2, "--device", "cpu",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    probs = sigmoid((rgb(images)[..., 1] - 0.1) / 0.5)
    expected = levels((probs - probs.min()) / np.ptp(probs))
    assert np.abs(read_stored(tmp_path / "out/a.png") - expected).max() <= 1
    again = run("predict", f"onnx:{path}", images, tmp_path / "out", "--size", SIDE, "--mean", "1,2")
    assert "mean must have three values" in error_message(again, exit_codes=(2,))
