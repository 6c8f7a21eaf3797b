"""Predicted maps are the network's, with the images' sizes and names; a stopped run is resumed."""

import json
import zipfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from helpers import published_networks
from helpers.command_line import refusal, run
from helpers.folder_contents import content
from helpers.image_files import encoded, read_stored
from numpy.typing import NDArray
from torch import nn

from sisod import networks
from sisod.common.exceptions import InputError, InputWarning
from sisod.data.pairs import files_by_name
from sisod.data.truths import read_prediction
from sisod.networks.map_folder import Prediction
from sisod.networks.predict import predict_folder
from sisod.networks.saved import load_network
from sisod.networks.specs import InputSpec

torch.set_num_threads(1)  # on a shared machine two would wait for each other
SIDE = 64
BGR = InputSpec("bgr", 255.0, (100.0, 110.0, 120.0), (1.0, 50.0, 60.0))


@pytest.fixture(scope="module")
def network() -> networks.Network:
    """One whose maps are not all grey, and which sees the channels' order."""
    torch.manual_seed(3)
    tiny = networks.create("tiny", input_spec=BGR).eval()
    with torch.no_grad():
        dict(tiny.named_parameters())["heads.0.weight"].mul_(20)
    return tiny


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Nine images of five kinds, three sizes and two depths of folder."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "images"
    (folder / "more/deep").mkdir(parents=True)
    for index, kind in enumerate(("png", "jpg", "bmp", "tif", "webp", "JPEG", "png", "png")):
        shape = ((SIDE, SIDE), (40, 90), (130, 70))[index % 3]
        picture = cv2.resize(rng.integers(0, 256, (8, 8, 3), np.uint8), shape[::-1])
        inside = folder / "more/deep" if index % 2 else folder
        assert cv2.imwrite(str(inside / f"im{index}.v1.{kind}"), picture)
    assert cv2.imwrite(str(folder / "grey.png"), rng.integers(0, 256, (33, 44), np.uint8))
    (folder / "notes.txt").write_text("no image")
    return folder


def maps(folder: Path) -> dict[str, NDArray[Any]]:
    paths = sorted(folder.rglob("*.png"))
    return {path.relative_to(folder).as_posix(): read_stored(path) for path in paths}


def predict(network: networks.Network, images: Path, out: Path, **options: Any) -> Prediction:
    settings: dict[str, Any] = {"size": SIDE, "device": "cpu", **options}
    return predict_folder(network, images, out, **settings)


def test_names_and_sizes(network: networks.Network, images: Path, tmp_path: Path) -> None:
    done = predict(network, images, tmp_path / "out", batch=4)
    assert (done.n_new, done.n_kept) == (9, 0)
    found = maps(tmp_path / "out")
    assert list(found) == [
        "grey.png",
        *(f"im{index}.v1.png" for index in (0, 2, 4, 6)),
        *(f"more/deep/im{index}.v1.png" for index in (1, 3, 5, 7)),
    ]
    for name, array in found.items():
        (original,) = images.glob(f"{name.removesuffix('.png')}.*")
        assert (array.shape, array.dtype) == (read_stored(original).shape[:2], np.dtype(np.uint8))
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert (run["finished"], run["n_maps"], run["config"]["size"]) == (True, 9, SIDE)
    assert run["config"]["network"]["network"] == "tiny"


def test_map_is_the_networks_own(network: networks.Network, images: Path, tmp_path: Path) -> None:
    """By hand: BGR on [0, 255], mean, deviation; sigmoid; 255 levels."""
    predict(network, images, tmp_path / "out")
    image = read_stored(images / "im0.v1.png")  # of the network's size: nothing is resized
    mean, std = np.array(BGR.mean), np.array(BGR.std)
    x = torch.from_numpy(((image - mean) / std).transpose(2, 0, 1)[None]).float()
    with torch.no_grad():
        logits = network(x)[0][0, 0].double().numpy()
    expected = np.rint(255 / (1 + np.exp(-logits)))
    written = maps(tmp_path / "out")["im0.v1.png"]
    assert np.ptp(written) > 100  # or there would be nothing to compare
    assert np.abs(written.astype(float) - expected).max() <= 1


def test_maps_of_16_bits(network: networks.Network, images: Path, tmp_path: Path) -> None:
    """The same probabilities with more levels, as `evaluate` reads them."""
    predict(network, images, tmp_path / "eight")
    predict(network, images, tmp_path / "deep", bits=16, container="tar")
    files = files_by_name(tmp_path / "deep")
    for name, levels in maps(tmp_path / "eight").items():
        found = read_prediction(tmp_path / "deep", files[name.removesuffix(".png")].path)
        assert (found.dtype, found.shape) == (np.dtype(np.uint16), levels.shape)
        np.testing.assert_array_equal(np.rint(found / 257), levels)
        assert len(np.unique(found)) > 256 or found.size < 2000


