"""A file below a root: in a folder, below a URL, or inside a container."""

from dataclasses import dataclass

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".npy", ".npz")
_SYSTEM_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")
MOST_CONTENT = 1 << 31  # bytes of a file that is read: twice what the largest image takes unpacked


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


def has_image_extension(path: str) -> bool:
    """Tell whether a path ends in the extension of an image file."""
    return path.lower().endswith(EXTENSIONS)


def is_system_file(path: str) -> bool:
    """Tell whether an operating system put a file beside the user's own, such as `._im1.png` of macOS.

    Example:
        >>> [is_system_file(path) for path in ("night/._im1.png", "Thumbs.db", "night/im1.png")]
        [True, True, False]
    """
    name = path.rpartition("/")[2]
    return name.startswith("._") or name in _SYSTEM_FILES
