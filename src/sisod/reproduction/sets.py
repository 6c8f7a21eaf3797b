"""The paper's data sets below a root, and synthetic ones with the same names."""

from dataclasses import dataclass, replace
from pathlib import Path

from sisod import paper
from sisod.common.exceptions import InputError
from sisod.common.output import lock, readable_errors
from sisod.common.run_folder import open_run
from sisod.data.catalogue import KNOWN
from sisod.data.datasets import Dataset, find_known, open_dataset
from sisod.data.scenes import write_scenes
from sisod.reproduction.cells import DUTS_TR


@dataclass(frozen=True)
class Sets:
    """The data sets to train and test on.

    Attributes:
        training: DUTS-TR.
        tests: the paper's test sets that are available, in the paper's order.
        notes: warnings about those that are missing or cannot be used.
    """

    training: Dataset
    tests: tuple[Dataset, ...]
    notes: tuple[str, ...]

    @property
    def incomplete(self) -> str:
        """Names the sets with fewer images than published, as a phrase; empty if there are none."""
        counts = {one.name: len(one.samples) for one in (self.training, *self.tests)}
        fewer = [
            f"{name} {n} of {KNOWN[name].count}" for name, n in counts.items() if n < KNOWN[name].count
        ]
        return f"not all images of the published sets: {', '.join(fewer)}" if fewer else ""


def find_sets(root: Path) -> Sets:
    """Return the data sets at or below a folder; DUTS-TR and a test set are required."""
    locations, names = find_known(root), paper.datasets()
    sets, notes = {}, []
    if missing := [name for name in names if name not in locations]:
        notes.append(
            f"{len(missing)} of the paper's {len(names)} data sets are not below {str(root)!r} "
            f"({', '.join(missing)}): their rows stay empty"
        )
    for name in (DUTS_TR, *names):
        if (location := locations.get(name)) is None:
            continue
        problem = location.problem or ("" if location.mask_dir else "it has images but no masks")
        if not problem:
            try:
                dataset = open_dataset(location.image_dir, masks=location.mask_dir)
                sets[name] = replace(dataset, name=name)
            except InputError as error:
                problem = str(error)
        if problem:
            notes.append(f"{name} is left out: {problem}")
    training = sets.pop(DUTS_TR, None)
    if training is None or not sets:
        raise InputError(
            f"{str(root)!r} must hold {DUTS_TR}, on which everything is trained, and one or more of "
            f"{', '.join(names)}; 'sisod datasets {root}' says what is there and where to get the others"
        )
    return Sets(training, tuple(sets.values()), tuple(notes))


def write_synthetic_sets(folder: Path) -> Path:
    """Write synthetic scenes under the names of the paper's data sets, unless they exist."""
    with readable_errors(folder, "make room there"), lock(folder, wait=True):  # processes share them
        for seed, name in enumerate((DUTS_TR, *paper.datasets())):
            if not (folder / name).exists():
                with open_run(folder / name, kind="scenes", overwrite=True) as run:
                    run.begin()
                    write_scenes(run.path, 4 if name == DUTS_TR else 2, seed=seed, shape=(64, 64))
                    run.finish()
    return folder
