"""Tar archives: the position of every member, read from the headers alone; nothing is ever unpacked.

The reader is strict. It takes plain files and folders, with long names as GNU tar and POSIX (pax) write
them, and refuses links, devices, sparse files and names that lead out of the archive. Every size is
compared with the size of the file before it is used, so a header cannot make it read or wait for more.
"""

import io
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sisod.common.errors import InputError, printable
from sisod.common.output import stays_inside
from sisod.data.containers.source import ReadAt, file_state, open_file

_BLOCK = 512
_MOST_HEADER = 1 << 20  # bytes of a long name or of pax records
_PLAIN = (b"0", b"\0", b"7")
_FOLDER, _GNU_NAME, _GNU_LINK, _PAX, _PAX_GLOBAL = b"5", b"L", b"K", b"x", b"g"
_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"S": "a sparse file",
}


class TarMember(NamedTuple):
    """A plain file: its name, and the positions of its first byte and of the one after its last."""

    name: str
    begin: int
    end: int


def tar_members(file: str) -> Iterator[TarMember]:
    """Yield the plain files of an archive in stored order."""
    try:
        size = file_state(file).size
        with open_file(file) as read_at:
            yield from _Walk(file, read_at, size).members()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{printable(file)!r} cannot be read: {reason}") from error


class _Walk:
    """One pass over the headers of an archive."""

    def __init__(self, file: str, read_at: ReadAt, size: int) -> None:
        self.file, self.read_at, self.size = file, read_at, size
        self.position = 0  # of the next header

    def members(self) -> Iterator[TarMember]:
        name: str | None = None  # from a header that precedes the member's own
        length: int | None = None
        while (block := self._header()) is not None:
            kind = block[156:157]
            if kind in (_GNU_NAME, _GNU_LINK, _PAX, _PAX_GLOBAL):
                content = self._content(block)
                if kind == _GNU_NAME:
                    name = self._text(content.rstrip(b"\0"))
                elif kind == _PAX:
                    records = self._pax(content)
                    name = self._text(records[b"path"]) if b"path" in records else name
                    length = self._decimal(records[b"size"]) if b"size" in records else length
                continue
            plain_name = name if name is not None else self._name(block)
            begin, end = self._span(block, plain_name, length)
            name = length = None
            if kind == _FOLDER or (kind == b"\0" and plain_name.endswith("/")):
                continue
            if kind not in _PLAIN:
                what = _KINDS.get(kind, f"of the unknown type {kind!r}")
                raise InputError(
                    f"{self.file!r}: the member {printable(plain_name)!r} is {what}; expected plain "
                    "files only; pack the archive again without it"
                )
            yield TarMember(self._checked(plain_name), begin, end)

    def _header(self) -> bytes | None:
        """Read the next header; None at the end of the archive."""
        block = self.read_at(self.position, _BLOCK)
        if not block:
            if self.position == 0:
                raise InputError(f"{self.file!r} is empty; expected a tar archive")
            raise self._cut()
        if len(block) < _BLOCK:
            raise self._cut() if self.position else self._no_tar()
        if not block.strip(b"\0"):
            self._check_end()
            return None
        if sum(block) - sum(block[148:156]) + 8 * 32 != self._number(block[148:156]):
            raise self._no_tar()
        self.position += _BLOCK
        return block

    def _check_end(self) -> None:
        """Refuse members behind the end: archives that were joined would lose all but the first."""
        position = self.position
        while content := self.read_at(position, 1 << 20):
            if content.strip(b"\0"):
                raise InputError(
                    f"{self.file!r} has content behind its end, like archives that were joined byte by "
                    "byte; expected one archive a file; split it"
                )
            position += len(content)

    def _span(self, block: bytes, name: str, length: int | None) -> tuple[int, int]:
        """Return where the content is, and move on to the next header."""
        begin = self.position
        if length is None:
            length = self._number(block[124:136])
        if begin + length > self.size:
            raise InputError(
                f"{self.file!r} is cut short or damaged: the member {printable(name)!r} should have "
                f"{length} bytes and {self.size - begin} are left; copy the archive again"
            )
        self.position = begin + -(-length // _BLOCK) * _BLOCK
        return begin, begin + length

    def _content(self, block: bytes) -> bytes:
        """Return the content of a header that belongs to the next member."""
        begin, end = self._span(block, "extended header", None)
        if end - begin > _MOST_HEADER:
            raise InputError(f"{self.file!r} has a header of {end - begin} bytes; it is not read")
        return self.read_at(begin, end - begin)

    def _pax(self, content: bytes) -> dict[bytes, bytes]:
        """Split pax records, each `LENGTH KEY=VALUE` and a line break."""
        records: dict[bytes, bytes] = {}
        while content:
            digits, space, _ = content.partition(b" ")
            length = self._decimal(digits)
            key, equals, value = content[len(digits) + 1 : length].partition(b"=")
            if not space or not equals or not value.endswith(b"\n") or length > len(content):
                raise self._damaged()
            if key.startswith(b"GNU.sparse"):
                raise InputError(
                    f"{self.file!r} holds a sparse file; expected plain files only; pack it again "
                    "without --sparse"
                )
            records[key] = value[:-1]
            content = content[length:]
        return records

    def _name(self, block: bytes) -> str:
        name = block[:100].partition(b"\0")[0]
        prefix = block[345:500].partition(b"\0")[0] if block[257:263] == b"ustar\0" else b""
        return self._text(prefix + b"/" + name if prefix else name)

    def _checked(self, name: str) -> str:
        name = name.removeprefix("./")
        if not stays_inside(name):
            raise InputError(
                f"{self.file!r}: the member {printable(name)!r} has a name that leads out of the "
                "archive; pack it again with relative names"
            )
        return name

    def _text(self, name: bytes) -> str:
        return name.decode("utf-8", errors="surrogateescape")

    def _number(self, field: bytes) -> int:
        """Read a number: octal digits, or binary if the first bit is set."""
        if field[0] == 0x80:
            return int.from_bytes(field[1:], "big")
        digits = field.strip(b" \0")
        if not all(digit in b"01234567" for digit in digits):
            raise self._no_tar()
        return int(digits or b"0", 8)

    def _decimal(self, digits: bytes) -> int:
        if not 0 < len(digits) <= 20 or not digits.isdigit():
            raise self._damaged()
        return int(digits)

    def _no_tar(self) -> InputError:
        if self.position == 0:
            return InputError(f"{self.file!r} is not a tar archive that can be read; replace the file")
        return self._damaged()

    def _damaged(self) -> InputError:
        return InputError(
            f"{self.file!r} is damaged: there is no valid header at byte {self.position}; copy it again"
        )

    def _cut(self) -> InputError:
        return InputError(
            f"{self.file!r} is cut short: its end is missing after byte {self.position}; copy it again"
        )


def tar_file(members: Mapping[str, bytes]) -> bytes:
    """Return files as an archive; the same files give the same bytes.

    Example:
        >>> len(tar_file({"night/im1.png": b"..."}))
        10240
    """
    import tarfile

    buffer = io.BytesIO()
    with tarfile.TarFile(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
