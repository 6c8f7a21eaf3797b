"""Models of other libraries by name: prepared as their configuration says, refused in one sentence."""

import json
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from helpers.command_line import error_message, run
from helpers.image_files import read_stored
from torch import Tensor, nn

from sisod.common import exceptions
from sisod.common.exceptions import InputError, UsageError
from sisod.networks.registry import ModelOptions, check_model
from sisod.networks.saved import load_model
from sisod.networks.wrapped import WrappedNetwork

torch.set_num_threads(1)
SIDE = 32

MINE = """
import torch
from torch import nn

from sisod import networks


class Sides(nn.Module):
    # like BiRefNet: a list of logit maps, the last is the prediction
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, x):
        maps = self.conv(x)
        return [maps[:, :1, ::2, ::2], maps[:, 1:]]


class Fails(nn.Module):
    def forward(self, x):
        raise RuntimeError(f"sizes {tuple(x.shape)} do not match\\nat all")


class Nan(nn.Module):
    def forward(self, x):
        return x[:, :1] * float("nan")


def raises():
    raise OSError("weights.pth is lost\\nsecond line")


def wrapped():
    return networks.wrap(Sides(), size=48, output=-1)


def number():
    return 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with three images and a module of one's own."""
    rng = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    for index, shape in enumerate(((SIDE, SIDE), (20, 30), (SIDE, SIDE))):
        picture = cv2.resize(rng.integers(0, 256, (4, 4, 3), np.uint8), shape[::-1])
        assert cv2.imwrite(str(tmp_path / f"images/{index}.png"), picture)
    name = f"mine_{tmp_path.name.replace('-', '_')}"  # a module is imported once only
    (tmp_path / f"{name}.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def module_name(folder: Path) -> str:
    (path,) = folder.glob("mine_*.py")
    return path.stem


def rgb(folder: Path) -> Tensor:
    image = read_stored(folder / "images/0.png")[..., ::-1]
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))[None].float() / 255


# ------------------------------------------------------------------------------------------ the names


def test_a_kind_is_the_word_before_the_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_model("py:mine:build") == ("py", "mine:build")
    assert check_model("owner/name") == (None, "owner/name")
    assert check_model(r"C:\runs\edn") == (None, r"C:\runs\edn")
    monkeypatch.chdir(tmp_path)
    Path("my:run").mkdir()
    assert check_model("my:run") == (None, "my:run")
    for model, expected in (("onx:m.onnx", "did you mean 'onnx'"), ("a/b.onnx", "write onnx:a/b.onnx$")):
        with pytest.raises(UsageError, match=expected):
            check_model(model)


