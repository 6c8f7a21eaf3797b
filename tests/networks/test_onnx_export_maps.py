"""A network, its ONNX export and its wrapped module write the same maps, to a grey level."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from helpers.command_line import run
from helpers.image_files import read_stored
from torch import Tensor, nn

from sisod import networks
from sisod.common.exceptions import UsageError
from sisod.networks.export import export_onnx
from sisod.networks.onnx_model import OnnxModel
from sisod.networks.predict import predict_folder
from sisod.networks.specs import Calibration, InputSpec

pytestmark = [pytest.mark.slow, pytest.mark.needs("onnx", "onnxscript", "onnxruntime")]
torch.set_num_threads(1)
SIDE = 64


class Seven(nn.Module):
    """Like U2-Net: maps of probabilities, half as large as the input, the first is the prediction."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 7, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return seven maps."""
        maps: Tensor = (2 * self.conv(x)).sigmoid()
        return tuple(maps[:, index : index + 1] for index in range(7))


CALIBRATIONS = {
    "calibrated": Calibration(temperature=2.0, shift=-0.5),
    "hard": Calibration(temperature=0.1, shift=1.5),  # the logits of most pixels are beyond 14
}


def tiny(calibration: Calibration | None) -> networks.Network:
    """A network with its own preparation, whose maps are not all grey."""
    spec = InputSpec("bgr", 255.0, (100.0, 110.0, 120.0), (40.0, 50.0, 60.0))
    network = networks.create("tiny", input_spec=spec).eval()
    with torch.no_grad():
        network.get_parameter("heads.0.weight").mul_(10)
    network.calibration = calibration
    return network


def u2net() -> networks.Network:
    return networks.wrap(Seven(), size=SIDE, output=0, activation="none", normalize="minmax").eval()


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Three images, two of another size than the input."""
    rng = np.random.default_rng(4)
    (tmp_path / "images").mkdir()
    for index, shape in enumerate(((SIDE, SIDE), (50, 90), (130, 70))):
        picture = cv2.resize(rng.integers(0, 256, (6, 6, 3), np.uint8), shape[::-1])
        assert cv2.imwrite(str(tmp_path / f"images/{index}.png"), picture)
    return tmp_path / "images"


@pytest.mark.parametrize("kind", [*CALIBRATIONS, "wrapped"])
def test_an_export_writes_the_maps_of_its_network(kind: str, images: Path, tmp_path: Path) -> None:
    torch.manual_seed(5)
    calibration = CALIBRATIONS.get(kind)
    network = (u2net() if kind == "wrapped" else tiny(calibration)).train()
    size = None if kind == "wrapped" else (SIDE, SIDE)  # a wrapped network has its own
    export_onnx(network, str(tmp_path / "m.onnx"), size=size)
    assert all(part.training for part in network.modules())
    network.eval()
    with pytest.raises(UsageError, match="was written by 'sisod export' and says itself"):
        OnnxModel(tmp_path / "m.onnx", mean=(0.5, 0.5, 0.5))
    result = run("predict", f"onnx:{tmp_path / 'm.onnx'}", images, tmp_path / "onnx")
    assert result.exit_code == 0, result.stderr
    predict_folder(network, images, tmp_path / "torch", size=SIDE, device="cpu")
    settings = json.loads((tmp_path / "onnx/run.json").read_text())
    assert settings["config"]["network"]["output_spec"]["activation"] == "sigmoid"
    assert settings.get("calibration") == (calibration and calibration.to_json())
    for name in ("0", "1", "2"):
        expected, found = (read_stored(tmp_path / f"{road}/{name}.png") for road in ("torch", "onnx"))
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        white = 65535 if calibration else 255
        assert np.ptp(expected) > white / 4
        assert np.abs(found.astype(float) - expected).max() <= white / 255
