"""Reading of image files: one rule for each kind of file, and errors that name the file.

Grey 8-bit, 16-bit and float (TIFF) files are taken as they are; 1-bit files are 0 and 255. Colour,
palette and alpha files must have grey pixels: channels that differ by no more than 2/255 of the range
(lossy compression does that) and no transparency. `.npy` and `.npz` files hold two-dimensional arrays.
Label maps and class maps are read as numbers: of a palette file, the indices and not the colours.

Photographs, masks and maps are all read in the orientation in which a viewer shows them: that of EXIF is
applied, in JPEG, PNG, WebP and TIFF.
"""

import ctypes
import io
import os
import warnings
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.exceptions import InputError, printable, shorten_list
from sisod.common.processes import is_out_of_memory
from sisod.data.files import EXTENSIONS
from sisod.data.headers import Header, check_size, palette_as_grey, read_header
from sisod.data.storage import read_bytes

TRUTH_ARRAYS = ("mask", "labels")  # names in a .npz file of several arrays, the first that is there
_NUMPY = {".npy": b"\x93NUMPY", ".npz": b"PK\x03\x04"}  # how the content of these files begins
_GREY_TOLERANCE = 2 / 255
_log: Any = cv2 if hasattr(cv2, "setLogLevel") else cv2.utils.logging  # from OpenCV 4.13 on
_MOST_HEADER = 1 << 17  # bytes of the header of a NumPy array, far more than NumPy writes


def read_array(root: str | Path, path: str) -> NDArray[Any]:
    """Return the array of one grey file below a root; see `decode`.

    Args:
        root: folder, container or URL.
        path: of the file below it.
    """
    return decode(read_bytes(root, path), display_path(root, path))


def read_colour(root: str | Path, path: str) -> NDArray[np.uint8]:
    """Return one image below a root as a viewer shows it, (height, width, 3) in OpenCV's order BGR.

    Args:
        root: folder, container or URL.
        path: of the file below it.

    Raises:
        InputError: the file is damaged, too large, or no image.
    """
    # rotated here: which formats OpenCV rotates depends on its version
    flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    array, header = _decode_image(read_bytes(root, path), display_path(root, path), flags)
    return np.asarray(_upright(array, header.orientation), dtype=np.uint8)


def display_path(root: str | Path, path: str) -> str:
    """Return the name of a file for messages.

    Example:
        >>> display_path("masks/", "night/im1.png")
        'masks/night/im1.png'
    """
    return printable(f"{str(root).rstrip('/')}/{path}")


def decode(
    data: bytes, name: str, *, arrays: Sequence[str] = TRUTH_ARRAYS, indices: bool = False
) -> NDArray[Any]:
    """Return the content of a file as a two-dimensional array.

    Args:
        data: the content.
        name: of the file, for messages.
        arrays: names of the array to take from a .npz file that holds several, best first.
        indices: the values are numbers and not grey levels: return the indices of a palette PNG and not
            its colours, and raise if anything may have changed a number.

    Raises:
        InputError: it is damaged, too large, or no grey image.

    Example:
        >>> _, data = cv2.imencode(".png", np.array([[0, 128], [255, 7]], dtype=np.uint8))
        >>> decode(data.tobytes(), "map.png")
        array([[  0, 128],
               [255,   7]], dtype=uint8)
    """
    lower = name.lower()
    for kind, beginning in _NUMPY.items():  # by the content only if it is a column that has the name
        if lower.endswith(kind) or (data.startswith(beginning) and not lower.endswith(EXTENSIONS)):
            return _decode_numpy(data, name, arrays, is_archive=kind == ".npz")
    data, factor = palette_as_grey(data) if indices else (data, 1)
    array, header = _decode_image(data, name, cv2.IMREAD_UNCHANGED)
    if indices and header.is_lossy:  # whatever its name
        raise InputError(
            f"{name!r} is a JPEG or lossy WebP file, which changes numbers; save them as PNG"
        )
    if header.white_is_zero and array.dtype != np.uint8:  # OpenCV inverts only that
        np.subtract(_white(array.dtype), array, out=array)
    if header.hidden_channels or array.ndim == 3:
        tolerance = 0.0 if indices else _GREY_TOLERANCE * float(_white(array.dtype))
        array = _grey_channel(array, name, header, tolerance=tolerance)
    if factor > 1:
        array //= factor
    return _upright(array, header.orientation)


