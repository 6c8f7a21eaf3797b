"""Every mode, in images and volumes, against a loop over objects in float64: values and gradients."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers import mode_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sisod.losses import BalancedLoss, PlainLoss, SizeInvariantLoss, boxes_of, labels_of, parts_of
from sisod.losses.checks import warn_once

TERMS = ("bce", "mse", "l1", "focal(2)", "dice", "iou", "auc", "tversky(0.3,0.7)", "dice(squared=false)")
SHAPES = ((9, 11), (4, 5, 6))
IGNORED = 255
torch.set_num_threads(1)  # the tensors are small
some = settings(deadline=None, max_examples=12)


def draw(
    seed: int, mode: str, shape: tuple[int, ...], *, ignored: float = 0.0, n_classes: int = 4
) -> tuple[Tensor, Tensor]:
    """Logits and target of three images: crowded, with few objects, and with none."""
    rng = np.random.default_rng(seed)
    channels = {"binary": 1, "multilabel": 3, "multiclass": n_classes}[mode]
    logits = torch.from_numpy(rng.normal(size=(3, channels, *shape)) * 2)
    of_target = (3, *shape) if mode == "multiclass" else (3, channels, *shape)
    density = np.array([0.3, 0.05, 0.0]).reshape(3, *[1] * (len(of_target) - 1))
    is_salient = rng.random(of_target) < density
    if mode == "multiclass":
        target = torch.from_numpy(is_salient * rng.integers(1, n_classes, of_target))
    else:  # soft on both sides of one half
        soft = np.where(is_salient, rng.uniform(0.5, 1, of_target), rng.uniform(0, 0.49, of_target))
        target = torch.from_numpy(np.where(rng.random(of_target) < 0.5, is_salient, soft))
    return logits, torch.where(torch.from_numpy(rng.random(of_target) < ignored), IGNORED, target)


def differentiate(loss: Any, logits: Tensor) -> tuple[Tensor, Tensor]:
    """The values of the images, and the gradient of their mean."""
    leaf = logits.clone().requires_grad_()
    values = loss(leaf)
    (slope,) = torch.autograd.grad(values.mean() + 0 * leaf.sum(), leaf)
    return values.detach(), slope


def check(logits: Tensor, target: Tensor, term: str, **options: Any) -> None:
    kind = {key: options[key] for key in ("mode", "ignore_index")}
    image_weight = options["image_weight"]
    settings = {key: options[key] for key in ("parts", "min_area", "connectivity")}
    expected = differentiate(
        lambda x: mode_oracle.batch_losses(
            x, target, term=term, image_weight=image_weight, **kind, **settings
        ),
        logits,
    )
    if image_weight == 1:
        loss: Any = PlainLoss(term, "l1", weights=[1, 0], reduction="none", **kind)
        found: dict[str, Tensor] = {}
    else:
        loss = SizeInvariantLoss(term, reduction="none", **options)
        found = parts_of(target, **kind, **settings)
        torch.testing.assert_close(loss(logits, target), loss(logits, target, **found))
        assert SizeInvariantLoss(term, **options)(logits, target) == pytest.approx(
            loss(logits, target).mean().item(), rel=1e-12
        )
    ours = differentiate(lambda x: loss(x, target, **found), logits)
    torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("image_weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("parts", ["boxes", "cells"])
@pytest.mark.parametrize("mode", ["binary", "multilabel", "multiclass"])
@some
@given(
    seed=st.integers(0, 2**32),
    term=st.sampled_from(TERMS),
    shape=st.sampled_from(SHAPES),
    ignored=st.sampled_from([0.0, 0.2, 1.0]),
    min_area=st.sampled_from([0, 3, 0.05]),
    connectivity=st.sampled_from([4, 8]),
)
def test_every_mode_is_the_loop_over_objects(
    mode: str,
    parts: str,
    image_weight: float,
    seed: int,
    term: str,
    shape: Any,
    ignored: float,
    **objects: Any,
) -> None:
    logits, target = draw(seed, mode, shape, ignored=ignored)
    options = {"mode": mode, "parts": parts, "image_weight": image_weight, "ignore_index": IGNORED}
    check(logits, target, term, **options, **objects)


# --------------------------------------------------------------------------------------- properties


@pytest.mark.parametrize("loss", [SizeInvariantLoss, PlainLoss])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("from_probs", [False, True])
def test_two_classes_are_the_binary_loss_of_the_difference(
    loss: Any, shape: Any, from_probs: bool
) -> None:
    logits, target = draw(1, "multiclass", shape, ignored=0.1, n_classes=2)
    difference = logits[:, 1:] - logits[:, :1]
    maps = (logits.softmax(dim=1), difference.sigmoid()) if from_probs else (logits, difference)
    options: list[dict[str, Any]] = [{}]
    if loss is SizeInvariantLoss:
        options = [{"parts": parts, "image_weight": w} for parts in ("boxes", "cells") for w in (0, 0.4)]
    for each in options:
        each |= {"from_probs": from_probs, "ignore_index": IGNORED, "reduction": "none"}
        classes = loss(*TERMS, mode="multiclass", **each)(maps[0], target)
        binary = loss(*TERMS, **each)(maps[1], target[:, None])
        torch.testing.assert_close(classes, binary, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("parts", ["boxes", "cells"])
@pytest.mark.parametrize("shape", SHAPES)
def test_multilabel_is_the_mean_over_channels(parts: Any, shape: Any) -> None:
    logits, target = draw(2, "multilabel", shape, ignored=0.1)
    options: Any = {"parts": parts, "image_weight": 0.25, "ignore_index": IGNORED}
    both = SizeInvariantLoss(*TERMS, mode="multilabel", **options)(logits, target)
    binary = SizeInvariantLoss(*TERMS, **options)
    channels = [binary(logits[:, [c]], target[:, [c]]) for c in range(logits.shape[1])]
    torch.testing.assert_close(both, torch.stack(channels).mean(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("parts", ["boxes", "cells"])
@pytest.mark.parametrize("mode", ["binary", "multilabel", "multiclass"])
def test_a_volume_of_one_slice_is_the_image(mode: Any, parts: Any) -> None:
    logits, target = draw(3, mode, (12, 13), ignored=0.1)
    loss = SizeInvariantLoss(*TERMS, mode=mode, parts=parts, image_weight=0.5, ignore_index=IGNORED)
    flat, deep = loss(logits, target), loss(logits.unsqueeze(-3), target.unsqueeze(-3))
    torch.testing.assert_close(deep, flat, rtol=1e-12, atol=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_object_is_the_plain_loss_in_its_class(shape: Any) -> None:
    logits, _ = draw(4, "multiclass", shape)
    target = torch.zeros(3, *shape, dtype=torch.long)
    target[0][(slice(1, 3),) * len(shape)] = 2
    target[1][(slice(2, 4),) * len(shape)] = 1
    target[2] = 3
    cells = SizeInvariantLoss(*TERMS, mode="multiclass", parts="cells")(logits, target)
    torch.testing.assert_close(cells, PlainLoss(*TERMS, mode="multiclass")(logits, target))
    dice = PlainLoss("dice", mode="multiclass", reduction="none")(logits, target)
    alone = PlainLoss("dice", from_probs=True)(
        logits.softmax(dim=1)[:1, 2:3], (target[:1, None] == 2).double()
    )
    torch.testing.assert_close(dice[0], alone)


@pytest.mark.parametrize("mode", ["binary", "multiclass"])
@pytest.mark.parametrize("parts", ["boxes", "cells"])
def test_two_hundred_objects_of_one_pixel(mode: Any, parts: Any) -> None:
    """By hand: every object has p and is alone in its box; in its cell of nine pixels too."""
    target = torch.zeros(1, 30, 60, dtype=torch.long)
    target[0, 1::3, 1::3] = 1
    p = torch.rand(30, 60, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    logits = torch.stack([0 * p, p.logit()])[None] if mode == "multiclass" else p.logit()[None]
    at = p[1::3, 1::3]
    whole = p.square().unfold(0, 3, 3).unfold(1, 3, 3).sum(dim=(2, 3)) if parts == "cells" else at**2
    assert at.numel() == 200
    options: Any = {"mode": mode, "parts": parts, "min_area": 0}
    given_parts = parts_of(target, **options)
    loss = SizeInvariantLoss("dice", **options)(logits, target, **given_parts)
    torch.testing.assert_close(loss, (1 - 2 * at / (whole + 1)).mean(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("loss", [SizeInvariantLoss("bce", "dice"), PlainLoss("bce", "dice")])
def test_an_image_whose_pixels_are_all_ignored_adds_nothing(loss: Any) -> None:
    kind = type(loss)
    logits, target = draw(5, "multiclass", (6, 7))
    target[1] = IGNORED
    x = logits.requires_grad_()
    values = kind("bce", "dice", mode="multiclass", ignore_index=IGNORED, reduction="none")(x, target)
    (slope,) = torch.autograd.grad(values.sum(), x)
    assert values[1] == 0
    assert not slope[1].any()
    assert slope[0].any()


def test_region_terms_alone_on_an_empty_mask_warn() -> None:
    """They are one, without a gradient; with a separable term there is one, and no warning."""
    logits = torch.randn(1, 1, 8, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    empty = torch.zeros(1, 1, 8, 8)
    warn_once.cache_clear()
    with pytest.warns(UserWarning, match="this image gives no gradient; add a separable term"):
        value = PlainLoss("dice")(logits, empty)
    assert value == 1
    assert not torch.autograd.grad(value, logits)[0].any()
    warn_once.cache_clear()  # here warnings are errors
    (slope,) = torch.autograd.grad(PlainLoss("bce", "dice")(logits, empty), logits)
    assert (slope > 0).all()


@pytest.mark.parametrize("parts", ["boxes", "cells"])
@pytest.mark.parametrize(("mode", "shape"), [("multilabel", (3, 4)), ("multiclass", (2, 2, 3))])
@pytest.mark.slow
def test_second_order(mode: Any, shape: Any, parts: Any) -> None:
    logits, target = draw(6, mode, shape, ignored=0.1, n_classes=3)
    options: Any = {"mode": mode, "ignore_index": IGNORED, "min_area": 0}
    loss = SizeInvariantLoss("focal(2)", "dice", parts=parts, image_weight=0.3, **options)
    found = parts_of(target[:1], parts, **options)
    x = logits[:1].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, target[:1], **found), (x,))
    assert torch.autograd.gradgradcheck(lambda x: loss(x, target[:1], **found), (x,))


@pytest.mark.parametrize(
    ("mode", "parts"), [("binary", "cells"), ("multilabel", "boxes"), ("multiclass", "cells")]
)
@pytest.mark.slow
def test_compiles_without_a_graph_break(mode: Any, parts: Any) -> None:
    torch._dynamo.reset()
    for shape in SHAPES:
        logits, target = draw(7, mode, shape, ignored=0.1)
        loss = SizeInvariantLoss(
            "bce", "l1", "dice", mode=mode, parts=parts, image_weight=0.3, ignore_index=IGNORED
        )
        found = parts_of(target, parts, mode=mode, ignore_index=IGNORED)
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        x = logits.requires_grad_()
        ours, expected = compiled(x, target, **found), loss(x, target, **found)
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=0)
        slopes = [torch.autograd.grad(value, x)[0] for value in (ours, expected)]
        torch.testing.assert_close(*slopes, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", ["binary", "multilabel", "multiclass"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_and_memory_formats(mode: Any, dtype: torch.dtype) -> None:
    logits, target = draw(8, mode, (16, 20), ignored=0.1)
    loss = BalancedLoss(mode=mode, ignore_index=IGNORED)
    rounded = logits.to(dtype)
    expected = loss(rounded.double(), target)
    with torch.autocast("cpu", dtype=dtype):
        value = loss(rounded.to(memory_format=torch.channels_last), target)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=0)
    strided = torch.stack([logits, logits], dim=-1)[..., 0]
    assert not strided.is_contiguous()
    torch.testing.assert_close(loss(strided, target), loss(logits, target))


# ------------------------------------------------------------------------------------ finding parts


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 2**32),
    st.sampled_from([(7, 9), (3, 5, 6)]),
    st.sampled_from([4, 8]),
    st.sampled_from([0, 2, 0.05]),
)
def test_boxes_and_cells_are_those_of_scipy(
    seed: int, shape: Any, connectivity: Any, min_area: Any
) -> None:
    _, target = draw(seed, "multiclass", shape)
    found = parts_of(target, "cells", mode="multiclass", connectivity=connectivity, min_area=min_area)
    rows = []
    for image, classes in enumerate(target.numpy()):
        objects = mode_oracle.find_objects(classes, connectivity, min_area)
        cells = mode_oracle.part_masks(objects, "cells")
        for k, (label, pixels) in enumerate(objects):
            points = np.argwhere(pixels)
            rows.append([image, label, *points.min(axis=0), *points.max(axis=0) + 1])
            assert np.array_equal(found["labels"][image].numpy() == k, cells[k])
    assert found["boxes"].tolist() == [[int(value) for value in row] for row in rows]


def test_a_single_volume_needs_its_number_of_dimensions() -> None:
    volume = torch.zeros(3, 4, 5)
    volume[0, 1, 1] = volume[2, 3, 4] = 1
    assert boxes_of(volume, spatial_dims=3).tolist() == [[0, 0, 1, 1, 1, 2, 2], [0, 2, 3, 4, 3, 4, 5]]
    assert boxes_of(volume[None, None]).tolist() == boxes_of(volume, spatial_dims=3).tolist()
    assert len(boxes_of(volume)[0]) == 5  # three images
    assert labels_of(volume, spatial_dims=3).shape == (1, 3, 4, 5)
    assert boxes_of(volume[None].bool(), mode="multilabel").shape[1] == 6  # image, class, box
