"""Reading of NumPy's files: without pickle, and sizes are checked before memory is taken."""

import io
import warnings
import zipfile
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sisod.common.exceptions import InputError, shorten_list
from sisod.data.headers import check_size

_MOST_HEADER = 1 << 17  # bytes of the header of an array, far more than NumPy writes


def decode_numpy(data: bytes, name: str, arrays: Sequence[str], *, is_archive: bool) -> NDArray[Any]:
    """Return the array of a .npy file; of a .npz file the only one, or the first of these names.

    Args:
        data: content of the file.
        name: of the file, for messages.
        arrays: names of arrays in an archive of several, best first.
        is_archive: whether it is a .npz file.

    Raises:
        InputError: it is damaged, too large, or holds no two-dimensional array of numbers.
    """
    try:
        if not is_archive:
            return _read_array(io.BytesIO(data), name)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [entry[:-4] for entry in archive.namelist() if entry.endswith(".npy")]
            chosen = names if len(names) == 1 else [array for array in arrays if array in names]
            if not chosen:
                raise InputError(
                    f"{name!r} holds {len(names)} arrays ({shorten_list(sorted(names))}); expected one "
                    f"array, or one of them to be called {' or '.join(map(repr, arrays))}"
                )
            with archive.open(f"{chosen[0]}.npy") as file:
                return _read_array(file, name)
    except InputError:
        raise
    except Exception as error:  # a damaged file raises more than NumPy and zipfile document
        kind, writer = (".npz", "savez_compressed") if is_archive else (".npy", "save")
        raise InputError(
            f"{name!r} is not a {kind} file of two-dimensional arrays of numbers; save it with "
            f"numpy.{writer}"
        ) from error


def _read_array(file: IO[bytes], name: str) -> NDArray[Any]:
    """Read the header, check the size that it states, and only then the values."""
    form: Any = np.lib.format  # has no type hints
    head = io.BytesIO(file.read(_MOST_HEADER))
    version = form.read_magic(head)
    reader = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}[version]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for headers written by Python 2
        shape, by_columns, dtype = reader(head)
    if len(shape) != 2:
        raise InputError(
            f"{name!r} holds an array of shape {shape}; expected height and width; remove the other "
            "dimensions, as numpy.squeeze does where their size is 1"
        )
    check_size(shape, dtype.itemsize, name)
    content = np.empty(shape[0] * shape[1] * dtype.itemsize, dtype=np.uint8)
    file.seek(head.tell())
    if dtype.hasobject or file.readinto(content) < len(content):  # type: ignore[attr-defined]
        raise ValueError
    array: NDArray[Any] = content.view(dtype).reshape(shape, order="F" if by_columns else "C")
    return array
