"""Losses over boxes, cells and blobs inside PyTorch, at their limits, and the weights of pixels."""

import copy
import pickle
from typing import Any, cast

import pytest
import torch
from helpers.ddp_worker import make_batch, make_network
from helpers.loss_maps import loss_maps
from torch import Tensor
from torch.autograd import functional

from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of, labels_of, parts_of, weight_map

ALL = ("bce", "mse", "l1", "focal(2)", "dice", "iou", "auc", "tversky(0.3,0.7)")
KINDS: list[Any] = [
    {"parts": "boxes"},
    {"parts": "cells"},
    {"parts": "cells", "image_weight": 0.5},
    {"parts": "blobs"},
    {"parts": "blobs", "image_weight": 0.3},
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
    return found if options["parts"] == "boxes" else found | {"labels": labels_of(gt, options["parts"])}


# --------------------------------------------------------------------------- derivatives, transforms


def small() -> tuple[Tensor, Tensor]:
    gt = torch.zeros(2, 4, 5, dtype=torch.float64)
    gt[0, 0:2, 0:2] = gt[0, 1, 2] = gt[0, 3, 4] = gt[1, 1:4, 3] = gt[1, 2, 1:4] = 1
    logits = torch.randn(gt.shape, dtype=gt.dtype, generator=torch.Generator().manual_seed(5))
    return logits, gt


@kinds
@pytest.mark.parametrize("term", ["focal(2)", "dice", "auc", "tversky(0.3,0.7)"])
@pytest.mark.slow
def test_second_order_is_right(term: str, options: Any) -> None:
    logits, gt = small()
    loss, found = SizeInvariantLoss(term, **options), given(gt, options)
    x = logits.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: loss(x, gt, **found), (x,), check_forward_ad=True, check_batched_grad=True
    )
    assert torch.autograd.gradgradcheck(lambda x: loss(x, gt, **found), (x,))


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


@kinds
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_sums_in_float32(options: Any, dtype: torch.dtype) -> None:
    maps, gt = batch()
    loss, found = SizeInvariantLoss(*ALL, **options), given(gt, options)
    with torch.autocast("cpu", dtype=dtype):
        rounded = maps[0].to(dtype).detach().requires_grad_()
        value = loss(rounded, gt, **found)
        value.backward()
    exact = rounded.detach().double().requires_grad_()
    expected = loss(exact, gt.double(), **found)
    expected.backward()
    assert value.dtype == torch.float32
    assert rounded.grad is not None
    assert exact.grad is not None
    torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(rounded.grad.double(), exact.grad, rtol=8e-3, atol=7e-8)


@pytest.mark.parametrize(
    "options", [KINDS[0], KINDS[2], KINDS[4], KINDS[6]], ids=["plain", "cells", "blobs", "boxes"]
)
@pytest.mark.slow
def test_compiles_without_a_graph_break(options: Any) -> None:
    torch._dynamo.reset()
    loss = SizeInvariantLoss("bce", "focal(2)", "dice", "tversky(0.3,0.7)", **options)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    maps, gt = batch(2)
    found = given(gt, options)
    ours, expected = compiled(maps, gt, **found), loss(maps, gt, **found)
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(
        torch.autograd.grad(ours, maps), torch.autograd.grad(expected, maps), rtol=1e-4, atol=1e-8
    )


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


@kinds
def test_accumulating_two_halves_equals_one_step(options: Any) -> None:
    images, gt = make_batch(8)
    whole, halves = make_network(), make_network()
    loss = SizeInvariantLoss("bce", "dice", **options)
    loss(whole(images), gt).backward()
    for half in (slice(0, 4), slice(4, 8)):
        (loss(halves(images[half]), gt[half]) / 2).backward()
    for one, other in zip(whole.parameters(), halves.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


# --------------------------------------------------------------------------------------- at the limits


@pytest.mark.parametrize("options", KINDS[1:5], ids=["cells", "cells .5", "blobs", "blobs .3"])
def test_five_hundred_objects(options: Any) -> None:
    """Against a mask per part, in float64."""
    gt = torch.zeros(2, 75, 72, dtype=torch.float64)
    gt[0, 1::3, 1::3] = 1  # 25 x 24 objects of a pixel
    gt[1, 10:30, 10:30] = gt[1, 50:60, 50:70] = 1
    labels = labels_of(gt, options["parts"], min_area=0)
    assert int(labels.max()) == 599
    p = torch.rand(gt.shape, dtype=gt.dtype, generator=torch.Generator().manual_seed(0))
    values = []
    for image in range(2):
        ids = range(int(labels[image].max()) + 1)
        cells = options["parts"] == "cells"
        masks = [(labels[image] == k) | ((labels[image] == -1) & (not cells)) for k in ids]
        of_parts = [_dice(p[image][mask], gt[image][mask]) for mask in masks]
        image_weight = options.get("image_weight", 0.0)
        values.append(
            (1 - image_weight) * sum(of_parts) / len(ids) + image_weight * _dice(p[image], gt[image])
        )
    loss = SizeInvariantLoss("dice", from_probs=True, **options)
    torch.testing.assert_close(loss(p, gt, labels=labels), sum(values) / 2, rtol=1e-9, atol=0)


def _dice(p: Tensor, g: Tensor) -> Tensor:
    return 1 - 2 * (p * g).sum() / (p.square().sum() + g.square().sum())


@pytest.mark.parametrize("parts", ["cells", "blobs"])
def test_a_label_without_a_pixel_does_not_count(parts: Any) -> None:
    """As after a crop that removed the second of three objects."""
    maps, gt = batch()
    loss = SizeInvariantLoss(*ALL, parts=parts, image_weight=0.25)
    labels = labels_of(gt, parts)
    with_gap = torch.where(labels >= 1, labels + 1, labels)
    assert set(with_gap[-1].flatten().tolist()) - {-1} == {0, 2, 3}
    torch.testing.assert_close(loss(maps, gt, labels=with_gap), loss(maps, gt, labels=labels))
    boxes = torch.cat([boxes_of(gt)] * 2).sort(dim=0).values  # more boxes than labels
    torch.testing.assert_close(
        weight_map(boxes, gt.shape, parts=parts, labels=with_gap),
        weight_map(None, gt.shape, parts=parts, labels=labels),
    )


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


@kinds
def test_maps_of_body_and_detail_stay_plain(options: Any) -> None:
    maps, mask = batch(6)
    generator = torch.Generator().manual_seed(5)
    gt = {"mask": mask} | {k: torch.rand(mask.shape, generator=generator) for k in ("body", "detail")}
    found = given(mask, options)
    plain = PlainLoss("bce")
    expected = SizeInvariantLoss("bce", "iou", **options)(maps[::3], mask, **found)
    expected = expected + plain(maps[1::3], gt["body"]) + plain(maps[2::3], gt["detail"])
    loss = SizeInvariantLoss.for_network("ldf", **options)
    torch.testing.assert_close(loss(maps, gt, **found), expected / 2)
    torch.testing.assert_close(loss(maps, gt), expected / 2)


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
