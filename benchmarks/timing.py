"""Timing helpers: interleaved repetitions, medians, ratios, facts of the machine."""

import gc
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

Call = Callable[[], object]


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

    def cells(self) -> list[str]:
        """The row as printed."""
        sign = ">=" if self.at_least else "<="
        unit = f" {self.unit}" if self.unit else ""
        return [
            self.what,
            " to ".join(milliseconds(seconds) for seconds in self.ours),
            "-" if self.peer is None else milliseconds(self.peer),
            f"{self.value:.3g}{unit}",
            f"{sign} {self.target:g}{unit}",
            "yes" if self.met else "no",
        ]


TABLE_HEAD = ("what", "ours", "peer", "ratio", "target", "met")


def interleaved_medians(
    contenders: Mapping[str, Sequence[Call]], *, repetitions: int
) -> dict[str, list[float]]:
    """Return, per contender, the median seconds of each of its calls.

    Contender i of call k runs next to all others of call k, so that noise of the machine hits all
    alike; who goes first rotates. One round that is not counted warms up.
    """
    names = list(contenders)
    n_calls = {len(calls) for calls in contenders.values()}
    if len(n_calls) != 1:
        raise ValueError(f"every contender needs the same number of calls, got {sorted(n_calls)}")
    seconds: dict[str, list[list[float]]] = {name: [[] for _ in range(*n_calls)] for name in names}
    for repetition in range(repetitions + 1):
        for index in range(*n_calls):
            first = (repetition + index) % len(names)
            for name in names[first:] + names[:first]:
                taken = _seconds(contenders[name][index])
                if repetition:
                    seconds[name][index].append(taken)
        progress(f"  repetition {repetition} of {repetitions}")
    return {name: [statistics.median(times) for times in seconds[name]] for name in names}


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of log seconds over log size: 1 is linear.

    Example:
        >>> round(exponent([1, 10, 100], [2, 20, 200]), 9)
        1.0
    """
    x, y = ([math.log(value) for value in values] for values in (sizes, seconds))
    return statistics.linear_regression(x, y).slope


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine(packages: Sequence[str]) -> dict[str, object]:
    """Return what a reader needs to judge the numbers, and nothing that names the machine."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "threads": 1,
        "packages": {name: version(name) for name in packages},
    }


def milliseconds(seconds: float) -> str:
    """Return a time as printed in the tables."""
    return f"{1e3 * seconds:.3g} ms"


def progress(message: str) -> None:
    """Tell whoever waits; results go to stdout, this does not."""
    print(message, file=sys.stderr, flush=True)


def _seconds(call: Call) -> float:
    was_enabled = gc.isenabled()
    gc.disable()  # a collection belongs to nobody in particular
    try:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start
    finally:
        if was_enabled:
            gc.enable()
