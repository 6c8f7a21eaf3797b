"""The recipes are those of the paper, and an invalid one is refused in one sentence."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="extra torch is not installed")

from sisod.common.errors import InputError, UsageError
from sisod.networks import names as network_names
from sisod.training.recipe import BALANCED_LOSS, find_recipe, names, read_recipe, write_toml
from sisod.training.recipe_parts import SGD, Adam, LossPart

FIVE = ("edn", "icon", "gatenet", "ldf", "poolnet")
LITE = (*FIVE, "fpn")  # have a recipe for a CPU
# the paper's appendix: optimiser, rate, decay, batch, accumulation, epochs or steps
PAPER = {
    "edn": ("adam", 5e-5, 1e-4, 36, 1, 100),
    "icon": ("sgd", 1e-2, 1e-4, 36, 1, 100),
    "gatenet": ("sgd", 1e-3, 5e-4, 12, 1, 100_000),
    "ldf": ("sgd", 5e-2, 5e-4, 32, 1, 40),
    "poolnet": ("adam", 5e-5, 5e-4, 1, 10, 24),
}
TERMS = {"edn": ("bce", "dice"), "icon": ("bce", "iou"), "ldf": ("bce", "iou")}


def edited(tmp_path: Path, old: str, new: str) -> Path:
    text = Path(find_recipe.__code__.co_filename).with_name("recipes").joinpath("edn.toml").read_text()
    assert old in text
    path = tmp_path / "edn.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_there_is_one_for_every_network_and_one_for_a_cpu() -> None:
    assert set(names()) == {*network_names(), *(f"{name}-lite" for name in LITE)}


@pytest.mark.parametrize("name", FIVE)
def test_the_five_are_the_appendix(name: str) -> None:
    recipe = find_recipe(name)
    train, optimizer = recipe.train, recipe.optimizer
    found = (optimizer.name, optimizer.lr, optimizer.weight_decay, train.batch, train.accumulate)
    assert (*found, train.epochs or train.steps) == PAPER[name]
    assert recipe.data.size == 384
    assert recipe.data.flip == 0.5
    assert (recipe.network.name, recipe.network.encoder) == (name, "resnet50")
    assert recipe.loss.terms == TERMS.get(name, ("bce",))
    assert (recipe.loss.alpha, recipe.loss.normalize, recipe.loss.warmup_epochs) == ("ratio", True, 0)
    if isinstance(optimizer, SGD):
        assert optimizer.momentum == 0.9
    assert recipe.schedule.name == {
        "edn": "poly", "icon": "triangle", "gatenet": "poly", "ldf": "triangle", "poolnet": "drop"
    }[name]  # fmt: skip


def test_edn_has_the_betas_of_the_appendix() -> None:
    optimizer = find_recipe("edn").optimizer
    assert isinstance(optimizer, Adam)
    assert optimizer.betas == (0.9, 0.99)


@pytest.mark.parametrize("name", FIVE)
def test_the_lite_ones_differ_from_the_paper_in_what_a_cpu_needs(name: str) -> None:
    lite, full = find_recipe(f"{name}-lite"), find_recipe(name)
    assert lite.network.encoder == "efficientnet_lite0"
    assert lite.data.size == 160
    assert lite.loss == full.loss


@pytest.mark.parametrize("name", names())
def test_written_and_read_again_is_the_same(name: str) -> None:
    recipe = find_recipe(name, ["loss.alpha=0.5"])
    assert read_recipe(tomllib.loads(write_toml(recipe)), name=name, source="x") == recipe


@pytest.mark.parametrize("name", names())
def test_the_balanced_loss_is_the_same_in_every_recipe(name: str) -> None:
    recipe = find_recipe(name)
    balanced = LossPart(("bce", "tversky(0.3,0.7)"), parts="cells", whole=0.5)
    expected = replace(balanced, warmup_epochs=recipe.loss.warmup_epochs)
    assert find_recipe(name, BALANCED_LOSS) == replace(recipe, loss=expected)


def test_settings_replace_values() -> None:
    recipe = find_recipe(
        "gatenet",
        ["optimizer.lr=1e-4", "train.epochs=2", 'loss.terms=["l1"]', "loss.alpha=union"],
    )
    assert recipe.optimizer.lr == 1e-4
    assert (recipe.train.epochs, recipe.train.steps) == (2, 0)  # one stands for the other
    assert (recipe.loss.terms, recipe.loss.alpha) == (("l1",), "union")
    assert find_recipe("gatenet", ["train.batch=12"]) == replace(find_recipe("gatenet"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "lr = 5e-5",
            "learning_rate = 5e-5",
            "edn.toml: unknown key 'learning_rate' in [optimizer]; "
            "expected betas, lr, name, weight_decay",
        ),
        ("lr = 5e-5", "", "edn.toml: [optimizer] needs lr, a number"),
        ("lr = 5e-5", "lr = '5e-5'", "edn.toml: lr in [optimizer] must be a number, got '5e-5'"),
        ("lr = 5e-5", "lr = -1", "edn.toml: [optimizer] lr must be 0 or more, got -1"),
        (
            "[0.9, 0.99]",
            "[0.9]",
            "edn.toml: betas in [optimizer] must be a list of 2 numbers, got [0.9]",
        ),
        (
            'name = "adam"',
            'name = "lion"',
            "edn.toml: name in [optimizer] must be one of adam, adamw, sgd, got 'lion'",
        ),
        ("batch = 36", "batch = 36.5", "edn.toml: batch in [train] must be a whole number, got 36.5"),
        ("batch = 36", "batch = true", "edn.toml: batch in [train] must be a whole number, got True"),
        ("batch = 36", "batch = 0", "edn.toml: [train] batch must be at least 1, got 0"),
        (
            "epochs = 100",
            "epochs = 100\nsteps = 5",
            "edn.toml: [train] exactly one of epochs and steps must be above 0",
        ),
        (
            "normalize = true",
            'normalize = "yes"',
            "edn.toml: normalize in [loss] must be true or false, got 'yes'",
        ),
        (
            'alpha = "ratio"',
            'alpha = "ration"',
            "edn.toml: [loss] alpha must be 'ratio', 'union' or a number from 0 on, got 'ration'",
        ),
        (
            'alpha = "ratio"',
            "alpha = [1]",
            "edn.toml: alpha in [loss] must be text in quotes or a number, got [1]",
        ),
        (
            'name = "poly"',
            'name = "linear"',
            "edn.toml: name in [schedule] must be one of constant, poly, cosine, triangle, drop, "
            "got 'linear'",
        ),
        (
            "[schedule]",
            "[scheduler]",
            "edn.toml: unknown section [scheduler]; expected [data], [labels], [loss], [network], "
            "[optimizer], [schedule], [train]",
        ),
        ("[data]\nsize = 384", "[schedule]", "edn.toml is not a TOML file: "),
        (
            "[train]",
            "[labels]\nepochs = 3\n[train]",
            "edn.toml: [labels] is for networks that learn body and detail; edn learns masks only",
        ),
    ],
)  # fmt: skip
def test_errors(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match="^" + re.escape(message)):
        find_recipe(edited(tmp_path, old, new))


def test_unknown_names_and_settings() -> None:
    with pytest.raises(UsageError, match="unknown recipe 'edm'; did you mean 'edn'"):
        find_recipe("edm")
    with pytest.raises(InputError, match=r"recipe 'no.toml' cannot be read: No such file"):
        find_recipe("no.toml")
    for wrong in ("lr=1", "optimizer.lr", "=1"):
        with pytest.raises(UsageError, match=r"--set takes section\.key=value, like optimizer\.lr=1e-4"):
            find_recipe("edn", [wrong])
    message = "edn.toml --set optimizer.rate=1: unknown key 'rate' in [optimizer]; expected betas, lr"
    with pytest.raises(InputError, match=re.escape(message)):
        find_recipe("edn", ["optimizer.rate=1"])
