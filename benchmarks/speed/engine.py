"""Speed of the evaluation engine, as ratios measured in one run on one thread, with the targets.

`python -m benchmarks.speed.engine` runs `benchmarks.speed.folders` as well, prints one table and writes
`engine.json`, `engine.md` and `engine_short.md` to `benchmarks/results`; with `--quick` it does all of
it with fewer repetitions and smaller sizes, and writes nothing. Nothing else should run on the machine.

Each tool scores all maps in a block of its own, and the blocks take turns: every tool finds the caches
of its own work, on maps that differ from call to call.
"""

import os

# read when numpy is first imported
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import sisod
from benchmarks.speed import folders, peer
from benchmarks.speed.synthetic_maps import Grey, Pair, make_map, make_pairs
from benchmarks.timing import (
    RESULTS,
    TABLE_HEAD,
    Call,
    Row,
    block_medians,
    duration,
    machine,
    markdown,
    progress,
    write_results,
)
from sisod.scoring import kernel
from sisod.scoring.counting.components import nearest_component
from sisod.scoring.metrics import find_metrics

_COUNT_KEYS = find_metrics(None)
_ALL_KEYS = (*_COUNT_KEYS, "s", "wf")
_DEFAULT = "default metrics: all of counts, their SI forms, predicted objects"
_SI_KEYS = (*_ALL_KEYS, "si_s", "si_wf")
_PACKAGES = ("sisod", "numpy", "opencv-python-headless", "scipy", "scikit-image", "pysodmetrics")


_MEMORY = """
import resource, sys
import numpy as np
import sisod
pred, gt = (np.load(name) for name in sys.argv[1:3])
keys = sys.argv[3].split(",")
sisod.score(pred[:64, :64].copy(), gt[:64, :64].copy(), metrics=keys)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sisod.score(pred, gt, metrics=keys)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / gt.size)
"""


@dataclass(frozen=True)
class Effort:
    """How much is measured: pairs, blocks of each comparison, and the side of the largest maps."""

    n_pairs: int
    peer_blocks: int
    blocks: int
    side: int


