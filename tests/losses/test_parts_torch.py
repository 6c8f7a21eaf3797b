"""Losses over boxes and cells inside PyTorch, at their limits, and the weights of pixels."""

import copy
import pickle
from typing import Any, cast

import pytest
import torch
from helpers.ddp_worker import make_batch
from helpers.loss_maps import loss_maps
from torch import Tensor
from torch.autograd import functional

from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of, labels_of, parts_of, weight_map

ALL = ("bce", "mse", "l1", "focal(2)", "dice", "iou", "auc", "tversky(0.3,0.7)")
KINDS: list[Any] = [
    {"parts": "boxes"},
    {"parts": "cells"},
    {"parts": "cells", "image_weight": 0.5},
    {"parts": "boxes", "image_weight": 0.5},
    {"parts": "boxes", "image_weight": 0.5, "gamma": 0.5},
]
kinds = pytest.mark.parametrize(
    "options", KINDS, ids=lambda options: "-".join(map(str, options.values()))
)
torch.set_num_threads(1)  # the tensors are small
# PyTorch's own forward mode, when it is first used
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated")


def batch(n_maps: int = 1) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(0)
    _, gt = make_batch()
    return [torch.randn(gt.shape, generator=generator).requires_grad_() for _ in range(n_maps)], gt


def given(gt: Tensor, options: Any) -> dict[str, Tensor]:
    """What a data loader's workers find."""
    found = {"boxes": boxes_of(gt)}
    return found if options["parts"] == "boxes" else found | {"labels": labels_of(gt)}


# --------------------------------------------------------------------------- derivatives, transforms


def small() -> tuple[Tensor, Tensor]:
    gt = torch.zeros(2, 4, 5, dtype=torch.float64)
    gt[0, 0:2, 0:2] = gt[0, 1, 2] = gt[0, 3, 4] = gt[1, 1:4, 3] = gt[1, 2, 1:4] = 1
    logits = torch.randn(gt.shape, dtype=gt.dtype, generator=torch.Generator().manual_seed(5))
    return logits, gt


@kinds
def test_transforms_agree_with_autograd(options: Any) -> None:
    logits, gt = small()
    loss, found = SizeInvariantLoss("bce", "dice", **options), given(gt, options)
    func = cast("Any", torch.func)

    def value(x: Tensor) -> Any:
        return loss(x, gt, **found)

    slope = cast("Any", functional).jacobian(value, logits)
    for ours, expected in [
        (func.grad(value)(logits), slope),
        (func.jvp(value, (logits,), (slope,)), (value(logits), slope.square().sum())),
        (func.hessian(value)(logits), cast("Any", functional).hessian(value, logits)),
        (func.vmap(value)(torch.stack([logits, -logits])), torch.stack([value(logits), value(-logits)])),
    ]:
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-12)


def test_labels_cannot_be_mapped_over() -> None:
    logits, gt = small()
    loss = SizeInvariantLoss("bce", parts="cells")
    with pytest.raises(ValueError, match=r"vmap maps over labels, but images differ in their number of"):
        torch.func.vmap(loss, in_dims=(0, 0, None, 0))(
            logits[:, None], gt[:, None], boxes_of(gt), labels_of(gt)[:, None]
        )
    with pytest.raises(ValueError, match=r"vmap maps over the target, but.*found outside"):
        torch.func.vmap(loss)(logits[:, None], gt[:, None])


# ------------------------------------------------------------------------ precision, graphs, devices


@pytest.mark.slow
def test_compiled_with_labels_only_says_what_to_do() -> None:
    torch._dynamo.reset()
    maps, gt = batch()
    compiled = torch.compile(
        SizeInvariantLoss("bce", parts="cells"), fullgraph=True, backend="aot_eager"
    )
    with pytest.raises(Exception, match=r"give boxes and labels"):
        compiled(maps, gt, labels=labels_of(gt))


@kinds
def test_no_value_is_read_from_a_device(options: Any) -> None:
    """Tensors on the device `meta` have no values: whatever asked for one would raise."""
    maps, gt = batch(2)
    unreadable = [map_.detach().to("meta").requires_grad_() for map_ in maps]
    loss = SizeInvariantLoss(*ALL, **options)
    value = loss(unreadable, gt.to("meta"), **given(gt, options))
    assert value.device.type == "meta"
    assert torch.autograd.grad(value, unreadable)[0].shape == gt.shape


