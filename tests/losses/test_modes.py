"""Every mode, in images and volumes, against a loop over objects in float64: values and gradients."""

from typing import Any

import numpy as np
import pytest
import torch
from helpers import mode_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sisod.losses import PlainLoss, SizeInvariantLoss, parts_of

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
