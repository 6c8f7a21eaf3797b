"""Fair timing: contenders take turns, medians are reported; and facts about the machine."""

import os
import platform
import statistics
import timeit
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

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
