"""Tar archives: where every member is, read from the headers alone; nothing is ever unpacked.

Only plain files and folders are accepted: links, devices, sparse files and names that lead out of the
archive are errors, and so is an archive that ends early or has content behind its end.
"""

import io
import tarfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

from sisod.common.exceptions import InputError, printable
from sisod.common.output import is_safe_relative_path
from sisod.data.files import (
    MOST_CONTENT,
    Place,
    Shard,
    StoredFile,
    file_state,
    has_image_extension,
    is_hidden,
    open_file,
    read_range,
)

_BLOCK = 512
_MOST_HEADER = 1 << 20  # bytes of a long name or of pax records


def selections(file: str) -> list[str]:
    """Return the extensions of the images, in WebDataset's naming: what follows the first dot."""
    names = (name.rpartition("/")[2] for name, _, _ in _members(file))
    return sorted({name.partition(".")[2] for name in names if has_image_extension(name)})


def members(shard: Shard) -> Iterator[StoredFile]:
    """Yield the files of an archive in stored order."""
    return (file for file, _, _ in _selected(shard))


def contents(shard: Shard) -> Iterator[tuple[StoredFile, bytes]]:
    """Yield the files of an archive in stored order with their content."""
    with open_file(shard.file) as stream:
        for file, begin, end in _selected(shard):
            stream.seek(begin)
            yield file, _complete(stream.read(end - begin), end - begin, shard.file)


def read(member: Place) -> bytes:
    """Return the content of one file."""
    begin, end = map(int, member.place.removeprefix("bytes ").split("-"))
    content = read_range(member.file, begin, min(end, begin + MOST_CONTENT))
    return _complete(content, end - begin, member.file)


def _complete(content: bytes, size: int, file: str) -> bytes:
    if len(content) != size:
        raise InputError(f"{file!r}: {len(content)} of {size} bytes of a member could be read")
    return content


def _selected(shard: Shard) -> Iterator[tuple[StoredFile, int, int]]:
    """Yield the selected files and where their content begins and ends."""
    for name, begin, end in _members(shard.file):
        path = f"{shard.prefix}bytes {begin}-{end}/{name}"
        folder, slash, last = name.rpartition("/")
        key, _, extension = last.partition(".")  # as WebDataset splits names
        if not shard.selection:
            yield StoredFile(path, shard.stamp, name), begin, end
        elif key and extension == shard.selection:
            yield StoredFile(path, shard.stamp, folder + slash + key, is_image=True), begin, end


def _members(file: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, begin and end of every file that is not hidden."""
    size = file_state(file).size
    with open_file(file) as stream:
        try:
            headers: Any = _Headers(stream)
            archive: Any = tarfile.TarFile(fileobj=headers, encoding="utf-8", errors="surrogateescape")
            while (member := archive.next()) is not None:
                archive.members.clear()  # they would take more and more memory
                if member.isdir():
                    continue
                name, end = member.name.removeprefix("./"), member.offset_data + member.size
                is_plain = member.isreg() and not member.issparse() and is_safe_relative_path(name)
                if not is_plain or not member.offset_data <= end <= size:
                    raise tarfile.ReadError(
                        f"member {name!r} is a link, device, pipe or sparse file, is larger than the "
                        "archive, or its name leads out of it"
                    )
                if not is_hidden(name):
                    yield name, member.offset_data, end
            _check_end(stream, archive.offset)
        except OSError:
            raise
        except Exception as error:  # a damaged archive raises more than tarfile documents
            raise InputError(
                f"{file!r} is not a tar archive that can be read: {printable(str(error))}; pack or copy "
                "it again"
            ) from error


class _Headers:
    """The part of a file's interface that `tarfile` needs; a header cannot make it read a lot."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._read, self.seek, self.tell = stream.read, stream.seek, stream.tell

    def read(self, size: int) -> bytes:
        """Read part of a header."""
        if not 0 <= size <= _MOST_HEADER:
            raise tarfile.ReadError(f"a header states a size of {size} bytes")
        return self._read(size)


def _check_end(stream: IO[bytes], position: int) -> None:
    """Raise if there are no zeros up to the end of the file.

    `tarfile` takes any header that it does not understand for the end: images would get lost.
    """
    stream.seek(position)
    block = stream.read(_BLOCK)
    is_whole = len(block) == _BLOCK
    while is_whole and block:
        is_whole = not block.strip(b"\0")
        block = stream.read(_MOST_HEADER)
    if not is_whole:
        raise tarfile.ReadError(
            f"it is cut short or damaged at byte {position}, or several archives were joined"
        )


def tar_file(files: Mapping[str, bytes]) -> bytes:
    """Return files as an archive; the same files give the same bytes.

    Example:
        >>> len(tar_file({"night/im1.png": b"..."}))
        10240
    """
    buffer = io.BytesIO()
    with tarfile.TarFile(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
