"""Checkpoints that are truncated, empty, of another kind or malicious: one sentence each."""

import io
import json
import os
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from helpers.command_line import run
from helpers.messages import check_one_sentence
from helpers.training_runs import train_tiny, write_data
from safetensors.torch import save
from torch import Tensor

from sisod import networks
from sisod.common.exceptions import InputError
from sisod.networks import predict
from sisod.networks.saved import load_network
from sisod.networks.specs import CONFIG_KEY
from sisod.training.data import augment
from sisod.training.recipe_parts import DataPart

torch.set_num_threads(1)  # on a shared machine two would wait for each other
STATE: dict[str, Tensor] = networks.create("tiny").state_dict()
CONFIG = networks.create("tiny").config()
FIRST = next(iter(STATE))


def packed(state: dict[str, Tensor], config: object = CONFIG) -> bytes:
    text = config if isinstance(config, str) else json.dumps(config)
    return bytes(save(state, {CONFIG_KEY: text}))


def spec(**values: Any) -> dict[str, Any]:
    return CONFIG | {"input_spec": CONFIG["input_spec"] | values}


WHOLE = packed(STATE)
FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is not a safetensors file"),
    "cut off": (WHOLE[: len(WHOLE) // 2], "is not a safetensors file"),
    "without a config": (bytes(save(STATE)), "does not say which network"),
    "integers": (packed({**STATE, FIRST: STATE[FIRST].long()}), f"or not finite ({FIRST}"),
    "NaN": (packed({**STATE, FIRST: STATE[FIRST] * float("nan")}), f"or not finite ({FIRST}"),
    "too large": (packed({**STATE, FIRST: STATE[FIRST].double() + 1e300}), f"or not finite ({FIRST}"),
    "config that is not JSON": (packed(STATE, "{"), "the config is not JSON"),
    "deep config": (packed(STATE, "[" * 100_000), "the config is not JSON"),
    "NaN for the scale": (packed(STATE, spec(scale=float("nan"))), "config: input_spec"),
    "no deviation": (packed(STATE, spec(std=[0, 0, 0])), "every value of std must be a number above 0"),
    "a field more": (packed(STATE, spec(gain=1)), "unknown key 'gain' in [input_spec]"),
    "no temperature": (packed(STATE, CONFIG | {"calibration": {"temperature": 0}}), "config: "),
    "unknown network": (packed(STATE, CONFIG | {"network": "unet"}), "unknown network 'unet'"),
    "network of another kind": (packed(STATE, CONFIG | {"network": "ldf"}), "the weights do not fit"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_safetensors_file(name: str, tmp_path: Path) -> None:
    content, expected = FILES[name]
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_network(tmp_path)
    assert expected in str(caught.value)
    check_one_sentence(str(caught.value), longest=500)


def saved(what: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(what, buffer)
    return buffer.getvalue()


def nested(depth: int) -> bytes:
    """A pickle of lists in lists, deeper than anybody can follow."""
    return b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."


class Harmful:
    """Makes a folder when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("harm",)


PICKLES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"these are no weights\n" * 9,
    "harmful": lambda: saved(Harmful()),
    "harmful, of the old kind": lambda: pickle.dumps(Harmful()),
    "deep": lambda: nested(100_000),
    "list": lambda: saved([1, 2, 3]),
    "no keys": lambda: saved({"state_dict": {}}),
}


@pytest.mark.parametrize("name", PICKLES)
def test_a_hostile_checkpoint(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Path("model.pth").write_bytes(PICKLES[name]())
    Path("images").mkdir()
    for command in (
        ["convert", "model.pth", "x.safetensors"],
        ["predict", "model.pth", "images", "maps"],
    ):
        result = run(*command)
        assert isinstance(result.exception, SystemExit), repr(result.exception)
        assert result.exit_code == 1
        assert result.stderr.startswith("error: ")
        check_one_sentence(result.stderr.rstrip("\n"), longest=500)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "model.pth"]


# ---------------------------------------------------------------------------------------- resuming


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, bytes]:
    """A data set, the folder of a run that was cut off, and its checkpoint."""
    root = tmp_path_factory.mktemp("resumed")
    data, out = write_data(root / "data", 8), root / "run"
    train_tiny(data, out, "train.epochs=2")
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    (out / "run.json").write_text(json.dumps(record | {"finished": False}), encoding="utf-8")
    return data, out, (out / "checkpoints" / "last.ckpt").read_bytes()


def changed(content: bytes, **parts: Any) -> bytes:
    checkpoint = torch.load(io.BytesIO(content), weights_only=True)
    checkpoint.update({key: value for key, value in parts.items() if value is not None})
    return saved({key: value for key, value in checkpoint.items() if parts.get(key, 0) is not None})


def poisoned(content: bytes) -> dict[str, Tensor]:
    state = torch.load(io.BytesIO(content), weights_only=True)["state_dict"]
    return {key: value * float("nan") for key, value in state.items()}


LAST: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut off": (lambda c: c[: len(c) // 2], "cannot be read"),
    "harmful": (lambda _: saved(Harmful()), "it holds other objects than tensors"),
    "of another network": (lambda c: changed(c, state_dict={"a": torch.ones(1)}), "do not fit"),
    "NaN": (lambda c: changed(c, state_dict=poisoned(c)), "not finite"),
}


@pytest.mark.parametrize("name", LAST)
def test_a_hostile_checkpoint_is_not_resumed_from(
    name: str, unfinished: tuple[Path, Path, bytes]
) -> None:
    data, out, content = unfinished
    change, expected = LAST[name]
    (out / "checkpoints" / "last.ckpt").write_bytes(change(content))
    with pytest.raises(InputError, match=expected) as caught:
        train_tiny(data, out, "train.epochs=2", resume=True)
    check_one_sentence(str(caught.value), longest=500)


# ------------------------------------------------------------------------------------------- sizes


def test_a_size_beyond_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    networks.create("tiny").save_pretrained("net")
    Path("images").mkdir()
    cv2.imwrite("images/a.png", np.zeros((8, 8), np.uint8))
    result = run("predict", "net", "images", "out", "--size", "999999")
    assert result.exit_code == 2, result.stderr
    assert "8 images of 999999 x 999999 need at least" in result.stderr
    assert result.stderr.endswith("GB are free; lower --size or --batch\n")
    result = run("export", "net", "x.onnx", "--height", "999999", "--width", "999999")
    assert result.exit_code == 2, result.stderr
    assert result.stderr.endswith("GB are free; lower --height or --width\n")
    assert not Path("out").exists()
    # the sum of what is free decides, not the size itself
    for free in (10**18, None):
        monkeypatch.setattr(predict, "available_memory", lambda free=free: free)
        predict.check_memory(8, (9999, 9999), advice="")


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (2, 1), (3, 3)])
def test_images_of_a_pixel_are_cropped(shape: tuple[int, int]) -> None:
    part = DataPart(32, crop=0.9)
    for seed in range(200):
        planes = {"image": np.full((*shape, 3), 7, np.uint8), "mask": np.full(shape, 255, np.uint8)}
        done = augment(planes, part, np.random.default_rng(seed))
        assert done["image"].shape == (32, 32, 3)
        assert (done["image"] == 7).all()
        assert (done["mask"] == 255).all()
