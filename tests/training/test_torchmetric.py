"""The torchmetrics metric gives the engine's numbers, also over two processes."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sisod
from sisod.data.scenes import make_scenes, sees_all_coarsely, sees_only_large

torch = pytest.importorskip("torch", reason="extra torch is not installed")

from helpers.custom_metrics import PIXEL_ERROR  # noqa: E402

from sisod.training.torchmetric import SizeInvariantScores  # noqa: E402

KEYS = (
    *("mae", "si_mae", "f_max", "si_f_max", "si_f_max_frame", "si_auc", "e_mean"),
    *("n_false", "bsi_f_binary", "object_f1", "pq", "object_ap"),
)


def data() -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Seven pairs, an odd number, so that two processes get different shares; the last one black."""
    scenes = make_scenes(7, seed=8, shape=(40, 48))
    preds = [(sees_only_large if i % 2 else sees_all_coarsely)(s) for i, s in enumerate(scenes)]
    masks = [s.mask > 0 for s in scenes[:-1]] + [np.zeros((40, 48), dtype=bool)]
    return (np.stack(preds) / 255).astype(np.float32), np.stack(masks)


def expected(kind: Any = None) -> dict[str, float]:
    """What the engine says; of maps rounded to this type, if one is given."""
    evaluator = sisod.Evaluator(metrics=KEYS)
    for pred, gt in zip(*data(), strict=True):
        rounded = pred if kind is None else torch.from_numpy(pred).to(kind).float().numpy()
        evaluator.update(rounded, gt)
    return evaluator.result().summary


@pytest.mark.parametrize("batch", [1, 3, 7])
@pytest.mark.parametrize("channels", [True, False])
def test_equals_the_engine(batch: int, channels: bool) -> None:
    preds, masks = (torch.from_numpy(array) for array in data())
    if channels:
        preds, masks = preds[:, None], masks[:, None]
    scores = SizeInvariantScores(metrics=KEYS)
    for start in range(0, len(preds), batch):
        scores.update(preds[start : start + batch], masks[start : start + batch])
    assert {key: float(value) for key, value in scores.compute().items()} == expected()
    scores.reset()
    with (
        pytest.raises(ValueError, match="nothing was scored"),
        pytest.warns(UserWarning, match="compute"),
    ):
        scores.compute()


def test_two_processes_equal_one() -> None:
    """Five images here, two there; what each process gathers is the states of both."""
    preds, masks = (torch.from_numpy(array) for array in data())
    both = [SizeInvariantScores(metrics=KEYS) for _ in range(2)]
    for scores, share in zip(both, (slice(0, 5), slice(5, 7)), strict=True):
        scores.update(preds[share], masks[share])
    states = [[getattr(scores, name) for name in scores._reductions] for scores in both]
    for scores in both:
        gathered = iter(zip(*states, strict=True))
        scores.dist_sync_fn = lambda *_, source=gathered, **__: list(next(source))
        scores.distributed_available_fn = lambda: True
        assert {key: float(value) for key, value in scores.compute().items()} == expected()
        assert next(gathered, None) is None


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_half_precision(kind: Any) -> None:
    preds, masks = (torch.from_numpy(array) for array in data())
    scores = SizeInvariantScores(metrics=KEYS)
    scores.update(preds.to(kind), masks)
    found = {key: float(value) for key, value in scores.compute().items()}
    assert found == expected(kind)
    assert found != expected()  # it was rounded


@pytest.mark.parametrize("keys", [("mae", "si_mae"), ()])
def test_a_metric_of_the_user(keys: tuple[str, ...]) -> None:
    """It is not called before there is an image: this one cannot take a single pixel."""

    def edge(p: NDArray[np.float64], _: object) -> float:
        return float(np.gradient(p)[0].max())

    metrics: list[Any] = [*keys, PIXEL_ERROR, edge]
    scores, evaluator = SizeInvariantScores(metrics=metrics), sisod.Evaluator(metrics=metrics)
    preds, masks = data()
    scores.update(torch.from_numpy(preds), torch.from_numpy(masks))
    for pred, gt in zip(preds, masks, strict=True):
        evaluator.update(pred, gt)
    assert {key: float(value) for key, value in scores.compute().items()} == evaluator.result().summary


def test_errors() -> None:
    preds, masks = (torch.from_numpy(array) for array in data())
    scores = SizeInvariantScores(metrics=KEYS)
    with pytest.raises(ValueError, match="apply the sigmoid"):
        scores.update(preds * 20 - 10, masks)
    with pytest.raises(ValueError, match=r"preds has shape \(7, 40, 48\) and target \(7, 1, 40, 48\)"):
        scores.update(preds, masks[:, None])
