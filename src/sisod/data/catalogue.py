"""The data sets of the paper (`catalogue.toml`): image counts, folder names, web pages."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from sisod.data.pairs import normalise


@dataclass(frozen=True)
class Known:
    """A data set that many papers use.

    Attributes:
        name: as tables write it.
        title: what the name stands for.
        count: number of images.
        description: its particular features (the paper's table of data sets).
        url: the page of its authors.
        aliases: other names of its folder, without case and punctuation.
        layouts: image and mask folders that `IMAGE_WORDS` and `MASK_WORDS` do not cover.
    """

    name: str
    title: str
    count: int
    description: str
    url: str
    aliases: tuple[str, ...] = ()
    layouts: tuple[tuple[str, str], ...] = ()

    @property
    def spellings(self) -> tuple[str, ...]:
        """All names of its folder, without case and punctuation, the longest first."""
        return tuple(sorted({normalise(self.name), *self.aliases}, key=lambda name: (-len(name), name)))


_TABLE = files("sisod.data").joinpath("catalogue.toml").read_text(encoding="utf-8")
KNOWN = {name: Known(name, **facts) for name, facts in tomllib.loads(_TABLE).items()}


def recognise(name: str, parent: str = "") -> Known | None:
    """Return the data set that a folder name stands for; None if it is none of the known ones.

    Args:
        name: of the folder.
        parent: name of the folder above, which counts too, as in `DUTS/Train` and `ECSSD/Test`.

    Example:
        >>> [known.name for known in (recognise("hku_is"), recognise("Train", "DUTS")) if known]
        ['HKU-IS', 'DUTS-TR']
    """
    for known in KNOWN.values():
        if normalise(name) in known.spellings or normalise(parent + name) in known.spellings:
            return known
        is_test = normalise(name) == "test" and known.name != "DUTS-TR"
        if is_test and normalise(parent) in known.spellings:
            return known
    return None
