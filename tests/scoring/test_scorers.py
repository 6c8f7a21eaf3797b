"""The interface of a way of scoring: one scorer per protocol, the same two stages for all."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import sisod
from sisod.data import pairs as file_pairs
from sisod.data import storage, truths
from sisod.data.files import StoredFile
from sisod.evaluation.tasks import Folders, PairBatch, make_request, score_task
from sisod.scoring.engine import find_scorer

Pair = tuple[NDArray[np.uint8], NDArray[np.uint8]]
PROTOCOLS = list(sisod.PROTOCOLS.values())
names = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)


def pair(name: str, pred: str, gt: str) -> file_pairs.Pair:
    """A pair of files that exist."""
    return file_pairs.Pair(name, StoredFile(pred, ""), StoredFile(gt, ""))


def make_pairs() -> list[Pair]:
    """Masks with grey edges, one without an object; every prediction of its ground truth's shape."""
    rng = np.random.default_rng(3)
    pairs = []
    for index in range(4):
        gt = np.zeros((30, 40 + index), dtype=np.uint8)
        gt[3 : 9 + index, 4:12], gt[20, 30:33], gt[9 + index, 4:12] = 255, 255, 180
        if index == 3:
            gt[:] = 0
        noise = rng.integers(0, 90, gt.shape)
        pairs.append((np.clip(gt * 0.6 + noise, 0, 255).astype(np.uint8), gt))
    return pairs


@names
def test_a_batch_has_the_scores_of_its_images(protocol: sisod.Protocol) -> None:
    scorer = find_scorer(protocol, None)
    measured = [scorer.measure(pred, scorer.ground_truth(gt)) for pred, gt in make_pairs()]
    scores = scorer.finish(measured)
    alone = [sisod.score(pred, gt, protocol=protocol) for pred, gt in make_pairs()]
    assert scores.keys == scorer.keys == tuple(alone[0])
    np.testing.assert_array_equal(scores.values, [list(values.values()) for values in alone])
    assert len(scores.objects["mae"]) == scores.n_objects.sum() >= 3


@names
def test_a_batch_reads_every_file_once(
    protocol: sisod.Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index, (pred, gt) in enumerate(make_pairs()):
        np.save(tmp_path / f"pred{index}.npy", pred)
        np.save(tmp_path / f"gt{index}.npy", gt)
    reads: Counter[str] = Counter()
    read_bytes = storage.read_bytes

    def counting_read(root: str | Path, path: str) -> bytes:
        reads[path] += 1
        return read_bytes(root, path)

    monkeypatch.setattr(truths, "read_bytes", counting_read)
    folders = Folders(str(tmp_path), str(tmp_path))
    request = make_request(folders, protocol=protocol, metrics="paper", strict=True)
    pairs = [pair(str(index), f"pred{index}.npy", f"gt{index}.npy") for index in range(4)]
    rows = score_task(request, PairBatch(0, tuple(pairs)))
    assert set(reads.values()) == {1}
    assert len(reads) == 8
    expected = [sisod.score(*pair, protocol=protocol, metrics="paper") for pair in make_pairs()]
    np.testing.assert_array_equal(rows.values, [list(values.values()) for values in expected])


@names
def test_a_wrong_ground_truth_is_named_by_its_file(protocol: sisod.Protocol, tmp_path: Path) -> None:
    for name, most in (("pred", 255), ("gt", 1)):
        np.save(tmp_path / f"{name}.npy", np.eye(4, dtype=np.uint8) * np.uint8(most))
    folders = Folders(str(tmp_path), str(tmp_path))
    request = make_request(folders, protocol=protocol, metrics="mae", strict=True)
    with pytest.raises(ValueError, match=r"gt\.npy: gt is an integer array whose maximum is 1"):
        score_task(request, PairBatch(0, (pair("a", "pred.npy", "gt.npy"),)))
