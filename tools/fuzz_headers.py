"""Read mutated image files of every kind and count what becomes of them.

    PYTHONPATH=tests python tools/fuzz_headers.py [FILES_OF_EACH_KIND] [SEED]

A file must end in an image of the size that its header states or in an InputError that names it, within
five seconds and with nothing on standard error. Everything else is a fault: it is printed with the
number of the mutation, the file is kept, and the program ends with 1. A crash or a hang of a decoder
ends the program at once; the file it was reading is then the last one kept.
"""

import faulthandler
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.damaged_images import KINDS, READERS, check_file, mutated

COUNT, SEED = 10_000, 0
HANG = 60  # seconds
OUTCOMES = ("read", "read by some readers", "refused", "refused, header unknown", "fault")


def main(count: int, seed: int) -> int:
    """Read `count` files of each kind; print a row of outcomes for each; return the number of faults."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz_headers_"))
    print(f"{count} files of each kind, seed {seed}, read below {folder}")
    print(" | ".join(("kind", *OUTCOMES)))
    n_faults = 0
    for kind in KINDS:
        counts = Counter(outcomes(kind, count, seed, folder))
        print(" | ".join((kind, *(str(counts[outcome]) for outcome in OUTCOMES))), flush=True)
        n_faults += counts["fault"]
    if not n_faults:
        shutil.rmtree(folder)
    return n_faults


def outcomes(kind: str, count: int, seed: int, folder: Path) -> Iterator[str]:
    """Yield the outcome of every file."""
    for number in range(count):
        data = mutated(kind, number, seed=seed)
        faulthandler.dump_traceback_later(HANG, exit=True, file=1)  # standard output
        try:
            with standard_error(folder / "stderr.txt") as said:
                outcome = check_file(folder, data, kind)
            assert said.stat().st_size == 0, said.read_text(encoding="utf-8", errors="replace")
        except Exception as error:  # whatever it is, it is what is looked for
            path = folder / f"fault_{seed}_{number}.{kind}"
            path.write_bytes(data)
            print(f"{path}: {type(error).__name__}: {error}", flush=True)
            yield "fault"
            continue
        finally:
            faulthandler.cancel_dump_traceback_later()
        if outcome.n_read:
            yield "read" if outcome.n_read == len(READERS) else "read by some readers"
        else:
            yield "refused" if outcome.has_header or kind == "npy" else "refused, header unknown"


@contextmanager
def standard_error(path: Path) -> Iterator[Path]:
    """Send the standard error of this process, that of C libraries included, to a file."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield path
    finally:
        os.dup2(kept, 2)
        os.close(kept)


if __name__ == "__main__":
    faulthandler.enable(file=1)  # standard output
    numbers = [int(word) for word in sys.argv[1:]]
    raise SystemExit(bool(main(*(numbers + [COUNT, SEED][len(numbers) :]))))
