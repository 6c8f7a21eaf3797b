"""The paper's data sets below a root, and synthetic ones with the same names."""

from dataclasses import dataclass, replace
from pathlib import Path

from sisod import paper
from sisod.common.exceptions import InputError
from sisod.common.output import lock, readable_errors
from sisod.common.run_folder import write_folder
from sisod.data.catalogue import KNOWN
from sisod.data.datasets import Dataset, DatasetFolders, find_known, open_dataset
from sisod.data.textured_scenes import write_scenes

TRAINING = "DUTS-TR"
_N_TRAINING, _N_TEST, _SIDE = 4, 2, 64  # synthetic sets: images, and their side


@dataclass(frozen=True)
class Sets:
    """The data sets to train and test on.

    Attributes:
        training: DUTS-TR.
        tests: the paper's test sets that are available, in the paper's order.
        notes: warnings about those that are missing or cannot be used.
        incomplete: names the sets with fewer images than published, as a phrase; empty if none.
    """

    training: Dataset
    tests: tuple[Dataset, ...]
    notes: tuple[str, ...]
    incomplete: str = ""


def find_sets(root: Path) -> Sets:
    """Return the data sets at or below a folder; DUTS-TR and a test set are required."""
    locations, names = find_known(root), paper.datasets()
    tests, notes = [], []
    if missing := [name for name in names if name not in locations]:
        notes.append(
            f"{len(missing)} of the paper's {len(names)} data sets are not below {str(root)!r} "
            f"({', '.join(missing)}): their rows stay empty"
        )
    for name in names:
        if name in locations:
            try:
                tests.append(_open(name, locations[name]))
            except InputError as error:
                notes.append(f"{name} is left out: {error}")
    if TRAINING not in locations or not tests:
        raise InputError(
            f"{str(root)!r} must hold {TRAINING}, on which everything is trained, and one or more of "
            f"{', '.join(names)}; 'sisod datasets {root}' says what is there and where to get the others"
        )
    training = _open(TRAINING, locations[TRAINING])
    fewer = [
        f"{dataset.name} {len(dataset.samples)} of {KNOWN[dataset.name].count}"
        for dataset in (training, *tests)
        if len(dataset.samples) < KNOWN[dataset.name].count
    ]
    incomplete = f"not all images of the published sets: {', '.join(fewer)}" if fewer else ""
    return Sets(training, tuple(tests), tuple(notes), incomplete)


def write_synthetic_sets(folder: Path) -> Path:
    """Write synthetic scenes under the names of the paper's data sets, unless they exist."""
    with readable_errors(folder, "make room there"), lock(folder, wait=True):  # processes share them
        for seed, name in enumerate((TRAINING, *paper.datasets())):
            count = _N_TRAINING if name == TRAINING else _N_TEST
            if (folder / name).exists():
                continue
            with write_folder(folder / name, kind="scenes", overwrite=True) as unfinished:
                write_scenes(unfinished, count, seed=seed, shape=(_SIDE, _SIDE))
    return folder


def _open(name: str, location: DatasetFolders) -> Dataset:
    if location.problem is not None:
        raise InputError(location.problem)
    if location.mask_dir is None:
        raise InputError(f"{str(location.image_dir)!r} has images but no folder of masks beside it")
    return replace(open_dataset(location.image_dir, masks=location.mask_dir), name=name)