@kinds
def test_plain_operations_give_the_same(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a device, and inside transforms."""
    maps, gt = batch()
    loss, found = SizeInvariantLoss(*ALL, **options), given(gt, options)
    expected = loss(maps, gt, **found)
    (slope,) = torch.autograd.grad(expected, maps)
    for module in ("parts", "loss"):
        monkeypatch.setattr(f"sisod.losses.{module}.can_use_custom_autograd", lambda _: False)
    value = loss(maps, gt, **found)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, maps)[0], slope, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"parts": "cells", "image_weight": 0.5}], ids=str)
def test_large_maps_are_read_in_blocks(options: Any) -> None:
    """The blocks of 65,536 pixels are joined at their ends, also within rows and runs."""
    torch.manual_seed(0)
    gt = torch.zeros(3, 1, 211, 307)
    gt[0, 0, 5:9, 7:200] = gt[0, 0, 190:210, 300:] = gt[2, 0, 60:150, 40:41] = 1
    maps = torch.randn(gt.shape, requires_grad=True)
    loss = SizeInvariantLoss("bce", "dice", "iou", **options)
    value = loss(maps, gt)
    exact = loss(maps.double(), gt.double(), **parts_of(gt, loss.weighting.parts))
    slopes = [torch.autograd.grad(result, maps)[0] for result in (value, exact)]
    one_by_one = [loss(maps[i : i + 1], gt[i : i + 1]) for i in range(3)]
    torch.testing.assert_close(value.double(), exact, rtol=1e-6, atol=0)
    torch.testing.assert_close(value, torch.stack(one_by_one).mean(), rtol=1e-6, atol=0)
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-5, atol=1e-9)
    labels = {"labels": labels_of(gt)} if options else {}
    weight = weight_map(boxes_of(gt), gt.shape, **options, **labels)
    pixels = torch.nn.functional.binary_cross_entropy_with_logits(maps, gt, weight, reduction="sum")
    torch.testing.assert_close(SizeInvariantLoss("bce", **options)(maps, gt), pixels / 3)


@kinds
def test_memory_formats_copies_and_pickles(options: Any) -> None:
    maps, gt = batch(3)
    loss, found = SizeInvariantLoss("bce", "dice", **options), given(gt, options)
    expected = loss(maps, gt, **found)
    stack = torch.cat(maps, dim=1).to(memory_format=torch.channels_last)
    torch.testing.assert_close(loss(torch.split(stack, 1, dim=1), gt, **found), expected)
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):  # noqa: S301
        assert other(maps, gt, **found) == expected


# --------------------------------------------------------------------------------------- at the limits


@kinds
@pytest.mark.filterwarnings("ignore:the target of an image is empty")
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_empty_and_full_masks(options: Any, value: float) -> None:
    """Empty: separable terms are plain, region terms `image_weight` times plain. Full: plain."""
    maps, _ = batch()
    gt = torch.full_like(maps[0], value)
    image_weight = options.get("image_weight", 0.0)
    separable, region = ("bce", "l1", "focal(2)"), ("dice", "iou", "tversky(0.3,0.7)")
    ours = SizeInvariantLoss(*separable, **options)(maps, gt)
    torch.testing.assert_close(ours, PlainLoss(*separable)(maps, gt))
    ours = SizeInvariantLoss(*region, **options)(maps, gt)
    torch.testing.assert_close(ours, PlainLoss(*region)(maps, gt) * (1.0 if value else image_weight))
    assert SizeInvariantLoss("auc", **options)(maps, gt) == 0


# ---------------------------------------------------------------------------------------- weight map


@kinds
def test_the_weight_map_makes_the_loss(options: Any) -> None:
    maps, gt = batch()
    found = given(gt, options)
    weight = weight_map(found["boxes"], gt.shape, labels=found.get("labels"), **options)
    torch.testing.assert_close(weight.sum(dim=(1, 2, 3)), torch.ones(len(gt)))
    pixels = (maps[0].sigmoid() - gt).abs()
    loss = SizeInvariantLoss("l1", **options)(maps, gt, **found)
    torch.testing.assert_close((weight * pixels).sum() / len(gt), loss)


# ------------------------------------------------------------------------- what must never change


def test_the_loss_over_boxes_has_not_changed() -> None:
    """Value and gradient as computed before there were other parts."""
    logits, gt = (torch.from_numpy(array) for array in loss_maps())
    x = logits.requires_grad_()
    loss = SizeInvariantLoss("bce", "mse", "l1", "dice", "iou", "auc")(x, gt)
    loss.backward()
    assert x.grad is not None
    assert loss.item() == pytest.approx(2.914402171936, abs=1e-12)
    assert x.grad.abs().sum().item() == pytest.approx(1.1931169694017378, rel=1e-12)
    assert x.grad[0, 0, 3, 4].item() == pytest.approx(-0.0015937936825637722, rel=1e-12)
