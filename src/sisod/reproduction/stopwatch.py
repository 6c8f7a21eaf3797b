"""Fair timing: contenders take turns, medians are reported; and facts about the machine."""

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

Call = Callable[[], object]


def interleaved_medians(
    contenders: Mapping[str, Sequence[Call]],
    *,
    repetitions: int,
    after_round: Callable[[int], object] | None = None,
) -> dict[str, list[float]]:
    """Return, per contender, the median seconds of each of its calls.

    Call k of all contenders runs before call k + 1 of any, so that noise of the machine affects all of
    them equally; the order rotates. The first round warms up and is not timed.

    Args:
        contenders: name -> calls, the same number for each.
        repetitions: rounds that are timed.
        after_round: called with the number of the round, 0 for the warm-up.
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
                elapsed = _seconds(contenders[name][index])
                if repetition:
                    seconds[name][index].append(elapsed)
        if after_round is not None:
            after_round(repetition)
    return {name: [statistics.median(times) for times in seconds[name]] for name in names}


def machine(packages: Sequence[str], *, threads: int) -> dict[str, object]:
    """Return facts that a reader needs to judge the numbers, without the name of the machine."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "threads": threads,
        "packages": {name: version(name) for name in packages},
    }


def duration(seconds: float) -> str:
    """Return a duration as text for the tables.

    Example:
        >>> duration(0.1312), duration(15.88)
        ('131 ms', '15.9 s')
    """
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def _seconds(call: Call) -> float:
    was_enabled = gc.isenabled()
    gc.disable()  # a collection would be charged to whichever call triggers it
    try:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start
    finally:
        if was_enabled:
            gc.enable()
