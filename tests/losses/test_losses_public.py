"""The public interface of `sisod.losses`: names, signatures, the error without PyTorch, the examples."""

import runpy
import subprocess
import sys

import pytest
import torch
from draw_parts import PICTURE, draw
from helpers.paths import EXAMPLES
from helpers.signatures import parameters

from sisod.losses import PlainLoss, SizeInvariantLoss, tversky


def test_a_printed_loss_says_what_it_is() -> None:
    def own(logits: torch.Tensor, gt: torch.Tensor) -> torch.Tensor:
        return (logits - gt).abs()

    assert repr(SizeInvariantLoss("bce", "dice")) == "SizeInvariantLoss('bce', 'dice')"
    balanced = SizeInvariantLoss("bce", tversky(0.3, 0.7), parts="cells", image_weight=0.5)
    assert (
        repr(balanced) == "SizeInvariantLoss('bce', 'tversky(0.3,0.7)', parts='cells', image_weight=0.5)"
    )
    assert repr(PlainLoss(own, weights=[2])) == "PlainLoss(own, weights=[2])"
    assert repr(torch.nn.Sequential(balanced)) == f"Sequential(\n  (0): {balanced!r}\n)"


def test_signatures_are_those_of_the_design() -> None:
    assert parameters(SizeInvariantLoss) == (
        "terms, mode=binary, ignore_index=None, parts=boxes, image_weight=0.0, alpha=ratio, "
        "min_area=0.0002, connectivity=8, from_probs=False, weights=None, reduction=mean, "
        "check_parts=True, options"
    )
    for loss in (SizeInvariantLoss, PlainLoss):
        assert parameters(loss.forward) == "self, input, target, boxes=None, labels=None"


def test_without_torch_the_error_says_how_to_install_it() -> None:
    code = "import sys; sys.modules['torch'] = None; import sisod; import sisod.losses"
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    last = run.stderr.strip().splitlines()[-1]
    assert last == (
        "sisod.common.exceptions.MissingExtraError: "
        "sisod.losses needs PyTorch; install it with: pip install 'sisod[torch]'"
    )


@pytest.mark.parametrize(
    "name",
    [
        *("loss_in_a_loop", "loss_over_cells", "loss_in_monai_style", "loss_in_volumes"),
        pytest.param("loss_over_classes", marks=pytest.mark.needs("transformers")),
    ],
)
def test_examples_train(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    losses = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](n_epochs=4)
    assert len(losses) == 4
    assert losses[-1] < 0.97 * losses[0]


@pytest.mark.slow
def test_example_in_lightning_trains() -> None:
    """In a process of its own: Lightning's warnings are not ours."""
    run = subprocess.run(  # noqa: S603
        [sys.executable, str(EXAMPLES / "loss_in_lightning.py")],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    losses = [float(line.split()[-1]) for line in run.stdout.splitlines() if line.startswith("epoch")]
    assert len(losses) == 4
    assert losses[-1] < 0.97 * losses[0]
    assert "probabilities" not in run.stderr


def test_the_drawing_is_what_the_example_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = runpy.run_path(str(EXAMPLES / "draw_weight_map.py"))
    written = (EXAMPLES.parent / "docs" / "weight_map.svg").read_text()
    assert example["draw"](example["make_mask"]()) == written


def test_the_picture_of_the_parts_is_what_the_tool_draws() -> None:
    assert PICTURE.read_text() == draw()
