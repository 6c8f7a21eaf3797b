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
from sisod.common.errors import InputError, UsageError
from sisod.networks import memory
from sisod.networks.checkpoints import METADATA_KEY
from sisod.networks.memory import least_memory, memory_errors
from sisod.networks.predict import load_network, trained_size
from sisod.training.data import augment
from sisod.training.recipe import find_recipe
from sisod.training.recipe_parts import DataPart

torch.set_num_threads(1)  # on a shared machine two would wait for each other
STATE: dict[str, Tensor] = networks.create("tiny").state_dict()
CONFIG = networks.create("tiny").config()
FIRST = next(iter(STATE))


def packed(state: dict[str, Tensor], config: object = CONFIG) -> bytes:
    text = config if isinstance(config, str) else json.dumps(config)
    return bytes(save(state, {METADATA_KEY: text}))


def spec(**values: Any) -> dict[str, Any]:
    return CONFIG | {"input_spec": CONFIG["input_spec"] | values}


WHOLE = packed(STATE)
FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is not a safetensors file"),
    "cut off": (WHOLE[: len(WHOLE) // 2], "is not a safetensors file"),
    "cut off in the header": (WHOLE[:100], "is not a safetensors file"),
    "text": (b"these are no weights\n" * 9, "is not a safetensors file"),
    "endless header": (b"\xff" * 64, "is not a safetensors file"),
    "without a config": (bytes(save(STATE)), "does not say which network"),
    "one missing": (packed({k: v for k, v in STATE.items() if k != FIRST}), "1 missing"),
    "one more": (packed({**STATE, "more": torch.ones(1)}), "1 not known (more)"),
    "renamed": (packed({f"x.{key}": value for key, value in STATE.items()}), "not known"),
    "none": (packed({}), "missing"),
    "another shape": (packed({**STATE, FIRST: torch.ones(3)}), "1 of another shape"),
    "whole numbers": (packed({**STATE, FIRST: STATE[FIRST].long()}), "1 of another type"),
    "booleans": (packed({**STATE, FIRST: STATE[FIRST] > 0}), "1 of another type"),
    "NaN": (packed({**STATE, FIRST: STATE[FIRST] * float("nan")}), f"1 not finite ({FIRST})"),
    "infinite": (packed({**STATE, FIRST: STATE[FIRST] + float("inf")}), "1 not finite"),
    "too large": (packed({**STATE, FIRST: STATE[FIRST].double() + 1e300}), "1 not finite"),
    "config that is not JSON": (packed(STATE, "{"), "the config is not one of sisod"),
    "config of nothing": (packed(STATE, ""), "the config is not one of sisod"),
    "deep config": (packed(STATE, "[" * 100_000), "the config is not one of sisod"),
    "config that is a list": (packed(STATE, [1]), "the config is not one of sisod"),
    "config that is a number": (packed(STATE, "9" * 5000), "the config is not one of sisod"),
    "text for the scale": (packed(STATE, spec(scale="255")), "scale must be a number"),
    "NaN for the scale": (packed(STATE, spec(scale=float("nan"))), "scale must be a number"),
    "huge scale": (packed(STATE, spec(scale=10**400)), "scale must be a number"),
    "true for the scale": (packed(STATE, spec(scale=True)), "scale must be a number"),
    "no deviation": (packed(STATE, spec(std=[0, 0, 0])), "every value of std must be a number above 0"),
    "text for the mean": (packed(STATE, spec(mean="abc")), "mean must have three values"),
    "words for the mean": (packed(STATE, spec(mean=["a", "b", "c"])), "every value of mean"),
    "another order": (packed(STATE, spec(order=["rgb"])), "order must be 'rgb' or 'bgr'"),
    "a field more": (packed(STATE, spec(gain=1)), "the config is not one of sisod"),
    "spec that is a list": (packed(STATE, CONFIG | {"input_spec": [1]}), "the config is not one of"),
    "unknown network": (packed(STATE, CONFIG | {"network": "unet"}), "unknown network 'unet'"),
    "network that is a list": (packed(STATE, CONFIG | {"network": ["tiny"]}), "network must be text"),
    "unknown encoder": (packed(STATE, CONFIG | {"encoder": "vgg"}), "encoder"),
    "encoder that is a number": (packed(STATE, CONFIG | {"encoder": 50}), "encoder must be text"),
    "network of another kind": (packed(STATE, CONFIG | {"network": "ldf"}), "the weights do not fit"),
}


OF_TENSORS = ("is not a safetensors", "missing", "not known", "of another", "not finite")


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_safetensors_file(name: str, tmp_path: Path) -> None:
    content, expected = FILES[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    for load in (networks.from_pretrained, load_network):
        with pytest.raises(InputError) as caught:
            load(path)
        assert expected in str(caught.value)
        check_one_sentence(str(caught.value), longest=500)
    # as a folder of save_pretrained, whose config stands in a file of its own
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    if any(text in expected for text in OF_TENSORS):
        with pytest.raises(InputError):
            networks.find("tiny").from_pretrained(tmp_path)


CONFIGS = ["", "{", "[]", "[" * 100_000, "\udcff"]
CONFIGS += [json.dumps(config) for config in (spec(scale="x"), CONFIG | {"network": 3})]


@pytest.mark.parametrize("text", CONFIGS)
def test_a_hostile_config_in_a_folder(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(WHOLE)
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as caught:
        networks.from_pretrained(tmp_path)
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
    "cut off": lambda: saved(STATE)[:2000],
    "cut off near the end": lambda: saved(STATE)[:-30],
    "zeros": lambda: bytes(4096),
    "harmful": lambda: saved(Harmful()),
    "harmful inside": lambda: saved({"state_dict": {FIRST: Harmful()}}),
    "harmful, of the old kind": lambda: pickle.dumps(Harmful()),
    "deep": lambda: nested(100_000),
    "claims a huge text": lambda: b"\x80\x04\x8e" + (2**60).to_bytes(8, "little") + b"x",
    "list": lambda: saved([1, 2, 3]),
    "numbers": lambda: saved({"a": 1}),
    "no keys": lambda: saved({}),
    "keys that are numbers": lambda: saved({1: torch.ones(1)}),
    "other keys": lambda: saved({"a.weight": torch.ones(1)}),
    "NaN": lambda: saved({"a.weight": torch.full((1,), float("nan"))}),
    "one of its own": lambda: saved({"state_dict": {"state_dict": {}}}),
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


@pytest.mark.parametrize("state", [None, 5, [], {"a": 1}, {1: torch.ones(1)}, {"a": np.ones(1)}, {}])
def test_a_published_state_that_is_none(state: Any) -> None:
    with pytest.raises(InputError) as caught:
        networks.load_published("edn", state)
    check_one_sentence(str(caught.value), longest=500)


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
    "empty": (lambda _: b"", r"cannot be read \(it is empty\)"),
    "cut off": (lambda c: c[: len(c) // 2], "cannot be read"),
    "text": (lambda _: b"no checkpoint", "cannot be read"),
    "harmful": (lambda _: saved(Harmful()), r"cannot be read \(it holds other objects than tensors\)"),
    "of weights alone": (lambda _: saved(STATE), "it lacks state_dict, global_step, epoch"),
    "list": (lambda _: saved([1]), "is not a checkpoint of sisod train"),
    "without the optimiser": (lambda c: changed(c, optimizer_states=None), "it lacks optimizer_states"),
    "text for the step": (lambda c: changed(c, global_step="2"), "is not a checkpoint of sisod train"),
    "of another network": (lambda c: changed(c, state_dict={"a": torch.ones(1)}), "do not fit"),
    "NaN": (lambda c: changed(c, state_dict=poisoned(c)), "not finite"),
    "another optimiser": (lambda c: changed(c, optimizer_states=[{"a": 1}]), "cannot go on from"),
    "no loops": (lambda c: changed(c, loops={"fit_loop": 3}), "cannot go on from"),
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


def test_the_command_says_it_too(unfinished: tuple[Path, Path, bytes]) -> None:
    """An empty file ended in "Aborted." and nothing else."""
    data, out, content = unfinished
    path = out / "checkpoints" / "last.ckpt"
    path.write_bytes(b"")
    settings = ["--set", "data.size=32", "--set", "train.epochs=2"]
    command = [
        "train",
        "tiny",
        "--data",
        str(data),
        "--out",
        str(out),
        "--resume",
        "--workers",
        "0",
        *settings,
    ]
    result = run(*command)
    assert (result.exit_code, result.stderr) == (
        1,
        f"error: the checkpoint {str(path)!r} cannot be read (it is empty); put back a copy of it, or "
        "begin again with --overwrite\n",
    )
    path.with_name("best.ckpt").write_bytes(b"")
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"best\.ckpt' cannot be read \(it is empty\)"):
        train_tiny(data, out, "train.epochs=2", resume=True)
    path.with_name("best.ckpt").unlink()
    assert train_tiny(data, out, "train.epochs=2", resume=True)["finished"]


# ------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize("name", networks.names())
@pytest.mark.slow
def test_the_least_memory_is_less_than_what_is_taken(name: str) -> None:
    network = networks.create(name).eval()
    taken: list[int] = []
    for part in network.modules():
        part.register_forward_hook(
            lambda *a: taken.append(a[2].nbytes if isinstance(a[2], Tensor) else 0)
        )
    with torch.no_grad():
        network(torch.zeros(1, 3, 128, 160))
    least = least_memory(network, batch=1, height=128, width=160)
    assert max(taken) <= least <= sum(taken)


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
    monkeypatch.setattr(memory, "available_memory", lambda: 10**18)
    memory.check_memory(networks.create("tiny"), batch=8, height=9999, width=9999, advice="")
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.check_memory(networks.create("tiny"), batch=8, height=10**6, width=10**6, advice="")


def test_memory_that_runs_out_ends_in_a_sentence() -> None:
    for error in (
        RuntimeError("[enforce fail at alloc_cpu.cpp:98] DefaultCPUAllocator: not enough memory"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        MemoryError(),
    ):
        with (
            pytest.raises(UsageError, match="there is not enough memory for that; take"),
            memory_errors("that"),
        ):
            raise error
    with pytest.raises(RuntimeError, match="sizes differ"), memory_errors("that"):
        raise RuntimeError("sizes differ")


@pytest.mark.parametrize(
    "text", ["", "[data]", "data = 3", "[data]\nsize = 'x'", "a = " + "[" * 5000, "\0"]
)
def test_a_hostile_recipe_beside_a_checkpoint_is_not_looked_at(text: str, tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_bytes(text.encode())
    assert trained_size(tmp_path) is None


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (2, 1), (3, 3)])
def test_images_of_a_pixel_are_cropped(shape: tuple[int, int]) -> None:
    part = DataPart(32, crop=0.9)
    for seed in range(200):
        planes = {"image": np.full((*shape, 3), 7, np.uint8), "mask": np.full(shape, 255, np.uint8)}
        done = augment(planes, part, np.random.default_rng(seed))
        assert done["image"].shape == (32, 32, 3)
        assert (done["image"] == 7).all()
        assert (done["mask"] == 255).all()


def test_crops_of_other_images_are_what_they_were() -> None:
    """Where a crop begins is limited to the image, which it always was but for those of a pixel."""
    part = DataPart(32, flip=0.0, crop=0.25)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        cut_y, cut_x, at_y, at_x, _ = np.random.default_rng(seed).random(5)
        plane = np.arange(35 * 51, dtype=np.uint8).reshape(35, 51)
        y0, x0 = round(at_y * cut_y * 0.25 * 35), round(at_x * cut_x * 0.25 * 51)
        y1, x1 = y0 + round((1 - cut_y * 0.25) * 35), x0 + round((1 - cut_x * 0.25) * 51)
        expected = cv2.resize(
            np.ascontiguousarray(plane[y0:y1, x0:x1]),
            (32, 32),
            interpolation=cv2.INTER_AREA if max(y1 - y0, x1 - x0) > 32 else cv2.INTER_LINEAR,
        )
        assert (augment({"mask": plane}, part, rng)["mask"] == expected).all()


@pytest.mark.slow
def test_a_data_set_of_single_pixels_trains(tmp_path: Path) -> None:
    for kind in ("image", "mask"):
        (tmp_path / "data" / kind).mkdir(parents=True)
        for index, shape in enumerate([(1, 1), (1, 9), (9, 1), (2, 2)] * 2):
            value = np.full((*shape, 3) if kind == "image" else shape, 255, np.uint8)
            cv2.imwrite(str(tmp_path / "data" / kind / f"{index}.png"), value)
    record = train_tiny(
        tmp_path / "data", tmp_path / "run", "data.crop=0.9", "train.epochs=1", val=tmp_path / "data"
    )
    assert record["steps"] == 1
    assert find_recipe("tiny").data.crop == 0
