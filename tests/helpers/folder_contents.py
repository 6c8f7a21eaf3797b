"""What is in a folder."""

from pathlib import Path


def names(folder: Path | str = ".") -> list[str]:
    """Return the sorted names of the entries of a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


def content(folder: Path | str) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }
