"""A network carries its calibration in its files; predict and export apply it, `forward` does not."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

pytest.importorskip("torch", reason="extra torch is not installed")

import torch
from helpers.command_line import run
from helpers.folder_contents import content
from helpers.image_files import read_stored
from typer.testing import Result

from sisod import networks
from sisod.networks.map_folder import to_grey
from sisod.networks.predict import predict_batch, predict_logits
from sisod.networks.specs import Calibration

torch.set_num_threads(1)
CALIBRATION = Calibration(0.8, -0.6)


@pytest.fixture
def network() -> networks.Network:
    torch.manual_seed(3)
    tiny = networks.create("tiny").eval()
    with torch.no_grad():
        dict(tiny.named_parameters())["heads.0.weight"].mul_(20)
    return tiny


def test_files_hold_the_calibration(network: networks.Network, tmp_path: Path) -> None:
    network.save_pretrained(tmp_path / "raw")
    assert "calibration" not in json.loads((tmp_path / "raw/config.json").read_text())
    network.calibration = CALIBRATION
    network.save_pretrained(tmp_path / "new")
    assert network.config()["calibration"] == {"temperature": 0.8, "shift": -0.6}
    assert json.loads((tmp_path / "new/config.json").read_text()) == json.loads(
        json.dumps(network.config())
    )
    for folder, expected in (("raw", None), ("new", CALIBRATION)):
        for path in (tmp_path / folder, tmp_path / folder / "model.safetensors"):
            assert networks.from_pretrained(path).calibration == expected
    x = torch.zeros(1, 3, 32, 32)
    with torch.no_grad():
        raw, new = (networks.from_pretrained(tmp_path / folder)(x)[0] for folder in ("raw", "new"))
    assert torch.equal(raw, new)  # logits as trained


def test_maps_are_calibrated(network: networks.Network) -> None:
    images = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    shapes = [(20, 30), (32, 32)]
    logits = predict_logits(network, images, shapes)
    raw = predict_batch(network, images, shapes)
    network.calibration = CALIBRATION
    for logit, before, after in zip(logits, raw, predict_batch(network, images, shapes), strict=True):
        expected = 1 / (1 + np.exp(-(logit.double().numpy() / 0.8 - 0.6)))
        assert np.abs(after - expected).max() < 1e-5
        assert np.abs(before - 1 / (1 + np.exp(-logit.double().numpy()))).max() < 1e-5
        # where the raw map has an order, the calibrated one has the same
        grey = to_grey(before, 8)
        order = np.argsort(grey, axis=None, kind="stable")
        levels = to_grey(after, 16).ravel()[order].astype(int)
        rises = np.flatnonzero(np.diff(grey.ravel()[order].astype(int)))
        assert (np.maximum.accumulate(levels)[rises] <= levels[rises + 1]).all()


def test_predict_records_it_and_resumes_only_the_same(network: networks.Network, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    picture = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    cv2.imwrite(str(tmp_path / "images/0.png"), picture)
    network.save_pretrained(tmp_path / "raw")
    network.calibration = CALIBRATION
    network.save_pretrained(tmp_path / "new")

    def predict(name: str, out: str, *options: str) -> Result:
        folders = (tmp_path / name, tmp_path / "images", tmp_path / out)
        return run("predict", *folders, "--size", "32", "--device", "cpu", *options)

    assert predict("new", "maps").exit_code == 0
    record = json.loads((tmp_path / "maps/run.json").read_text())
    assert record["calibration"] == record["config"]["network"]["calibration"] == CALIBRATION.to_json()
    assert read_stored(tmp_path / "maps/0.png").dtype == np.uint16
    before = content(tmp_path / "maps")
    assert "is another run: " in predict("raw", "maps", "--resume").stderr
    assert content(tmp_path / "maps") == before
    assert predict("raw", "maps8").exit_code == 0
    assert json.loads((tmp_path / "maps8/run.json").read_text())["calibration"] is None
    assert read_stored(tmp_path / "maps8/0.png").dtype == np.uint8
    assert predict("raw", "maps16", "--bits", "16").exit_code == 0
    assert read_stored(tmp_path / "maps16/0.png").dtype == np.uint16