@pytest.mark.parametrize(("kind", "module"), [("onnx", "onnxruntime"), ("hf", "transformers")])
def test_a_missing_package_is_one_sentence(
    kind: str, module: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = exceptions.is_missing
    monkeypatch.setattr(exceptions, "is_missing", lambda name: name == module or original(name))
    message = error_message(run("predict", f"{kind}:a:b", folder / "images", folder / "out"))
    title, extra = exceptions.EXTRAS[module]
    assert message == (f"a model {kind}: needs {title}; install it with: pip install 'sisod[{extra}]'")


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        ("tiny", ["--mean", "0,0,0"], "--mean cannot be given for 'tiny'"),
        ("py:a:b", ["--network", "edn"], "--network cannot be given for 'py:a:b'"),
        ("py:a:b", ["--trust-remote-code"], "--trust-remote-code cannot be given for 'py:a:b'"),
        ("timm:resnet18", [], "'timm:resnet18' gives no maps"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_options_without_effect_and_encoders_are_refused(
    model: str, options: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exceptions, "is_missing", lambda _: False)
    message = error_message(run("predict", model, "images", "out", *options), exit_codes=(2,))
    assert message.startswith(expected)


# ------------------------------------------------------------------------------------------------- py:


def test_the_last_of_several_maps(folder: Path) -> None:
    """BiRefNet's form, in one line; by hand, at the size of the image."""
    name = f"py:{module_name(folder)}:Sides"
    result = run("predict", name, "images", "out", "--size", SIDE, "--output", "-1", "--batch", 2)
    assert result.stdout == "3 maps of Sides in out\n", result.stderr
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 2, 3, padding=1)
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    with torch.no_grad():
        probs = conv((rgb(folder) - mean) / std)[0, 1].sigmoid()
    assert np.abs(read_stored(folder / "out/0.png") - (255 * probs).round().numpy()).max() <= 1
    assert read_stored(folder / "out/1.png").shape == (20, 30)
    settings = json.loads((folder / "out/run.json").read_text())
    assert settings["config"]["network"]["source"] == name
    assert settings["config"]["network"]["output"] == -1


def test_a_function_may_wrap_itself(folder: Path) -> None:
    loaded = load_model(f"py:{module_name(folder)}:wrapped")
    assert isinstance(loaded, WrappedNetwork)
    assert (loaded.input_size, loaded.training) == ((48, 48), False)
    assert run("predict", f"py:{module_name(folder)}:wrapped", "images", "out").exit_code == 0
    assert json.loads((folder / "out/run.json").read_text())["config"]["size"] == 48
    with pytest.raises(UsageError, match=r"--output cannot be given for 'mine_\w+:wrapped'"):
        load_model(f"py:{module_name(folder)}:wrapped", ModelOptions(output=0))


FUNCTIONS = {
    "raises": "raises' failed (OSError: weights.pth is lost second line); check it",
    "number": "only a PyTorch module of yours can be wrapped, got 3",
    "Wrong": "unknown function of",
    "Fails": "failed on a batch of shape (3, 3, 384, 384) (RuntimeError: sizes",
    "Nan": "the map of Nan is not finite; its weights are broken, or they do not fit",
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_that_builds_no_model(function: str, folder: Path) -> None:
    result = run("predict", f"py:{module_name(folder)}:{function}", "images", "out")
    assert FUNCTIONS[function] in error_message(result, exit_codes=(1, 2))


# ------------------------------------------------------------------------------------------------- hf:

transformers = pytest.mark.needs("transformers")


@pytest.fixture(scope="module")
def saved_segformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the hub has it: config.json, preprocessor_config.json and safetensors."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    torch.manual_seed(1)
    config = SegformerConfig(
        num_labels=2,
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 8, 8, 8],
        num_attention_heads=[1, 1, 1, 1],
        decoder_hidden_size=8,
        mlp_ratios=[1, 1, 1, 1],
    )
    model = SegformerForSemanticSegmentation(config)
    with torch.no_grad():
        model.decode_head.classifier.weight.mul_(4000)  # or all maps would be grey
    root = tmp_path_factory.mktemp("hub") / "segformer"
    model.save_pretrained(root)
    preprocessing = {
        "do_resize": True,
        "size": {"height": SIDE, "width": 64},
        "do_rescale": True,
        "rescale_factor": 1 / 127.5,
        "do_normalize": True,
        "image_mean": [1.0, 0.9, 0.8],
        "image_std": [0.5, 0.6, 0.7],
        "image_processor_type": "SegformerImageProcessor",
    }
    (root / "preprocessor_config.json").write_text(json.dumps(preprocessing))
    return root


@pytest.fixture
def segformer(saved_segformer: Path, folder: Path) -> Path:
    shutil.copytree(saved_segformer, folder / "segformer")
    return folder / "segformer"


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@transformers
def test_segformer_is_prepared_as_its_folder_says(segformer: Path, folder: Path) -> None:
    from transformers import SegformerForSemanticSegmentation

    result = run("predict", "hf:segformer", "images", "out")
    assert (result.stdout, result.stderr) == ("3 maps of SegformerForSemanticSegmentation in out\n", "")
    settings = json.loads((folder / "out/run.json").read_text())
    assert settings["config"]["size"] == [SIDE, 64]
    assert settings["config"]["network"]["output_spec"]["activation"] == "softmax"
    edit(segformer / "preprocessor_config.json", size={"height": SIDE, "width": SIDE})
    assert run("predict", "hf:segformer", "images", "square").exit_code == 0
    model = SegformerForSemanticSegmentation.from_pretrained(segformer).eval()
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ((1.0, 0.9, 0.8), (0.5, 0.6, 0.7)))
    with torch.no_grad():
        logits = model(((rgb(folder) * 2) - mean) / std).logits
    # of two classes the log-odds are the difference, and they are resized
    odds = nn.functional.interpolate(logits[:, 1:] - logits[:, :1], size=(SIDE, SIDE), mode="bilinear")
    expected = (255 * odds[0, 0].sigmoid()).round().numpy()
    assert np.ptp(expected) > 50
    assert np.abs(read_stored(folder / "square/0.png") - expected).max() <= 1