def test_map_is_at_the_place_of_its_object(tmp_path: Path) -> None:
    """Down for the network, up for the map: a square stays where it is, to a pixel of the small grid."""

    class Bright(networks.find("tiny")):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return (20 * (x.mean(1, keepdim=True) - 0.5),)

    image = np.zeros((120, 200, 3), np.uint8)
    image[30:60, 100:150] = 255
    (tmp_path / "images").mkdir()
    assert cv2.imwrite(str(tmp_path / "images/a.png"), image)
    spec = InputSpec("rgb", 1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    predict(Bright(input_spec=spec), tmp_path / "images", tmp_path / "out")
    rows, columns = np.nonzero(maps(tmp_path / "out")["a.png"] >= 128)
    found = np.array([rows.min(), rows.max(), columns.min(), columns.max()])
    assert np.abs(found - [30, 59, 100, 149]).max() <= 200 / SIDE


def test_neither_mode_nor_batch_matter(network: networks.Network, images: Path, tmp_path: Path) -> None:
    frozen = network.train().get_submodule("heads")
    frozen.eval()  # as somebody freezes a part
    predict(network, images, tmp_path / "out1", batch=1)
    with pytest.raises(InputError):
        predict(network, tmp_path / "out1" / "run.json", tmp_path / "none")
    assert network.training
    assert not any(part.training for part in frozen.modules())
    network.eval()
    one = maps(tmp_path / "out1")
    for batch in (4, 100):
        predict(network, images, tmp_path / f"out{batch}", batch=batch)
        for name, array in maps(tmp_path / f"out{batch}").items():
            assert np.abs(array.astype(int) - one[name]).max() <= 1


def test_cut_off_run_goes_on(network: networks.Network, images: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    predict(network, images, whole, batch=2)
    bad = images / "more/deep/im7.v1.png"
    good = bad.read_bytes()
    bad.write_bytes(good[:50])
    with pytest.raises(InputError, match=r"more/deep/im7.v1.png' is not an image that can be read"):
        predict(network, images, out, batch=2)
    assert json.loads((out / "run.json").read_text())["finished"] is False
    made = len(maps(out))
    assert 0 < made < 9
    left, mine = out / ".sisod-0123456789abcdef.tmp", out / ".im9.png.x1"
    left.write_bytes(b"half")  # by a kill
    mine.write_bytes(b"notes")
    bad.write_bytes(good)
    with pytest.raises(InputError, match="is unfinished; use --resume to go on with it, or --overwrite"):
        predict(network, images, out, batch=2)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.png")}
    assert predict(network, images, out, batch=2, resume=True) == Prediction(out, 9 - made, made)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (left.exists(), mine.exists()) == (False, True)
    assert content(out).keys() - {".im9.png.x1"} == content(whole).keys()
    for name, data in content(whole).items():
        assert name == "run.json" or content(out)[name] == data
    assert predict(network, images, out, resume=True) == Prediction(out, 0, 9)


def test_other_runs_are_not_mixed(network: networks.Network, images: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    predict(network, images, out, resume=True)  # nothing there: from the start
    kept, other = content(out), networks.create("tiny", input_spec=BGR)
    for wrong, options, name in (
        (other, {"resume": True}, "weights"),
        (network, {"resume": True, "size": 96}, "size was 64 and is now 96"),
        (network, {"resume": True, "bits": 16}, "bits"),
        (network, {"resume": True, "container": "tar"}, "container"),
        (network, {}, "exists already; use --overwrite to replace it"),
    ):
        with pytest.raises(InputError, match=name):
            predict(wrong, images, out, **options)
    assert content(out) == kept
    (images / "grey.png").unlink()
    predict(other, images, out, overwrite=True)
    assert len(maps(out)) == 8


@pytest.mark.parametrize(
    ("place", "options", "message"),
    [
        ("empty", {}, "empty' has no image files; expected jpg, png or the like"),
        ("images", {"out": "images/maps"}, r"would go into the folder of images"),
        ("images", {"device": "gpu"}, r"device 'gpu' cannot be used \(.*\); cpu is always available"),
        ("images", {"batch": 0}, "batch must be at least 1, got 0"),
    ],
)
@pytest.mark.usefixtures("images")
def test_what_is_refused(
    place: str, options: dict[str, Any], message: str, network: networks.Network, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    out = tmp_path / options.pop("out", "out")
    with pytest.raises(InputError, match=message):
        predict(network, tmp_path / place, out, **options)


def test_broken_weights_and_images_of_one_name(
    network: networks.Network, images: Path, tmp_path: Path
) -> None:
    broken = networks.create("tiny")
    nn.init.constant_(dict(broken.named_parameters())["heads.0.weight"], float("nan"))
    with pytest.raises(InputError, match="the map of tiny is not finite; its weights are broken"):
        predict(broken, images, tmp_path / "out")
    (images / "grey.jpg").write_bytes((images / "grey.png").read_bytes())
    with pytest.warns(InputWarning, match="'grey.jpg' and not 'grey.png'"):
        predict(network, images, tmp_path / "out2")
    files = json.loads((tmp_path / "out2/run.json").read_text(encoding="utf-8"))["files"]
    assert files["grey"].startswith("grey.jpg ")


# ---------------------------------------------------------------------------------------- checkpoints


def test_command_takes_what_training_and_saving_write(
    network: networks.Network, images: Path, tmp_path: Path
) -> None:
    network.save_pretrained(tmp_path / "saved")
    trained = load_network(tmp_path / "saved")
    trained.input_size = (96, 96)  # as training does
    trained.save_pretrained(tmp_path / "run")
    result = run("predict", tmp_path / "saved", images, tmp_path / "a", "--size", 96, "--device", "cpu")
    assert result.stdout == f"9 maps of Tiny in {tmp_path / 'a'}\n", result.stderr
    for checkpoint in ("run", "run/model.safetensors"):  # which say the size
        result = run("predict", tmp_path / checkpoint, images, tmp_path / "b", "--overwrite")
        assert result.exit_code == 0, result.stderr
        assert json.loads((tmp_path / "b/run.json").read_text())["config"]["size"] == 96
        for name, data in content(tmp_path / "a").items():
            assert name == "run.json" or content(tmp_path / "b")[name] == data
    assert "exists already" in refusal("predict", tmp_path / "run", images, tmp_path / "b")
    result = run("predict", tmp_path / "run", images, tmp_path / "b", "--resume")
    assert result.stdout.endswith("b, 9 kept from before\n")


@pytest.mark.slow
def test_authors_checkpoints(images: Path, tmp_path: Path) -> None:
    weights = published_networks.Weights()
    with torch.no_grad():
        published_networks.ldf(weights, torch.zeros(1, 3, 32, 32))
    torch.save(dict(weights), tmp_path / "ldf.pth")
    for path in images.rglob("*.v1.*"):
        path.unlink()
    command = ("predict", tmp_path / "ldf.pth", images, tmp_path / "out", "--size", 64)
    result = run(*command)
    assert result.stdout == f"1 maps of LDF in {tmp_path / 'out'}\n", result.stderr
    assert "1 kept from before" in run(*command, "--network", "ldf", "--resume").stdout
    assert "edn checkpoint" in refusal(*command, "--network", "edn", "--overwrite")
    loaded = load_network(tmp_path / "ldf.pth")
    assert loaded.input_spec == type(loaded).published_inputs["authors"]
    assert not loaded.training


# ----------------------------------------------------------------------------------- nothing is lost


def test_maps_of_changed_images_do_not_stay(
    network: networks.Network, images: Path, tmp_path: Path
) -> None:
    """The rule of `sisod evaluate`: what was done must be as it was, what was not may change."""
    out, bad = tmp_path / "out", images / "more/deep/im7.v1.png"
    good = bad.read_bytes()
    bad.write_bytes(b"")
    with pytest.raises(InputError, match="im7"):
        predict(network, images, out, batch=2)
    before = content(out)
    (images / "im0.v1.png").replace(images / "grey.png")
    bad.write_bytes(good)
    with pytest.raises(InputError, match=r"2 images were predicted .* since \(grey, im0.v1\)"):
        predict(network, images, out, batch=2, resume=True)
    assert content(out) == before
    predict(network, images, out, batch=2, overwrite=True)
    assert np.ptp(maps(out)["grey.png"]) > 100  # that of the new image
    assert len(maps(out)) == 8
    (images / "added.png").write_bytes(good)
    assert predict(network, images, out, batch=2, resume=True) == Prediction(out, 1, 8)


def test_an_archive_that_leads_out_of_the_folder(network: networks.Network, tmp_path: Path) -> None:
    """Refused by name, not left out as if it were hidden."""
    pytest.importorskip("fsspec", reason="extra cluster is not installed")
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as made:
        for name in ("m/a.png", "m/../../x.png"):
            made.writestr(name, encoded(".png", np.zeros((8, 8, 3), np.uint8)))
    with pytest.raises(InputError, match=r"^the name '\.\./\.\./x' does not lead to a place inside"):
        predict_folder(network, f"zip://m::{tmp_path / 'evil.zip'}", tmp_path / "out", size=SIDE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.zip"]
