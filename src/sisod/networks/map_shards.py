"""Maps packed into Parquet or tar shards while they are predicted.

Every map is a file first. Once the next 500 in the order of their images are there, they are packed into
a shard and removed, so a run that is killed loses nothing, and at no time there are many small files.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from sisod.common.output import output_path, write_atomically
from sisod.data.containers import list_members, open_shard
from sisod.data.containers.parquet import parquet_file
from sisod.data.containers.tar import tar_file

Container = Literal["parquet", "tar"]
CONTAINERS: tuple[Container, ...] = get_args(Container)
COLUMN = "prediction"
SHARD = 500  # maps
_PATTERN = "maps-*.{}"


class MapShards:
    """The shards of a folder of maps.

    Args:
        folder: where maps are written, and then shards.
        container: format of the shards.
        names: of all images, in order.
    """

    def __init__(self, folder: Path, container: Container, names: Sequence[str]) -> None:
        self.folder, self.container = folder, container
        packed = packed_names(folder)
        self.n_shards = len(_shard_files(folder))
        self.unpacked = [name for name in names if name not in packed]
        for name in packed:  # of a run that was killed before it removed them
            self._path(name).unlink(missing_ok=True)

    def pack(self, *, rest: bool = False) -> None:
        """Pack as many whole shards as there are maps for; with `rest`, also the last, smaller one."""
        while self.unpacked:
            group = self.unpacked[:SHARD]
            if not rest and (len(group) < SHARD or not self._are_written(group)):
                return
            members = {f"{name}.png": self._path(name).read_bytes() for name in group}
            write_atomically(
                self.folder / f"maps-{self.n_shards:05d}.{self.container}",
                tar_file(members) if self.container == "tar" else parquet_file(members, column=COLUMN),
            )
            for name in group:
                self._path(name).unlink()
            self.n_shards += 1
            self.unpacked = self.unpacked[SHARD:]

    def finish(self) -> None:
        """Pack the last maps, and remove the folders that they were in."""
        self.pack(rest=True)
        for path in sorted((path for path in self.folder.rglob("*") if path.is_dir()), reverse=True):
            with suppress(OSError):  # of the user: not empty
                path.rmdir()

    def _are_written(self, names: Sequence[str]) -> bool:
        # the last first: mostly it is missing, and the others need not be looked for
        return all(self._path(name).exists() for name in reversed(names))

    def _path(self, name: str) -> Path:
        return output_path(self.folder, name, ".png")


def packed_names(folder: Path) -> set[str]:
    """Return the names of the maps in the shards of a folder."""
    return {
        member.name.removesuffix(".png")
        for file in _shard_files(folder)
        for member in list_members(open_shard(str(file)))
    }


def _shard_files(folder: Path) -> list[Path]:
    return [path for kind in CONTAINERS for path in sorted(folder.glob(_PATTERN.format(kind)))]
