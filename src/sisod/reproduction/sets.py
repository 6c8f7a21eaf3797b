"""The paper's data sets below a root, and made ones of the same names."""

from dataclasses import dataclass, replace
from pathlib import Path

from sisod import paper
from sisod.common.errors import InputError
from sisod.common.folders import write_folder
from sisod.common.output import lock, readable_errors
from sisod.data.catalogue import KNOWN
from sisod.data.datasets import Dataset, DatasetFolders, find_known, open_dataset
from sisod.data.textured_scenes import write_scenes

TRAINING = "DUTS-TR"
_N_TRAINING, _N_TEST, _SIDE = 4, 2, 64  # of made sets: images, and their side


@dataclass(frozen=True)
class Sets:
    """What there is to train and test on.

    Attributes:
        training: DUTS-TR.
        tests: those of the paper's data sets that are there, in its order.
        notes: a sentence on each that is not, or cannot be used.
        incomplete: which have fewer images than the published set, a phrase; empty if none has.
    """

    training: Dataset
    tests: tuple[Dataset, ...]
    notes: tuple[str, ...]
    incomplete: str = ""


def find_sets(root: Path) -> Sets:
    """Return the data sets at or below a folder; DUTS-TR and one other must be there."""
    places = find_known(root)
    if TRAINING not in places:
        raise InputError(
            f"{str(root)!r} does not hold {TRAINING}, on which everything is trained; "
            f"'sisod datasets {root}' says what is there and where to get the others"
        )
    training = _opened(TRAINING, places[TRAINING])
    tests, notes = [], []
    missing = [name for name in paper.datasets() if name not in places]
    if missing:
        notes.append(
            f"{len(missing)} of the paper's {len(paper.datasets())} data sets are not below "
            f"{str(root)!r} ({', '.join(missing)}): their rows stay empty"
        )
    for name in paper.datasets():
        if name in places:
            try:
                tests.append(_opened(name, places[name]))
            except InputError as error:
                notes.append(f"{name} is left out: {error}")
    if not tests:
        raise InputError(
            f"{str(root)!r} holds none of the paper's data sets to test on "
            f"({', '.join(paper.datasets())}); add one, the others may follow later"
        )
    fewer = [
        f"{found.name} {len(found.samples)} of {KNOWN[found.name].count}"
        for found in (training, *tests)
        if len(found.samples) < KNOWN[found.name].count
    ]
    incomplete = f"not all images of the published sets: {', '.join(fewer)}" if fewer else ""
    return Sets(training, tuple(tests), tuple(notes), incomplete)


def make_sets(folder: Path) -> Path:
    """Write made scenes as all of the paper's data sets, unless they are there."""
    with readable_errors(folder, "make room there"), lock(folder, wait=True):  # processes want the same
        for seed, name in enumerate((TRAINING, *paper.datasets())):
            count = _N_TRAINING if name == TRAINING else _N_TEST
            if (folder / name).exists():
                continue
            with write_folder(folder / name, kind="scenes", overwrite=True) as unfinished:
                write_scenes(unfinished, count, seed=seed, shape=(_SIDE, _SIDE))
    return folder


def _opened(name: str, place: DatasetFolders) -> Dataset:
    if place.problem is not None:
        raise InputError(place.problem)
    if place.mask_dir is None:
        raise InputError(f"{str(place.image_dir)!r} has images but no folder of masks beside it")
    return replace(open_dataset(place.image_dir, masks=place.mask_dir), name=name)