def _decode_image(data: bytes, name: str, flags: int) -> tuple[NDArray[Any], Header]:
    """Return what OpenCV decodes, and the header, whose size was checked before.

    Meanwhile OpenCV logs nothing, and libpng and libjpeg print nothing: our own message names the file.
    Those two print to the C library's `stderr`, which is replaced by a stream to the null device where
    the C library is glibc. Python's own standard error is another stream to the same file, and stays.
    Threads may overlap: what is put back is always what was there at first.
    """
    header, array = read_header(data), None
    if header is not None:  # an unknown format is not decoded: its size could be anything
        check_size((header.height, header.width), header.pixel_bytes, name)
        if not header.is_cut:
            level, stderr, screen, null = _decoder_output()
            _log.setLogLevel(0)
            stderr.value = null
            try:
                array = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), flags)
            except cv2.error as error:
                if is_out_of_memory(error):
                    raise
            finally:
                stderr.value = screen
                _log.setLogLevel(level)
    if header is None or array is None:
        raise InputError(f"{name!r} is not an image that can be read, or is cut short; replace the file")
    return np.asarray(array), header


@cache
def _decoder_output() -> tuple[int, ctypes.c_void_p, int | None, int | None]:
    """Return OpenCV's log level; glibc's variable `stderr`, its value, and a stream to nowhere."""
    level = int(_log.getLogLevel())
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018  (with other C libraries it cannot be replaced)
        libc.fopen.restype = ctypes.c_void_p
        stderr = ctypes.c_void_p.in_dll(libc, "stderr")
        return level, stderr, stderr.value, libc.fopen(os.devnull.encode(), b"we") or stderr.value
    except (AttributeError, OSError, TypeError, ValueError):
        return level, ctypes.c_void_p(), None, None


def _upright(array: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Rotate or flip the stored pixels according to the orientation of EXIF, 1 to 8."""
    if orientation == 1:
        return array
    if orientation >= 5:
        array = array.swapaxes(0, 1)
    rows = -1 if orientation in (3, 4, 7, 8) else 1
    columns = -1 if orientation in (2, 3, 6, 7) else 1
    return np.ascontiguousarray(array[::rows, ::columns])


def _white(dtype: np.dtype[Any]) -> Any:
    return dtype.type(1 if dtype.kind == "f" else np.iinfo(dtype).max)


def _grey_channel(array: NDArray[Any], name: str, header: Header, *, tolerance: float) -> NDArray[Any]:
    """Return one channel of an opaque image whose colours differ by no more than a tolerance."""
    has_alpha = array.ndim == 3 and array.shape[2] == 4
    # written so that NaN is not opaque
    if header.hidden_channels or (has_alpha and not array[..., 3].min() >= _white(array.dtype)):
        raise InputError(
            f"{name!r} has transparency or other channels; expected an opaque grey map; flatten it first"
        )
    blue, green, red = array[..., 0], array[..., 1], array[..., 2]
    with np.errstate(invalid="ignore"):
        highest = np.maximum(np.maximum(blue, green), red)
        lowest = np.minimum(np.minimum(blue, green), red)
        agree = highest - lowest <= tolerance
    if not (agree | np.isnan(green)).all():  # NaN is an error elsewhere, with its own message
        raise InputError(
            f"{name!r} is a colour image whose channels differ; expected a grey map; "
            "convert it to grey as its values mean it"
        )
    return np.ascontiguousarray(array[..., 1])


def _decode_numpy(data: bytes, name: str, arrays: Sequence[str], *, is_archive: bool) -> NDArray[Any]:
    """Return the array of a .npy file; of a .npz file the only one, or the first of these names.

    Nothing is unpickled, and sizes are checked before memory is taken.
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
    """Read the header, check the size that it states, and only then read the values."""
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


def resize(plane: NDArray[np.uint8], size: int | tuple[int, int]) -> NDArray[np.uint8]:
    """Scale to a square, or to height and width.

    Area interpolation when shrinking, so that no small object is skipped.

    Example:
        >>> resize(np.array([[0, 0, 0, 200]], dtype=np.uint8), (1, 2))
        array([[  0, 100]], dtype=uint8)
    """
    height, width = (size, size) if isinstance(size, int) else size
    shrinks = plane.shape[0] > height or plane.shape[1] > width
    interpolation = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.asarray(
        cv2.resize(np.ascontiguousarray(plane), (width, height), interpolation=interpolation)
    )
