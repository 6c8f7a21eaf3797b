"""The losses inside PyTorch: autocast, compilation, devices, data parallelism, memory formats."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.ddp_worker import LOSSES, make_batch, make_network
from torch import Tensor, nn

from sisod import networks
from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of, collate_boxes
from sisod.losses.networks import DecoupledLoss

ALL = ("bce", "mse", "l1", "focal(2)", "dice", "iou", "auc", "tversky(0.3,0.7)")
torch.set_num_threads(1)  # the tensors are small


def batch(n_maps: int = 2, *, seed: int = 0) -> tuple[list[Tensor], Tensor, Tensor]:
    """Maps that want gradients, truth and boxes."""
    generator = torch.Generator().manual_seed(seed)
    _, gt = make_batch()
    maps = [torch.randn(gt.shape, generator=generator).requires_grad_() for _ in range(n_maps)]
    return maps, gt, boxes_of(gt)


# --------------------------------------------------------------------------------------- precision


def test_probabilities_under_autocast() -> None:
    maps, gt, boxes = batch(1)
    probs = maps[0].detach().sigmoid()
    loss = SizeInvariantLoss("bce", "dice", from_probs=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = loss(probs, gt, boxes)
    torch.testing.assert_close(found, loss(probs, gt, boxes))


# ------------------------------------------------------------------------------ graphs and devices


def test_compiled_without_boxes_says_what_to_do() -> None:
    torch._dynamo.reset()
    maps, gt, _ = batch()
    compiled = torch.compile(SizeInvariantLoss("bce"), fullgraph=True, backend="aot_eager")
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"give the loss \*\*parts_of"):
        compiled(maps, gt)


# ------------------------------------------------------------------------- accumulation, processes


@pytest.mark.slow
def run_two_processes(folder: Path) -> None:
    """Run both workers; they are ended if they do not leave their group."""
    folder.mkdir()
    script = Path(__file__).parents[1] / "helpers" / "ddp_worker.py"
    workers = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, str(script), str(rank), str(folder)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [worker.communicate(timeout=60)[1] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert [worker.returncode for worker in workers] == [0, 0], errors


def test_two_processes_equal_one(tmp_path: Path) -> None:
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        try:
            run_two_processes(folder)
        except subprocess.TimeoutExpired:  # on a busy machine gloo now and then hangs as it ends
            continue
        break
    images, gt = make_batch()
    for name, loss in LOSSES.items():
        network = make_network()
        loss(network(images), gt, boxes_of(gt)).backward()
        gradients = torch.load(folder / f"{name}.pt", weights_only=True)
        for parameter, gradient in zip(network.parameters(), gradients, strict=True):
            torch.testing.assert_close(gradient, parameter.grad)


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
        SizeInvariantLoss.for_network(name, check_parts=False)(maps, gt, whole),
        PlainLoss.for_network(name)(maps, gt),
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
        network, loss = networks.find(name), PlainLoss.for_network(name)
        targets = network.targets if network.auxiliary_targets() else ()
        assert getattr(loss, "targets", ()) == targets


def test_any_targets_and_their_number_of_passes() -> None:
    """A network of another design: three passes of a mask and an edge each."""
    maps, mask, boxes = batch(6)
    edge = torch.rand(mask.shape, generator=torch.Generator().manual_seed(6))
    mask_loss, plain = SizeInvariantLoss("bce", "dice"), PlainLoss("bce")
    loss = DecoupledLoss(mask_loss, plain, ("mask", "edge") * 3)
    expected = (mask_loss(maps[::2], mask, boxes) + plain(maps[1::2], edge)) / 3
    assert loss(maps, {"mask": mask, "edge": edge}, boxes) == expected
    with pytest.raises(
        ValueError, match=r"^target is \['body', 'mask'\]; expected a mapping of mask, edge$"
    ):
        loss(maps, {"mask": mask, "body": edge}, boxes)
