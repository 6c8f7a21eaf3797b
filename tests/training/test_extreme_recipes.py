"""Every key of every recipe with extreme values: accepted with a meaning, or one sentence."""

import math
import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command_line import run
from helpers.extreme_values import EXTREME_VALUES
from helpers.messages import check_one_sentence

from sisod import networks
from sisod.common.errors import InputError
from sisod.evaluation.benchmark_file import read_benchmark_file
from sisod.losses import boxes_of
from sisod.reproduction.demo_training import Plan
from sisod.scoring.loss_options import TERM_NAMES
from sisod.training import recipe as recipes
from sisod.training import recipe_parts
from sisod.training.recipe import Recipe, find_recipe, read_recipe, write_toml
from sisod.training.recipe_parts import Adam
from sisod.training.train import Machine, TrainingRequest

# a command takes longer than a call
ON_THE_COMMAND_LINE = (
    "text",
    "nothing",
    "control characters",
    "unicode",
    "empty list",
    "list of text",
    "deep list",
    "negative",
    "2^32",
    "thousands of digits",
    "nan",
    "two lines",
)
PARTS: list[tuple[str, type[Any]]] = [
    *recipes._PARTS.items(),
    ("optimizer", recipe_parts.SGD),
    ("optimizer", Adam),
]
KEYS = sorted({(section, field.name) for section, kind in PARTS for field in fields(kind)})
SGD = "[optimizer]\nname = 'sgd'\nlr = 0.1\n"


def base(section: str, key: str) -> str:
    """The recipe of tiny, with the optimiser that has the key."""
    text = write_toml(find_recipe("tiny"))
    if section == "optimizer" and key not in {field.name for field in fields(Adam)}:
        begin = text.index("[optimizer]")
        text = text[:begin] + SGD + text[text.index("[", begin + 1) :]
    return text


def test_every_key_is_tried_with_many_values() -> None:
    assert len(KEYS) == sum(len(table) for table in find_recipe("tiny").tables().values()) + 3
    assert len(KEYS) * len(EXTREME_VALUES) > 1400


@pytest.mark.parametrize("key", KEYS, ids=".".join)
@pytest.mark.slow
def test_an_extreme_value_in_a_recipe_is_accepted_or_refused_in_one_sentence(
    key: tuple[str, str], tmp_path: Path
) -> None:
    section, name = key
    text = base(section, name)
    plain = tmp_path / "plain.toml"
    plain.write_text(text, encoding="utf-8")
    head, tail = text.split(f"[{section}]\n")
    rest = (
        "\n".join(line for line in tail.split("\n") if not line.startswith(f"{name} = ")) if tail else ""
    )
    path = tmp_path / "extreme.toml"
    for value in EXTREME_VALUES.values():
        path.write_text(f"{head}[{section}]\n{name} = {value}\n{rest}", encoding="utf-8")
        for given, settings in ((plain, [f"{section}.{name}={value}"]), (path, [])):
            try:
                check_usable(find_recipe(given, settings))
            except InputError as error:
                check_one_sentence(str(error))


def check_usable(recipe: Recipe) -> None:
    """An accepted recipe can be written, read again, and does not fail in what is made of its values."""
    assert read_recipe(tomllib.loads(write_toml(recipe)), name=recipe.name, source="x") == recipe
    write_toml(recipe).encode()
    np.random.default_rng((recipe.train.seed, 0, 0))
    import torch

    from sisod.losses import SizeInvariantLoss
    from sisod.training.module import make_optimizer, schedule_factor

    make_optimizer(torch.nn.Linear(2, 2), recipe)
    epochs = recipe.train.epochs or 1
    factor = schedule_factor(recipe.schedule, steps_per_epoch=3, n_epochs=epochs)
    assert all(math.isfinite(factor(step)) for step in (0, 1, 3 * epochs - 1))
    SizeInvariantLoss(*recipe.loss.terms, alpha=recipe.loss.alpha, normalize=recipe.loss.normalize)  # type: ignore[arg-type]


