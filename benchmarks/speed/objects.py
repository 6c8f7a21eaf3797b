"""Speed of predicted objects, as ratios measured in one run on one thread.

`python -m benchmarks.speed.objects` prints the table and writes `objects.json` and `objects.md` to
`benchmarks/results`; with `--quick` it does everything with fewer repetitions and writes nothing.
panoptica and pyirstdmetrics need NumPy below 2: `--peer-python PATH` names an interpreter that has them
(`tools/make_object_golden.py` has the versions); without it their rows are left out.
"""

import os

# read when numpy is first imported
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import gc
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import cv2
import numpy as np

import sisod
from benchmarks.speed.synthetic_maps import COUNT_KEYS, SHAPE, Pair, make_pairs
from benchmarks.timing import (
    TABLE_HEAD,
    Call,
    Row,
    interleaved_medians,
    machine,
    markdown,
    progress,
    write_results,
)
from sisod.scoring.metrics import METRICS, find_metrics

_KEYS = find_metrics(None)
_CURVE_KEYS = ("object_ap", "object_f1_max", "object_f1_max_small")
_EVERY_COMPONENT = sisod.Protocol("every component", min_area=0, normalize="none")
_PEERS = {
    "panoptica": (_EVERY_COMPONENT, ("pq", "sq", "rq")),
    "pyirstdmetrics": (sisod.PROTOCOLS["infrared"], ("pd", "fa", "niou")),
}
_PACKAGES = ("sisod", "numpy", "opencv-python-headless")


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    n_pairs: int
    repetitions: int
    peer_repetitions: int


