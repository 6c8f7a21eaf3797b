"""Files -> arrays: one rule for each kind of file, and refusals that name the file.

Grey 8-bit, 16-bit and float (TIFF) files are taken as they are; 1-bit files are 0 and 255. Colour,
palette and alpha files must be grey in fact: channels that differ by no more than 2/255 of the range
(lossy compression does that) and no transparency. `.npy` files hold one two-dimensional array.
"""

import io
import warnings
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.arrays import Map, as_map, as_mask
from sisod.errors import InputError, printable
from sisod.headers import MOST_PIXELS, has_transparent_level, image_size, tiff_tags
from sisod.storage import read_bytes

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".npy")
_GREY_TOLERANCE = 2 / 255
_PHOTOMETRIC, _WHITE_IS_ZERO = 262, 0  # a tag of TIFF and its value


def read_mask(root: str | Path, path: str, *, level: int) -> NDArray[np.bool_]:
    """Read one ground truth below a root."""
    array = read_array(root, path)
    try:
        return as_mask(array, level=level)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where(root, path)}: {error}") from error


def read_map(root: str | Path, path: str) -> Map:
    """Read one prediction below a root."""
    array = read_array(root, path)
    try:
        return as_map(array)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where(root, path)}: {error}") from error


def read_array(root: str | Path, path: str) -> NDArray[Any]:
    """Read one grey file below a root."""
    return decode(_content(root, path), where(root, path))


def read_colour(root: str | Path, path: str) -> NDArray[np.uint8]:
    """Read one image (BGR) below a root."""
    data, name = _content(root, path), where(root, path)
    return np.asarray(_decoded(data, name, cv2.IMREAD_COLOR), dtype=np.uint8)


def where(root: str | Path, path: str) -> str:
    """Return how messages name a file."""
    return printable(f"{str(root).rstrip('/')}/{path}")


def decode(data: bytes, name: str) -> NDArray[Any]:
    """Turn the content of a file into a two-dimensional array; `name` is for messages.

    Example:
        >>> _, data = cv2.imencode(".png", np.array([[0, 128], [255, 7]], dtype=np.uint8))
        >>> decode(data.tobytes(), "map.png")
        array([[  0, 128],
               [255,   7]], dtype=uint8)
    """
    if name.lower().endswith(".npy"):
        array = _decode_npy(data, name)
        _check_size(array.shape, name)
        return array
    array = _decoded(data, name, cv2.IMREAD_UNCHANGED)
    if has_transparent_level(data):
        raise InputError(_transparent(name))
    tags = tiff_tags(data)
    if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO and array.dtype == np.uint16:
        array = np.uint16(65535) - array  # OpenCV does this for fewer bits only
    return array if array.ndim == 2 else _grey(array, name)


def _transparent(name: str) -> str:
    return f"{name!r} has transparent pixels; expected an opaque grey map; flatten it first"


def _content(root: str | Path, path: str) -> bytes:
    try:
        return read_bytes(root, path)
    except OSError as error:
        raise InputError(f"{where(root, path)!r} cannot be read: {error.strerror or error}") from error


def _decoded(data: bytes, name: str, flags: int) -> NDArray[Any]:
    size = image_size(data)
    array = None
    if size is not None:  # what is not known here is not decoded: its size could be anything
        _check_size(size, name)
        before = _set_log_level(_LOG_ERRORS)  # the refusal says it
        try:
            array = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), flags)
        except cv2.error:
            array = None
        finally:
            _set_log_level(before)
    if array is None:
        raise InputError(f"{name!r} is not an image that can be read, or is cut short; replace the file")
    return np.asarray(array)


_LOG_ERRORS = 2


def _set_log_level(level: int) -> int:
    """Set what OpenCV prints on standard error; return what it was."""
    if hasattr(cv2, "setLogLevel"):  # up to OpenCV 4.12
        return int(cv2.setLogLevel(level))
    return int(cv2.utils.logging.setLogLevel(level))


def _check_size(size: tuple[int, ...], name: str) -> None:
    if size[0] * size[1] > MOST_PIXELS:
        raise InputError(
            f"{name!r} is {size[1]} x {size[0]} pixels; expected at most {MOST_PIXELS // 10**6} "
            "megapixels; scale it down, or leave it out"
        )


def _grey(array: NDArray[Any], name: str) -> NDArray[Any]:
    most = 1.0 if array.dtype.kind == "f" else float(np.iinfo(array.dtype).max)
    if np.ptp(array[..., :3].astype(np.float64), axis=2).max() > _GREY_TOLERANCE * most:
        raise InputError(
            f"{name!r} is a colour image whose channels differ; expected a grey map; "
            "convert it to grey as its values mean it"
        )
    if array.shape[2] == 4 and array[..., 3].min() < most:
        raise InputError(
            f"{name!r} has transparent pixels; expected an opaque grey map; flatten it first"
        )
    return np.ascontiguousarray(array[..., 1])


def _decode_npy(data: bytes, name: str) -> NDArray[Any]:
    try:
        if not data.startswith(b"\x93NUMPY"):
            raise ValueError
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            array = np.load(io.BytesIO(data), allow_pickle=False)
        if array.ndim != 2:
            raise ValueError
    except Exception:  # a broken header fails in more ways than NumPy documents
        raise InputError(
            f"{name!r} is not a .npy file of one two-dimensional array of numbers; "
            "save it with numpy.save"
        ) from None
    return np.asarray(array)
