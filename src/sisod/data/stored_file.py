"""A file below a root: in a folder, below a URL, or inside a container."""

from dataclasses import dataclass
from typing import NamedTuple

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".npy", ".npz")
_OF_WINDOWS = ("Thumbs.db", "desktop.ini")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file below a root: its relative path, with slashes, and a stamp that differs once it changed.

    Inside a container, `path` also says where the content is, and `member` is the file's name there.
    `is_image` is set if the container declares the content an image, whatever the name.
    """

    path: str
    stamp: str
    member: str = ""
    is_image: bool = False

    @property
    def name(self) -> str:
        """The path that names the image."""
        return self.member or self.path


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a container.

    Attributes:
        file: its path or URL.
        prefix: its path below the root and a slash, empty if it is the root.
        selection: a column of Parquet or an extension in a tar, empty for the default.
        stamp: differs once the file changed.
    """

    file: str
    prefix: str
    selection: str
    stamp: str


class Place(NamedTuple):
    """Where the content of a member is: `place` is a range of bytes in a tar, or a row of Parquet."""

    file: str
    selection: str
    place: str


def has_image_extension(path: str) -> bool:
    """Tell whether a path ends in the extension of an image file."""
    return path.lower().endswith(EXTENSIONS)


def is_hidden(path: str) -> bool:
    """Tell whether a file is none of the user's images: hidden, or added by an operating system.

    A file is hidden if its name, or that of a folder on its path, begins with a dot. In an archive, `..`
    is not hidden but leads elsewhere.

    Example:
        >>> [is_hidden(path) for path in ("night/.im1.png", ".cache/im1.png", "night/im1.png")]
        [True, True, False]
    """
    names = path.split("/")
    dotted = (name.startswith(".") and name not in (".", "..") for name in names)
    return any(dotted) or "__MACOSX" in names or names[-1] in _OF_WINDOWS