_FULL = Effort(24, 21, 7)
_QUICK = Effort(8, 2, 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table and, unless quick, write it."""
    parser = argparse.ArgumentParser(description="Measure predicted objects.")
    parser.add_argument("--quick", action="store_true", help="few repetitions, no files")
    parser.add_argument("--peer-python", help="an interpreter that has panoptica and pyirstdmetrics")
    options = parser.parse_args(arguments)
    effort = _QUICK if options.quick else _FULL
    cv2.setNumThreads(1)
    pairs = make_pairs(effort.n_pairs)
    rows = [measure_addition(pairs, effort), measure_curve(pairs, effort), measure_many(effort)]
    versions: dict[str, str] = {}
    if options.peer_python is not None:
        peer_rows, versions = measure_peers(pairs, effort, options.peer_python)
        rows.extend(peer_rows)
    print(_table(rows))
    if not options.quick:
        _write(rows, versions)


def measure_addition(pairs: Sequence[Pair], effort: Effort) -> Row:
    """Compare the default metrics with those that know no predicted object."""
    progress("predicted objects among the default metrics")
    contenders: dict[str, list[Call]] = {
        "all": [partial(sisod.score, pair.pred, pair.gt) for pair in pairs],
        "without": [partial(sisod.score, pair.pred, pair.gt, metrics=COUNT_KEYS) for pair in pairs],
    }
    seconds = _means(interleaved_medians(contenders, repetitions=effort.repetitions))
    return Row(
        what="default metrics; without predicted objects",
        ours=(seconds["all"],),
        peer=seconds["without"],
        value=seconds["all"] / seconds["without"],
        target=1.4,
        at_least=False,
    )


_NONE = np.empty(0, dtype=np.int64)


def measure_curve(pairs: Sequence[Pair], effort: Effort) -> Row:
    """Measure what the 49 thresholds add to a score."""
    progress("49 thresholds")
    contenders: dict[str, list[Call]] = {
        "with": [
            partial(sisod.score, pair.pred, pair.gt, metrics=(*_KEYS, *_CURVE_KEYS)) for pair in pairs
        ],
        "default": [partial(sisod.score, pair.pred, pair.gt) for pair in pairs],
    }
    seconds = _means(interleaved_medians(contenders, repetitions=effort.repetitions))
    return Row(
        what="the curve of 49 thresholds, added to the default metrics",
        ours=(seconds["with"],),
        peer=None,
        value=1e3 * (seconds["with"] - seconds["default"]),
        target=10,
        at_least=False,
        unit="ms",
    )


def measure_many(effort: Effort) -> Row:
    """Measure a map that falls apart into more than 5,000 components."""
    progress("5,000 predicted objects")
    pred, gt = np.zeros(SHAPE, dtype=np.uint8), np.zeros(SHAPE, dtype=np.uint8)
    pred[::4, ::6] = pred[1::4, ::6] = 255
    gt[100:140, 100:160] = 255
    score = partial(sisod.score, pred, gt, protocol=_EVERY_COMPONENT)
    n_predicted = int(score(metrics="n_predicted")["n_predicted"])
    assert n_predicted >= 5000
    seconds = interleaved_medians({"": [score]}, repetitions=effort.repetitions)[""][0]
    return Row(
        what=f"default metrics, {n_predicted:,} predicted objects",
        ours=(seconds,),
        peer=None,
        value=1e3 * seconds,
        target=50,
        at_least=False,
        unit="ms",
    )


def measure_peers(
    pairs: Sequence[Pair], effort: Effort, python: str
) -> tuple[list[Row], dict[str, str]]:
    """Compare with panoptica and pyirstdmetrics; they and we take turns, one process waits."""
    progress("panoptica and pyirstdmetrics")
    ours: dict[str, list[list[float]]] = {name: [[] for _ in pairs] for name in _PEERS}
    theirs: dict[str, list[list[float]]] = {name: [[] for _ in pairs] for name in _PEERS}
    with _peer_process(pairs, python) as peers, _no_collection():
        for repetition in range(effort.peer_repetitions + 1):  # the first warms up
            for index, pair in enumerate(pairs):
                for name, (protocol, keys) in _PEERS.items():
                    answer = peers.ask(name, index)
                    start = time.perf_counter()
                    values = sisod.score(pair.pred, pair.gt, protocol=protocol, metrics=keys)
                    seconds = time.perf_counter() - start
                    _check_agreement(values, answer["values"])
                    if repetition:
                        ours[name][index].append(seconds)
                        theirs[name][index].append(answer["seconds"])
            progress(f"  repetition {repetition} of {effort.peer_repetitions}")
        versions = peers.versions
    rows = []
    for name, (_, keys) in _PEERS.items():
        our_mean, their_mean = (
            statistics.fmean(statistics.median(times) for times in side[name]) for side in (ours, theirs)
        )
        rows.append(
            Row(
                what=f"{', '.join(METRICS[key].title for key in keys)}; {name}",
                ours=(our_mean,),
                peer=their_mean,
                value=their_mean / our_mean,
                target=30,
                at_least=True,
            )
        )
    return rows, versions


def _check_agreement(ours: Mapping[str, float], theirs: Mapping[str, float]) -> None:
    """Make sure that both sides compute the same numbers."""
    for key, value in theirs.items():
        # without a match they call SQ 0 and we NaN
        assert abs(np.nan_to_num(ours[key]) - value) < 1e-9, f"{key}: {ours[key]} and {value}"


@contextmanager
def _no_collection() -> Iterator[None]:
    """Stop the garbage collector, as the other process does."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@dataclass(frozen=True)
class _PeerProcess:
    """The process that runs the peers: one line of text asks, one line of JSON answers."""

    questions: IO[str]
    answers: IO[str]
    versions: dict[str, str]

    def ask(self, name: str, index: int) -> dict[str, Any]:
        """Return the peer's seconds and values of one pair."""
        self.questions.write(f"{name} {index}\n")
        self.questions.flush()
        answer: dict[str, Any] = json.loads(self.answers.readline())
        return answer


@contextmanager
def _peer_process(pairs: Sequence[Pair], python: str) -> Iterator[_PeerProcess]:
    script = Path(__file__).with_name("object_peers.py")
    with tempfile.TemporaryDirectory() as folder:
        maps = Path(folder) / "maps.npz"
        np.savez(maps, preds=[pair.pred for pair in pairs], gts=[pair.gt for pair in pairs])
        command = [python, str(script), str(maps)]
        with subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            versions = json.loads(process.stdout.readline())
            yield _PeerProcess(process.stdin, process.stdout, versions)
            process.stdin.close()


def _means(medians: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.fmean(times) for name, times in medians.items()}


def _table(rows: Sequence[Row]) -> str:
    return markdown(TABLE_HEAD, [row.cells() for row in rows])


def page(content: Mapping[str, Any]) -> str:
    """What objects.md says, from what objects.json holds."""
    head = (
        "Made by `python -m benchmarks.speed.objects --peer-python PATH` "
        "(one thread; times are means over 24 maps of 300 x 400)."
    )
    return f"{head}\n\n{_table([Row.saved(row) for row in content['rows']])}\n"


def _write(rows: Sequence[Row], versions: Mapping[str, str]) -> None:
    facts = {
        "machine": machine(_PACKAGES),
        "peers": dict(versions),
        "rows": [asdict(row) | {"met": row.met} for row in rows],
    }
    write_results("objects", facts, page(facts))


if __name__ == "__main__":
    main()
