"""Files -> arrays: one rule for each kind of file, and refusals that name the file.

Grey 8-bit, 16-bit and float (TIFF) files are taken as they are; 1-bit files are 0 and 255. Colour,
palette and alpha files must be grey in fact: channels that differ by no more than 2 levels (lossy
compression does that) and no transparency. `.npy` files hold one two-dimensional array.
"""

import io
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.errors import InputError
from sisod.headers import MOST_PIXELS, image_size
from sisod.storage import read_bytes

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".npy")
_GREY_TOLERANCE = 2


def read_array(root: str | Path, path: str) -> NDArray[Any]:
    """Read one grey map or mask below a root."""
    where = f"{str(root).rstrip('/')}/{path}"
    try:
        data = read_bytes(root, path)
    except OSError as error:
        raise InputError(f"{where!r} cannot be read: {error.strerror or error}") from error
    return decode(data, where)


def decode(data: bytes, name: str) -> NDArray[Any]:
    """Turn the content of a file into a two-dimensional array; `name` is for messages.

    Example:
        >>> _, data = cv2.imencode(".png", np.array([[0, 128], [255, 7]], dtype=np.uint8))
        >>> decode(data.tobytes(), "map.png")
        array([[  0, 128],
               [255,   7]], dtype=uint8)
    """
    if name.lower().endswith(".npy"):
        return _decode_npy(data, name)
    size = image_size(data)
    if size is not None and size[0] * size[1] > MOST_PIXELS:
        raise InputError(
            f"{name!r} is {size[1]} x {size[0]} pixels; expected at most {MOST_PIXELS // 10**6} "
            "megapixels; scale it down, or leave it out"
        )
    try:
        array = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error:
        array = None
    if array is None:
        raise InputError(f"{name!r} is not an image that can be read, or is cut short; replace the file")
    return np.asarray(array) if array.ndim == 2 else _grey(np.asarray(array), name)


def _grey(array: NDArray[Any], name: str) -> NDArray[Any]:
    colours = array[..., :3].astype(np.float32)
    if np.ptp(colours, axis=2).max() > _GREY_TOLERANCE:
        raise InputError(
            f"{name!r} is a colour image whose channels differ; expected a grey map; "
            "convert it to grey as its values mean it"
        )
    if array.shape[2] == 4 and array[..., 3].min() < np.iinfo(array.dtype).max:
        raise InputError(
            f"{name!r} has transparent pixels; expected an opaque grey map; flatten it first"
        )
    return np.ascontiguousarray(array[..., 1])


def _decode_npy(data: bytes, name: str) -> NDArray[Any]:
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
        if not isinstance(array, np.ndarray) or array.ndim != 2:
            raise ValueError
        return array
    except (ValueError, EOFError, MemoryError, OSError):
        raise InputError(
            f"{name!r} is not a .npy file of one two-dimensional array of numbers; "
            "save it with numpy.save"
        ) from None