@pytest.mark.parametrize("section", sorted({section for section, _ in KEYS}))
@pytest.mark.slow
def test_an_extreme_value_on_the_command_line_ends_with_a_sentence_and_a_code(
    section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as the data, which there is none of."""
    monkeypatch.chdir(tmp_path)
    for value in (EXTREME_VALUES[kind] for kind in ON_THE_COMMAND_LINE):
        for key in (name for part, name in KEYS if part == section):
            Path("own.toml").write_text(base(section, key), encoding="utf-8")
            setting = f"{section}.{key}={value}"
            result = run("train", "own.toml", "--data", "nowhere", "--out", "out", "--set", setting)
            assert isinstance(result.exception, SystemExit), (setting[:80], result.exception)
            assert result.exit_code in (1, 2)
            assert result.stdout == ""
            assert result.stderr.startswith("error: ")
            check_one_sentence(result.stderr.strip("\n"))
    assert [path.name for path in tmp_path.iterdir()] == ["own.toml"]


@pytest.mark.parametrize(
    "setting",
    ["", "=", ".", "a.b", "a.b=1", ".=1", "train.=1", ".batch=1", "train=1", "train.batch.x=1",
     "network.encoder_weights=\udcff", "x" * 10_000 + ".y=1", "train." + "y" * 10_000 + "=1", "a\nb.c=1",
     "train.a\0b=1", "\udcff.a=1"],
)  # fmt: skip
def test_a_setting_that_names_no_key(setting: str) -> None:
    with pytest.raises(InputError) as caught:
        find_recipe("tiny", [setting])
    check_one_sentence(str(caught.value))


@pytest.mark.parametrize(
    "text",
    ["", "x", "[", "[train", "a = [" + "[" * 5000, "\0", "\ufeff", "a" * 10**5, "train = 1", "[[train]]",
     "[train]\nbatch = 1\nbatch = 2", "[network.name]\na = 1", "optimizer = 5", "[optimizer]\nname = []",
     "['']", "['\\n']", '["a\\nb"]', "[" + "a." * 2000 + "a]"],
)  # fmt: skip
def test_a_malformed_file_is_neither_a_recipe_nor_a_benchmark(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(text.encode())
    for read in (find_recipe, read_benchmark_file):
        with pytest.raises(InputError) as caught:
            read(path)
        check_one_sentence(str(caught.value))
    path.write_bytes(b"\xff\xfe\x00")
    for place in (path, tmp_path / "no.toml", tmp_path, Path("a\0b.toml")):
        with pytest.raises(InputError) as caught:
            read_benchmark_file(place)
        check_one_sentence(str(caught.value))


def test_parts_of_a_recipe_made_by_hand_are_checked_too() -> None:
    tables = find_recipe("tiny").tables()
    for section, kind in PARTS:
        good = tables[section] if section != "optimizer" or kind is Adam else {"name": "sgd", "lr": 0.1}
        part = kind(**good)
        for field in fields(kind):
            for wrong in (None, object(), b"x", [object()], {1: 2}, math.nan, 1j, "\0", -7, 10**400):
                try:
                    kind(**good | {field.name: wrong})
                except ValueError as error:
                    check_one_sentence(str(error))
                else:
                    assert isinstance(wrong, type(getattr(part, field.name))), (
                        section,
                        field.name,
                        wrong,
                    )
    with pytest.raises(ValueError, match="data must be of the class DataPart, got 3"):
        Recipe(**{**vars(find_recipe("tiny")), "data": 3})


CALLS: dict[str, tuple[Callable[[Any], object], list[Any]]] = {
    "loss": (lambda v: TrainingRequest(Path("d"), Path("o"), loss=v), ["SI", "none", None, 3]),
    "limit": (lambda v: TrainingRequest(Path("d"), Path("o"), limit=v), [0, -1, 1.5, "3", True]),
    "resume": (lambda v: TrainingRequest(Path("d"), Path("o"), resume=v), ["no", 1, None]),
    "devices": (lambda v: Machine(devices=v), [2, None, [0]]),
    "nodes": (lambda v: Machine(nodes=v), [0, -1, "2", 1.5]),
    "workers": (lambda v: Machine(workers=v), [-1, 0.5, "2"]),
    "logger": (lambda v: Machine(logger=v), ["wandb", None]),
    "n_train": (lambda v: Plan(n_train=v), [0, -8, "9"]),
    "epochs": (lambda v: Plan(epochs=v), [0, 1.5, None]),
    "seeds": (lambda v: Plan(seeds=v), [(), [1], 3, (-1,), ("a",)]),
    "connectivity": (lambda v: boxes_of(np.eye(3), connectivity=v), [1, 8.0, None, "8"]),
    "min_area": (lambda v: boxes_of(np.eye(3), min_area=v), [-1, 1.5, math.nan, True, None]),
    "encoder": (lambda v: networks.create("tiny", encoder=v), ["vgg", 50, None, []]),
    "input_spec": (lambda v: networks.create("tiny", input_spec=v), [{"scale": 1}, "rgb", 3]),
    "encoder_weights": (lambda v: networks.create("ldf", encoder_weights=v), [3, [], True]),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_training_and_networks(name: str) -> None:
    call, values = CALLS[name]
    for value in values:
        with pytest.raises((ValueError, TypeError), match=name) as caught:
            call(value)
        check_one_sentence(str(caught.value))
        assert "sisod" in str(caught.traceback[-1].path)


def test_the_names_known_without_pytorch_are_those_of_the_modules() -> None:
    from sisod.losses.terms import ON_INPUT, ON_PROBS, REGION
    from sisod.networks.encoders.encoders import ENCODERS

    names = [name.partition("(")[0] for name in TERM_NAMES]
    assert sorted(names) == sorted([*ON_INPUT, *ON_PROBS, *REGION])
    assert set(recipe_parts.ENCODERS) == set(ENCODERS)
