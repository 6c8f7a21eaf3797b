"""The losses inside PyTorch: autocast, compilation, devices, data parallelism, memory formats."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.ddp_worker import LOSSES, make_batch, make_network
from torch import Tensor, nn

from sisod import networks
from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of, collate_boxes, weight_map
from sisod.losses.loss import DecoupledLoss
from sisod.losses.terms import network_targets

ALL = ("bce", "mse", "l1", "focal(2)", "dice", "iou", "auc", "tversky(0.3,0.7)")
torch.set_num_threads(1)  # the tensors are small


def batch(n_maps: int = 2, *, seed: int = 0) -> tuple[list[Tensor], Tensor, Tensor]:
    """Maps that want gradients, truth and boxes."""
    generator = torch.Generator().manual_seed(seed)
    _, gt = make_batch()
    maps = [torch.randn(gt.shape, generator=generator).requires_grad_() for _ in range(n_maps)]
    return maps, gt, boxes_of(gt)


def slopes(loss: Any, maps: list[Tensor], *arguments: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
    value = loss(maps, *arguments)
    return value.detach(), torch.autograd.grad(value, maps)


# --------------------------------------------------------------------------------------- precision


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("inside", [True, False])
def test_autocast_sums_in_float32(dtype: torch.dtype, inside: bool) -> None:
    """The maps are rounded, the sums are not: equal to float64 on the rounded maps, to 1e-5."""
    maps, gt, boxes = batch(1)
    loss = SizeInvariantLoss(*ALL)
    with torch.autocast("cpu", dtype=dtype):
        assert torch.mm(gt[0, 0], gt[0, 0]).dtype == dtype  # autocast is on
        rounded = maps[0].to(dtype).detach().requires_grad_()
        value = loss(rounded, gt, boxes)
        if inside:
            value.backward()
    if not inside:
        value.backward()
    exact = rounded.detach().double().requires_grad_()
    expected = loss(exact, gt, boxes)
    expected.backward()
    assert value.dtype == torch.float32
    assert rounded.grad is not None
    assert exact.grad is not None
    assert rounded.grad.dtype == dtype
    torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=0)
    # the gradient itself is rounded to 8 or 11 bits, and to steps of 6e-8 in float16
    torch.testing.assert_close(rounded.grad.double(), exact.grad, rtol=8e-3, atol=7e-8)


def test_probabilities_under_autocast() -> None:
    maps, gt, boxes = batch(1)
    probs = maps[0].detach().sigmoid()
    loss = SizeInvariantLoss("bce", "dice", from_probs=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = loss(probs, gt, boxes)
    torch.testing.assert_close(found, loss(probs, gt, boxes))


# ------------------------------------------------------------------------------ graphs and devices


@pytest.mark.slow
def test_compiles_without_a_graph_break() -> None:
    loss = SizeInvariantLoss("bce", "l1", "dice", "auc")
    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for seed in range(2):
        maps, gt, boxes = batch(seed=seed)
        boxes = boxes[seed:]  # another number of boxes
        value, gradients = slopes(compiled, maps, gt, boxes)
        expected, expected_gradients = slopes(loss, maps, gt, boxes)
        torch.testing.assert_close(value, expected, rtol=1e-5, atol=0)
        torch.testing.assert_close(gradients, expected_gradients, rtol=1e-4, atol=1e-8)


def test_plain_loss_compiles_too() -> None:
    torch._dynamo.reset()
    maps, gt, _ = batch()
    loss = PlainLoss(*ALL)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(maps, gt), loss(maps, gt))


def test_compiled_without_boxes_says_what_to_do() -> None:
    torch._dynamo.reset()
    maps, gt, _ = batch()
    compiled = torch.compile(SizeInvariantLoss("bce"), fullgraph=True, backend="aot_eager")
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"give boxes=boxes_of\(gt\) to the loss"):
        compiled(maps, gt)


@pytest.mark.parametrize("boxes_device", ["meta", "cpu"])
@pytest.mark.parametrize("alpha", ["ratio", "union", 0.5])
def test_no_value_is_read_from_a_device(boxes_device: str, alpha: Any) -> None:
    """Tensors on the device `meta` have no values: whatever asked for one would raise."""
    maps, gt, boxes = batch()
    unreadable = [map_.detach().to("meta").requires_grad_() for map_ in maps]
    with pytest.raises((RuntimeError, NotImplementedError), match="meta tensor"):
        unreadable[0].sum().item()
    value, gradients = slopes(
        SizeInvariantLoss(*ALL, alpha=alpha), unreadable, gt.to("meta"), boxes.to(boxes_device)
    )
    assert value.device.type == "meta"
    assert [gradient.shape for gradient in gradients] == [map_.shape for map_ in maps]
    assert weight_map(boxes.to("meta"), gt.shape, alpha=alpha).shape == gt.shape


def test_channels_last_and_slices_of_a_stack() -> None:
    maps, gt, boxes = batch(5)
    loss = SizeInvariantLoss(*ALL)
    expected, expected_gradients = slopes(loss, maps, gt, boxes)
    stack = torch.cat(maps, dim=1).detach().to(memory_format=torch.channels_last).requires_grad_()
    truth = gt.to(memory_format=torch.channels_last)
    value = loss(torch.split(stack, 1, dim=1), truth, boxes)
    value.backward()
    torch.testing.assert_close(value.detach(), expected)
    assert stack.grad is not None
    torch.testing.assert_close(stack.grad, torch.cat(expected_gradients, dim=1))


def test_modules_are_copied_pickled_and_moved() -> None:
    maps, gt, boxes = batch()
    for loss in (
        SizeInvariantLoss("bce", _own, "dice"),
        PlainLoss("bce", _own),
        SizeInvariantLoss.for_network("edn"),
    ):
        expected = loss(maps, gt, boxes)
        for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), loss.double()):  # noqa: S301
            assert other(maps, gt, boxes) == expected
        assert not list(loss.parameters())


def _own(logits: Tensor, gt: Tensor) -> Tensor:
    return (logits - gt).abs()


# ------------------------------------------------------------------------- accumulation, processes


def test_accumulating_two_halves_equals_one_step() -> None:
    images, gt = make_batch(8)
    whole, parts = make_network(), make_network()
    loss = SizeInvariantLoss("bce", "dice")
    loss(whole(images), gt, boxes_of(gt)).backward()
    for half in (slice(0, 4), slice(4, 8)):
        (loss(parts(images[half]), gt[half], boxes_of(gt[half])) / 2).backward()
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "helpers" / "ddp_worker.py"
    workers = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, str(script), str(rank), str(tmp_path)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    errors = [worker.communicate(timeout=120)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], errors
    images, gt = make_batch()
    for name, loss in LOSSES.items():
        network = make_network()
        loss(network(images), gt, boxes_of(gt)).backward()
        gradients = torch.load(tmp_path / f"{name}.pt", weights_only=True)
        for parameter, gradient in zip(network.parameters(), gradients, strict=True):
            torch.testing.assert_close(gradient, parameter.grad)


def test_boxes_are_found_in_the_workers_of_a_loader() -> None:
    images, gt = make_batch()
    samples = [(image, mask, boxes_of(mask[0])) for image, mask in zip(images, gt, strict=True)]
    loader: Any = torch.utils.data.DataLoader(
        samples,  # type: ignore[arg-type]
        batch_size=4,
        collate_fn=_collate,
    )
    _, masks, boxes = next(iter(loader))
    assert torch.equal(boxes, boxes_of(masks))


def _collate(samples: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    images, masks, boxes = zip(*samples, strict=True)
    return torch.stack(images), torch.stack(masks), collate_boxes(boxes)


# ------------------------------------------------------------------------------ the paper's loss lines

LINES = {"edn": ("bce", "dice"), "icon": ("bce", "iou"), "gatenet": ("bce",), "poolnet": ("bce",)}


@pytest.mark.parametrize("name", LINES)
def test_loss_lines(name: str) -> None:
    maps, gt, boxes = batch()
    options: dict[str, Any] = {"alpha": "union", "normalize": False}
    by_name: nn.Module = SizeInvariantLoss.for_network(name, **options)
    assert by_name(maps, gt, boxes) == SizeInvariantLoss(*LINES[name], **options)(maps, gt, boxes)
    assert PlainLoss.for_network(name)(maps, gt) == PlainLoss(*LINES[name])(maps, gt)
    # the two differ in nothing but the frames: one frame per image makes them the same
    whole = collate_boxes([[[0, 0, 24, 24]]] * 4)
    torch.testing.assert_close(
        SizeInvariantLoss.for_network(name)(maps, gt, whole), PlainLoss.for_network(name)(maps, gt)
    )


def test_loss_line_of_ldf() -> None:
    maps, mask, boxes = batch(6)
    generator = torch.Generator().manual_seed(5)
    gt = {"mask": mask} | {k: torch.rand(mask.shape, generator=generator) for k in ("body", "detail")}
    mask2, body2, detail2, mask1, body1, detail1 = maps
    by_kind = {"mask": [mask2, mask1], "body": [body2, body1], "detail": [detail2, detail1]}
    plain = PlainLoss("bce")
    labels = plain([body1, body2], gt["body"]) + plain([detail1, detail2], gt["detail"])
    for loss, mask_loss in (
        (SizeInvariantLoss.for_network("ldf"), SizeInvariantLoss("bce", "iou")),
        (PlainLoss.for_network("ldf"), PlainLoss("bce", "iou")),
    ):
        expected = (mask_loss([mask1, mask2], mask, boxes) + labels) / 2
        torch.testing.assert_close(loss(by_kind, gt, boxes), expected)
        torch.testing.assert_close(loss(maps, gt, boxes), expected)
        torch.testing.assert_close(loss(by_kind, gt), expected)


def test_losses_by_name_know_the_maps_of_the_networks() -> None:
    for name in {*networks.names()} - {"tiny", "fpn"}:
        network = networks.find(name)
        assert network_targets(name) == (network.targets if network.auxiliary_targets() else ())
    assert network_targets("ldf") == ("mask", "body", "detail", "mask", "body", "detail")


def test_any_targets_and_their_number_of_passes() -> None:
    """A network of another design: three passes of a mask and an edge each."""
    maps, mask, boxes = batch(6)
    edge = torch.rand(mask.shape, generator=torch.Generator().manual_seed(6))
    mask_loss, plain = SizeInvariantLoss("bce", "dice"), PlainLoss("bce")
    loss = DecoupledLoss(mask_loss, plain, ("mask", "edge") * 3)
    expected = (mask_loss(maps[::2], mask, boxes) + plain(maps[1::2], edge)) / 3
    assert loss(maps, {"mask": mask, "edge": edge}, boxes) == expected
    with pytest.raises(
        ValueError, match=r"^gt is \['body', 'mask'\]; expected a mapping of mask, edge$"
    ):
        loss(maps, {"mask": mask, "body": edge}, boxes)


def test_every_network_of_the_paper_has_its_loss() -> None:
    assert {*LINES, "ldf"} == set(networks.names()) - {"tiny", "fpn"}
