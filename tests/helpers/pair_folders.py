"""Folders of predictions and ground truths without images, for tests of pairing and listing by name."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from helpers.platforms import slashes
from sisod.common.exceptions import InputError
from sisod.data.pairs import Pairing, pair_files


def fill(root: Path, paths: Iterable[str]) -> Path:
    """Make a folder of files of one byte each: pairing looks at names only."""
    root.mkdir()
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x")
    return root


class Folders:
    """A folder `preds` of predictions and a folder `gts` of ground truths."""

    def __init__(self, preds: Iterable[str], gts: Iterable[str]) -> None:
        self.preds = fill(Path("preds"), preds)
        self.gts = fill(Path("gts"), gts)

    def pair(self, **options: Any) -> Pairing:
        """Pair predictions and ground truths."""
        return pair_files("preds", "gts", **options)

    def paired(self, **options: Any) -> list[tuple[str, str, str]]:
        """Return the name and the two paths of every pair."""
        return [(p.name, p.pred.path, p.gt.path) for p in self.pair(**options).pairs]

    def refusal(self, **options: Any) -> str:
        """Return the error message of folders that cannot be paired."""
        with pytest.raises(InputError) as caught:
            self.pair(**options)
        return slashes(str(caught.value))
