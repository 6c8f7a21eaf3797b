"""Timing helpers: interleaved repetitions, medians, ratios, facts of the machine, saved results."""

import json
import os
import platform
import statistics
import sys
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

Call = Callable[[], object]


def interleaved_medians(
    contenders: Mapping[str, Sequence[Call]], *, repetitions: int
) -> dict[str, list[float]]:
    """Return, per contender, the median seconds of each of its calls.

    Call k of all contenders runs before call k + 1 of any, so that noise of the machine affects all of
    them equally; the order rotates. The first round warms up and is not timed.

    Args:
        contenders: name -> calls, the same number for each.
        repetitions: rounds that are timed.
    """
    names = list(contenders)
    seconds: dict[str, list[list[float]]] = {name: [[] for _ in contenders[name]] for name in names}
    for repetition in range(repetitions + 1):
        for index, calls in enumerate(zip(*contenders.values(), strict=True)):
            turns = list(zip(names, calls, strict=True))
            first = (repetition + index) % len(names)
            for name, call in turns[first:] + turns[:first]:  # timeit switches off garbage collection
                seconds[name][index].append(timeit.timeit(call, number=1))
    return {name: [statistics.median(times[1:]) for times in seconds[name]] for name in names}


def block_medians(contenders: Mapping[str, Sequence[Call]], *, repetitions: int) -> dict[str, float]:
    """Return, per contender, the median over blocks of the mean seconds of a call.

    A block is all calls of one contender, one after the other: what somebody waits for who has many
    different maps. Blocks of the contenders take turns, so that noise of the machine affects all.
    The first round warms up and is not timed.

    Args:
        contenders: name -> calls.
        repetitions: blocks of each contender that are timed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repetitions + 1):
        for name, calls in contenders.items():  # timeit switches off garbage collection
            block = timeit.timeit(partial(_call_all, calls), number=1)
            seconds[name].append(block / len(calls))
    return {name: statistics.median(times[1:]) for name, times in seconds.items()}


def _call_all(calls: Sequence[Call]) -> None:
    for call in calls:
        call()


# tables and what they are made of
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Row:
    """One line of a benchmark's table.

    Attributes:
        what: what was measured.
        ours: our seconds; several where something grows.
        peer: the peer's seconds; None without a peer.
        value: the number that is compared with the target.
        target: the bound.
        at_least: whether the bound is a lower one.
        unit: of `value`; empty for a ratio.
    """

    what: str
    ours: tuple[float, ...]
    peer: float | None
    value: float
    target: float
    at_least: bool
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the value is on the right side of the target."""
        return self.value >= self.target if self.at_least else self.value <= self.target

    @classmethod
    def saved(cls, content: Mapping[str, Any]) -> "Row":
        """From what `asdict` gave, as JSON."""
        known = {key: value for key, value in content.items() if key != "met"}
        return cls(**known | {"ours": tuple(known["ours"])})

    def cells(self) -> list[str]:
        """The row as printed."""
        sign = ">=" if self.at_least else "<="
        unit = f" {self.unit}" if self.unit else ""
        return [
            self.what,
            " to ".join(duration(seconds) for seconds in self.ours),
            "-" if self.peer is None else duration(self.peer),
            f"{self.value:.3g}{unit}",
            f"{sign} {self.target:g}{unit}",
            "yes" if self.met else "no",
        ]


TABLE_HEAD = ("what", "ours", "peer", "ratio", "target", "met")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine(packages: Sequence[str]) -> dict[str, object]:
    """Return facts that a reader needs to judge the numbers; benchmarks run on one thread."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "threads": 1,
        "packages": {name: version(name) for name in packages},
    }


def duration(seconds: float) -> str:
    """Return a duration as text for the tables.

    Example:
        >>> duration(0.1312), duration(15.88)
        ('131 ms', '15.9 s')
    """
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def progress(message: str) -> None:
    """Tell whoever waits; results go to stdout, this does not."""
    print(message, file=sys.stderr, flush=True)


def write_results(name: str, content: Mapping[str, Any], page: str) -> None:
    """Write what was measured as NAME.json and the page about it as NAME.md, to `RESULTS`."""
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    (RESULTS / f"{name}.md").write_text(page)
