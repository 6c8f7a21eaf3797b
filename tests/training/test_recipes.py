"""The recipes are those of the paper, and an invalid one is refused in one sentence."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("lightning", reason="extra torch is not installed")

from helpers.messages import check_one_sentence

from sisod.common.exceptions import InputError, UsageError
from sisod.losses.terms import ON_INPUT, ON_PROBS, REGION
from sisod.networks import names as network_names
from sisod.networks.encoders import ENCODERS
from sisod.scoring.loss_options import TERM_NAMES
from sisod.training import recipe_parts
from sisod.training.recipe import BALANCED_LOSS, find_recipe, names, read_recipe, write_toml
from sisod.training.recipe_parts import SGD, LossPart

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
    elif name == "edn":
        assert optimizer.betas == (0.9, 0.99)
    assert recipe.schedule.name == {
        "edn": "poly", "icon": "triangle", "gatenet": "poly", "ldf": "triangle", "poolnet": "drop"
    }[name]  # fmt: skip


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
    balanced = LossPart(("bce", "tversky(0.3,0.7)"), parts="cells", image_weight=0.5)
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


ERRORS = {
    # what replaces "lr = 5e-5" and so on, and the sentence
    ("lr = 5e-5", "learning_rate = 5e-5"): "[optimizer]: unknown key 'learning_rate'; expected betas,",
    ("lr = 5e-5", "lr = '5e-5'"): "[optimizer]: lr: expected float, got str",
    ("lr = 5e-5", "lr = -1"): "[optimizer]: lr: expected float >= 0.0",
    ('name = "adam"', 'name = "lion"'): "[optimizer]: name: expected 'adam' or 'adamw' or 'sgd', got",
    ("batch = 36", "batch = 36\nema = 1"): "[train]: ema: expected float <= 0.999999",
    ("batch = 36", "batch = 36\nema = nan"): "[train]: ema: expected float >= 0.0",
    ("batch = 36", "batch = 36\nprecision = '64'"): "[train]: precision: expected '32-true' or",
    ("epochs = 100", "epochs = 1\nsteps = 5"): "[train]: exactly one of epochs and steps",
    ('alpha = "ratio"', 'alpha = "ration"'): "[loss]: alpha must be 'ratio', 'union'",
    ('"bce", "dice"', '"bcee"'): "[loss]: unknown term 'bcee'; did you mean 'bce'?",
    ('name = "edn"', 'name = "endn"'): "[network]: unknown network 'endn'; did you mean 'edn'?",
    ('name = "edn"', ""): "[network]: needs a name or a factory",
    ("[schedule]", "[scheduler]"): "unknown section [scheduler]; expected [data], [labels],",
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), ERRORS)
def test_errors_name_file_section_and_key(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(InputError, match=r"^edn\.toml.*" + re.escape(ERRORS[old, new])) as caught:
        find_recipe(edited(tmp_path, old, new))
    check_one_sentence(str(caught.value))


def test_unknown_names_and_settings() -> None:
    with pytest.raises(UsageError, match="unknown recipe 'edm'; did you mean 'edn'"):
        find_recipe("edm")
    with pytest.raises(InputError, match=r"recipe 'no.toml' cannot be read: No such file"):
        find_recipe("no.toml")
    message = "edn.toml --set optimizer.rate=1: [optimizer]: unknown key 'rate'; expected betas, lr"
    with pytest.raises(InputError, match=re.escape(message)):
        find_recipe("edn", ["optimizer.rate=1"])
    for wrong in (
        *("", "=", ".", "a.b", "a.b=1", ".=1", "train.=1", ".batch=1", "train=1", "train.batch.x=1"),
        *("network.encoder_weights=\udcff", "x" * 10_000 + ".y=1", "a\nb.c=1", "train.a\0b=1"),
    ):
        with pytest.raises(InputError) as caught:
            find_recipe("edn", [wrong])
        check_one_sentence(str(caught.value))


def test_the_names_known_without_pytorch_are_those_of_the_modules() -> None:
    term_names = [name.partition("(")[0] for name in TERM_NAMES]
    assert sorted(term_names) == sorted([*ON_INPUT, *ON_PROBS, *REGION])
    assert set(recipe_parts.ENCODERS) == set(ENCODERS)