_FULL = Effort(24, 7, 41, 1024)
_QUICK = Effort(2, 1, 1, 64)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table and, unless quick, write it."""
    parser = argparse.ArgumentParser(description="Measure the evaluation engine.")
    parser.add_argument("--quick", action="store_true", help="few repetitions, small sizes, no files")
    quick = parser.parse_args(arguments).quick
    effort = _QUICK if quick else _FULL
    cv2.setNumThreads(1)
    pairs = make_pairs(effort.n_pairs)
    _check_agreement(pairs[-1])
    rows = [
        *measure_peer(pairs, effort),
        *measure_decoding(pairs, effort),
        *measure_engines(pairs, effort),
        *measure_cells(effort),
        measure_memory(effort),
        *folders.ratios(folders.main(["--quick"] if quick else [])),
    ]
    print(markdown(TABLE_HEAD, [row.cells() for row in rows]))
    if not quick:
        facts = {
            "machine": machine(_PACKAGES),
            "rows": [asdict(row) | {"met": row.met} for row in rows],
        }
        write_results("engine", facts, page(facts))
        (RESULTS / "engine_short.md").write_text(in_short(facts) + "\n")


def measure_peer(pairs: Sequence[Pair], effort: Effort) -> list[Row]:
    """Compare with PySODMetrics, without and with S and weighted F."""
    progress("PySODMetrics")
    contenders = {
        "counts": _on_pairs(sisod.score, pairs),
        "all": _on_pairs(partial(sisod.score, metrics=_ALL_KEYS), pairs),
        "peer counts": _on_pairs(peer.step_counts, pairs),
        "peer all": _on_pairs(peer.step_all, pairs),
    }
    seconds = block_medians(contenders, repetitions=effort.peer_blocks)
    return [
        _ratio(
            f"{what}; PySODMetrics: {its_part}",
            seconds[name],
            seconds[f"peer {name}"],
            target,
            at_least=True,
        )
        for name, what, its_part, target in (
            ("counts", _DEFAULT, "its subset", 250),
            ("all", "the same, S and weighted F", "the same with its S and weighted F", 60),
        )
    ]


def measure_decoding(pairs: Sequence[Pair], effort: Effort) -> list[Row]:
    """Compare with the decoding of the two files."""
    progress("PNG decoding")
    rows = (
        (_DEFAULT, None, 0.3),
        ("the same, S and weighted F", _ALL_KEYS, 1.4),
        ("the same, S, weighted F and their SI forms", _SI_KEYS, 2),
    )
    contenders: dict[str, list[Call]] = {"decoding": [partial(_decode, pair) for pair in pairs]}
    contenders |= {what: _on_pairs(partial(sisod.score, metrics=keys), pairs) for what, keys, _ in rows}
    seconds = block_medians(contenders, repetitions=effort.blocks)
    return [
        _ratio(f"{what}; OpenCV decodes the two PNG files", seconds[what], seconds["decoding"], target)
        for what, _, target in rows
    ]


def measure_engines(pairs: Sequence[Pair], effort: Effort) -> list[Row]:
    """Compare the kernel with the Python engine, the object curve with none, and time a small image."""
    progress("both engines")
    small = [replace(pair, pred=_reduced(pair.pred), gt=_reduced(pair.gt)) for pair in pairs]
    contenders = {
        "kernel": _on_pairs(sisod.score, pairs),
        "python": _on_pairs(_score_in_python, pairs),
        "curve": _on_pairs(partial(sisod.score, metrics=(*_COUNT_KEYS, "object_f1_max")), pairs),
        "small": _on_pairs(sisod.score, small),
    }
    seconds = block_medians(contenders, repetitions=effort.blocks)
    return [
        _ratio(f"{_DEFAULT}; the Python engine", seconds["kernel"], seconds["python"], 5, at_least=True),
        _ratio("the same with the object curve; without", seconds["curve"], seconds["kernel"], 3),
        _milliseconds("default metrics of an image of 32 x 32", seconds["small"], 0.15),
    ]


def measure_cells(effort: Effort) -> list[Row]:
    """Time the labels of cells, which the data loader computes for the losses."""
    progress("cells")
    rng = np.random.default_rng(0)
    rows = []
    for side, target in ((384 * effort.side // 1024, 2.0), (effort.side, 12.0)):
        index = np.full((side, side), -1, dtype=np.int32)
        for place in range(50):
            y, x = rng.integers(0, side - side // 20, 2)
            height, width = rng.integers(2, side // 20 + 2, 2)
            index[y : y + height, x : x + width] = place
        call = partial(nearest_component, index, 50)
        seconds = block_medians({"cells": [call] * 4}, repetitions=effort.blocks)["cells"]
        rows.append(_milliseconds(f"labels of cells, {side} x {side}, 50 objects", seconds, target))
    return rows


def measure_memory(effort: Effort) -> Row:
    """Return the memory of a score with S and weighted F beside the two arrays, in bytes a pixel."""
    progress("memory")
    side = 4 * effort.side
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{name}.npy") for name in ("pred", "gt")]
        arrays = make_map((side, side), 8, np.random.default_rng(0))
        for file, array in zip(files, arrays, strict=True):
            np.save(file, array)
        run = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _MEMORY, *map(str, files), ",".join(_ALL_KEYS)],
            check=True,
            capture_output=True,
            text=True,
        )
    what = f"memory a pixel beside the input, {side} x {side}, S and weighted F too"
    return Row(what, (), None, float(run.stdout), 12, at_least=False, unit="bytes")


def _ratio(what: str, ours: float, theirs: float, target: float, *, at_least: bool = False) -> Row:
    """Return a row: theirs through ours if it should be large, else ours through theirs."""
    value = theirs / ours if at_least else ours / theirs
    return Row(what, (ours,), theirs, value, target, at_least=at_least)


def _milliseconds(what: str, seconds: float, target: float) -> Row:
    return Row(what, (seconds,), None, 1000 * seconds, target, at_least=False, unit="ms")


def _reduced(grey: Grey) -> Grey:
    return np.asarray(cv2.resize(grey, (32, 32), interpolation=cv2.INTER_NEAREST), dtype=np.uint8)


def _score_in_python(pred: Grey, gt: Grey) -> dict[str, float]:
    with kernel.use_engine("python"):
        return sisod.score(pred, gt)


def _check_agreement(pair: Pair) -> None:
    """Make sure that both sides compute the same numbers before their times are compared."""
    ours = sisod.score(pair.pred, pair.gt, metrics=_ALL_KEYS)
    for key, value in peer.values(peer.step_all(pair.pred, pair.gt)).items():
        assert abs(ours[key] - value) < 1e-6, f"{key}: {ours[key]} and {value}"


def _on_pairs(score: Callable[[Grey, Grey], object], pairs: Sequence[Pair]) -> list[Call]:
    return [partial(score, pair.pred, pair.gt) for pair in pairs]


def _decode(pair: Pair) -> None:
    for file in (pair.pred_file, pair.gt_file):
        cv2.imdecode(file, cv2.IMREAD_GRAYSCALE)


def page(content: Mapping[str, Any]) -> str:
    """What engine.md says, from what engine.json holds."""
    head = (
        "Made by `python -m benchmarks.speed.engine` "
        "(one thread; times are means over 24 maps of 300 x 400)."
    )
    table = markdown(TABLE_HEAD, [Row.saved(row).cells() for row in content["rows"]])
    return f"{head}\n\n{table}\n"


def in_short(content: Mapping[str, Any]) -> str:
    """What the README says."""
    counts, structure, decoding, *_ = (Row.saved(row) for row in content["rows"])
    assert counts.peer is not None
    assert structure.peer is not None
    assert decoding.peer is not None
    ours, theirs = duration(counts.ours[0]), duration(counts.peer)
    return (
        "On one thread sisod computes its default metrics, plain and size-invariant, of a map "
        f"of 300 x 400 pixels\nin {ours}. PySODMetrics takes {theirs} for the subset that it has, "
        f"{counts.value:.0f} times as long. With S-measure and weighted F the times\n"
        f"are {duration(structure.ours[0])} and {duration(structure.peer)}, a factor of "
        f"{structure.value:.0f}. Decoding the two PNG files takes {duration(decoding.peer)}\n"
        "(`python -m benchmarks.speed.engine`; [Performance](docs/performance.md) has all measurements)."
    )


if __name__ == "__main__":
    main()
