"""Reading of NumPy's files: without pickle, and sizes are checked before memory is taken."""

import io
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.common.errors import InputError, shorten_list
from sisod.data.headers import check_size

_MOST_HEADER = 1 << 17  # bytes of the header of an array, far more than NumPy writes


def decode_npy(data: bytes, name: str) -> NDArray[Any]:
    """Return the array of a .npy file; `name` is for messages."""
    try:
        layout = _read_layout(data, name)
        if layout.end > len(data):
            raise ValueError
    except InputError:
        raise
    except Exception:  # a broken header raises more than NumPy documents
        raise InputError(
            f"{name!r} is not a .npy file of one two-dimensional array of numbers; "
            "save it with numpy.save"
        ) from None
    check_size(layout.shape, layout.dtype.itemsize, name)
    return _array(data, layout)


def decode_npz(data: bytes, name: str, arrays: Sequence[str]) -> NDArray[Any]:
    """Return one array of a .npz file: the only one, or of several the first of these names.

    An array is unpacked only after the size that its header states was checked.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [entry[:-4] for entry in archive.namelist() if entry.endswith(".npy")]
            chosen = names[0] if len(names) == 1 else next(iter(n for n in arrays if n in names), None)
            if chosen is not None:
                with archive.open(f"{chosen}.npy") as file:
                    head = file.read(_MOST_HEADER)
                    layout = _read_layout(head, name)
                    check_size(layout.shape, layout.dtype.itemsize, name)
                    values = head + file.read(max(0, layout.end - len(head)))
                if layout.end > len(values):
                    raise ValueError
                return _array(values, layout)
    except InputError:
        raise
    except Exception:  # a broken archive raises more than zipfile documents
        raise InputError(
            f"{name!r} is not a .npz file of two-dimensional arrays of numbers; "
            "save it with numpy.savez or numpy.savez_compressed"
        ) from None
    expected = " or ".join(repr(array) for array in arrays)
    raise InputError(
        f"{name!r} holds {len(names)} arrays ({shorten_list(sorted(names))}); expected one array, "
        f"or one of them to be called {expected}"
    )


@dataclass(frozen=True)
class _Layout:
    """What the header of an array states: where its values are, and how they are stored."""

    shape: tuple[int, int]
    by_columns: bool
    dtype: np.dtype[Any]
    begin: int

    @property
    def end(self) -> int:
        return self.begin + self.shape[0] * self.shape[1] * self.dtype.itemsize


def _read_layout(data: bytes, name: str) -> _Layout:
    """Return the layout of an array of two dimensions; raise for any other, and for objects."""
    form: Any = np.lib.format  # has no type hints
    file = io.BytesIO(data)  # shares the bytes
    version = form.read_magic(file)
    reader = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}[version]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for headers written by Python 2
        shape, by_columns, dtype = reader(file)
    if dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError
    if len(shape) != 2:
        raise InputError(
            f"{name!r} holds an array of shape {shape}; expected height and width; remove the other "
            "dimensions, as numpy.squeeze does where their size is 1"
        )
    height, width = shape
    return _Layout((height, width), by_columns, dtype, file.tell())


def _array(data: bytes, layout: _Layout) -> NDArray[Any]:
    if layout.end == layout.begin:
        return np.empty(layout.shape, layout.dtype)
    # a view of the bytes of the file, without a copy unless they are not aligned
    flat = np.frombuffer(memoryview(data)[layout.begin : layout.end], layout.dtype)
    aligned = np.require(flat, requirements="A")
    return aligned.reshape(layout.shape, order="F" if layout.by_columns else "C")