@transformers
@pytest.mark.parametrize(
    ("changes", "size", "scale", "order"),
    [
        ({"size": 48}, (48, 48), 2.0, "rgb"),
        ({"size": {"shortest_edge": 40}}, (40, 40), 2.0, "rgb"),
        ({"do_center_crop": True, "crop_size": {"height": 24, "width": 28}}, (24, 28), 2.0, "rgb"),
        ({"do_resize": False}, None, 2.0, "rgb"),
        ({"do_rescale": False}, (SIDE, 64), 255.0, "rgb"),
        ({"do_flip_channel_order": True}, (SIDE, 64), 2.0, "bgr"),
    ],
)
def test_other_preparations(
    changes: dict[str, Any], size: Any, scale: float, order: str, segformer: Path
) -> None:
    edit(segformer / "preprocessor_config.json", **changes)
    loaded = load_model("hf:segformer")
    assert loaded.input_size == size
    assert (loaded.input_spec.scale, loaded.input_spec.order) == (scale, order)
    assert loaded.input_spec.mean == (1.0, 0.9, 0.8)


@transformers
def test_options_come_before_the_configuration(segformer: Path) -> None:
    options = ModelOptions(size=96, mean=(0.1, 0.2, 0.3), channel=0, activation="softmax")
    loaded = load_model("hf:segformer", options)
    assert isinstance(loaded, WrappedNetwork)
    assert (loaded.input_size, loaded.output_spec.channel) == ((96, 96), 0)
    assert (loaded.input_spec.scale, loaded.input_spec.mean) == (1.0, (0.1, 0.2, 0.3))
    assert loaded.input_spec.std == pytest.approx((0.25, 0.3, 0.35))
    (segformer / "preprocessor_config.json").unlink()
    with pytest.raises(InputError, match=r"hf:segformer .* no preprocessor_config.json that can be"):
        load_model("hf:segformer", options)
    whole = load_model("hf:segformer", ModelOptions(size=96, mean=(0, 0, 0), std=(1, 1, 1)))
    assert whole.input_spec.std == (1.0, 1.0, 1.0)


REMOTE = """
from pathlib import Path

import torch
from transformers import PretrainedConfig, PreTrainedModel

Path("executed").touch()


class RemoteConfig(PretrainedConfig):
    model_type = "remote_test_model"


class RemoteModel(PreTrainedModel):
    config_class = RemoteConfig
    main_input_name = "x"

    def __init__(self, config):
        super().__init__(config)
        self.conv = torch.nn.Conv2d(3, 2, 1)
        self.post_init()

    def forward(self, x):
        maps = self.conv(x)
        return [maps[:, :1], maps[:, 1:]]
"""


@transformers
def test_remote_code_runs_only_if_it_is_trusted(
    segformer: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import save_file

    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(folder / "cache"))
    monkeypatch.syspath_prepend(str(folder / "cache"))
    (segformer / "remote.py").write_text(REMOTE)
    auto_map = {
        "AutoConfig": "remote.RemoteConfig",
        "AutoModelForImageSegmentation": "remote.RemoteModel",
    }
    config = {"model_type": "remote_test_model", "auto_map": auto_map}
    (segformer / "config.json").write_text(json.dumps(config))
    conv = nn.Conv2d(3, 2, 1)
    tensors = {f"conv.{key}": value for key, value in conv.state_dict().items()}
    save_file(tensors, segformer / "model.safetensors", {"format": "pt"})
    message = error_message(run("predict", "hf:segformer", "images", "out"), exit_codes=(2,))
    assert message.startswith("hf:segformer runs Python code of its own ('remote.RemoteModel'); read")
    assert not Path("executed").exists()
    result = run("predict", "hf:segformer", "images", "out", "--trust-remote-code", "--output", "-1")
    assert result.exit_code == 0, result.stderr
    assert Path("executed").exists()
    assert result.stdout == "3 maps of RemoteModel in out\n"


@transformers
def test_a_misspelt_folder_is_not_looked_for_on_the_hub(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    monkeypatch.setattr(transformers.PretrainedConfig, "get_config_dict", None)
    message = error_message(run("predict", "hf:segfromer", "images", str(folder / "out")))
    assert message.startswith("hf:segfromer is not a folder; expected")


@transformers
def test_folders_of_transformers_that_are_refused(segformer: Path, folder: Path) -> None:
    def check(name: str, expected: str) -> None:
        message = error_message(run("predict", name, "images", "out"))
        assert name in message
        assert expected in message

    (folder / "empty").mkdir()
    check("hf:empty", "config.json")
    config, weights = segformer / "config.json", segformer / "model.safetensors"
    good = config.read_text()
    edit(config, model_type="bert")
    check("hf:segformer", "Error")
    edit(config, model_type="segformer", decoder_hidden_size=16)
    check("hf:segformer", "are missing or have another shape (decode_head")
    config.write_text(good)
    weights.unlink()
    torch.save({}, segformer / "pytorch_model.bin")
    check("hf:segformer", "safetensors")
