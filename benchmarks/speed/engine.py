"""Speed of the evaluation engine, as ratios measured in one run on one thread.

`python -m benchmarks.speed.engine` prints the tables and writes `engine.json`, `engine.md` and
`engine_short.md` to `benchmarks/results`; with `--quick` it does everything with fewer repetitions and
smaller sizes, and writes nothing.
"""

import os

# read when numpy is first imported
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import cv2
import numpy as np

import sisod
from benchmarks.speed import peer
from benchmarks.speed.synthetic_maps import Grey, Pair, make_pairs
from benchmarks.timing import (
    RESULTS,
    TABLE_HEAD,
    Call,
    Row,
    duration,
    interleaved_medians,
    machine,
    markdown,
    progress,
    write_results,
)
from sisod.scoring import kernel
from sisod.scoring.metrics import find_metrics

_COUNT_KEYS = find_metrics(None)
_ALL_KEYS = (*_COUNT_KEYS, "s", "wf")
_DEFAULT = "default metrics: all of counts, their SI forms, predicted objects"
_SI_KEYS = (*_ALL_KEYS, "si_s", "si_wf")
_PACKAGES = ("sisod", "numpy", "opencv-python-headless", "scipy", "scikit-image", "pysodmetrics")


@dataclass(frozen=True)
class Effort:
    """How much is measured: pairs, and repetitions of each comparison."""

    n_pairs: int
    peer_repetitions: int
    decode_repetitions: int


_FULL = Effort(24, 7, 41)
_QUICK = Effort(2, 1, 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables and, unless quick, write them."""
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
    seconds = _means(interleaved_medians(contenders, repetitions=effort.peer_repetitions))
    return [
        Row(
            what=f"{what}; PySODMetrics: {its_part}",
            ours=(seconds[name],),
            peer=seconds[f"peer {name}"],
            value=seconds[f"peer {name}"] / seconds[name],
            target=target,
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
    seconds = _means(interleaved_medians(contenders, repetitions=effort.decode_repetitions))
    return [
        Row(
            what=f"{what}; OpenCV decodes the two PNG files",
            ours=(seconds[what],),
            peer=seconds["decoding"],
            value=seconds[what] / seconds["decoding"],
            target=target,
            at_least=False,
        )
        for what, _, target in rows
    ]


def measure_engines(pairs: Sequence[Pair], effort: Effort) -> list[Row]:
    """Compare the compiled kernel with the Python engine, and time a small image."""
    progress("both engines")
    small = [replace(pair, pred=_reduced(pair.pred), gt=_reduced(pair.gt)) for pair in pairs]
    contenders = {
        "kernel": _on_pairs(sisod.score, pairs),
        "python": _on_pairs(_score_in_python, pairs),
        "small": _on_pairs(sisod.score, small),
    }
    seconds = _means(interleaved_medians(contenders, repetitions=effort.decode_repetitions))
    ratio = seconds["python"] / seconds["kernel"]
    milliseconds = 1000 * seconds["small"]
    return [
        Row(
            what=f"{_DEFAULT}; the Python engine",
            ours=(seconds["kernel"],),
            peer=seconds["python"],
            value=ratio,
            target=5,
            at_least=True,
        ),
        Row(
            what="default metrics of an image of 32 x 32",
            ours=(seconds["small"],),
            peer=None,
            value=milliseconds,
            target=0.15,
            at_least=False,
            unit="ms",
        ),
    ]


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


def _means(medians: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.fmean(times) for name, times in medians.items()}


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
