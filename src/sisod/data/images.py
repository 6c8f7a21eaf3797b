"""Reading of image files: one rule for each kind of file, and errors that name the file.

Grey 8-bit, 16-bit and float (TIFF) files are taken as they are; 1-bit files are 0 and 255. Colour,
palette and alpha files must have grey pixels: channels that differ by no more than 2/255 of the range
(lossy compression does that) and no transparency. `.npy` and `.npz` files hold two-dimensional arrays.
Label maps and class maps are read as numbers: of a palette file, the indices and not the colours.

Photographs, masks and maps are all read in the orientation in which a viewer shows them: that of EXIF is
applied, in JPEG, PNG, WebP and TIFF.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.errors import InputError, printable
from sisod.data.headers import Header, check_size, is_lossy, palette_as_grey, read_header
from sisod.data.numpy_files import decode_npy, decode_npz
from sisod.data.quiet import quiet_decoders
from sisod.data.storage import read_bytes
from sisod.data.stored_file import EXTENSIONS as EXTENSIONS
from sisod.scoring.arrays import Map, as_map, as_mask

TRUTH_ARRAYS = ("mask", "labels")  # names in a .npz file of several arrays, the first that is there
MAP_ARRAYS = ("pred",)
_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"  # how the content of .npy and .npz files begins
_GREY_TOLERANCE = 2 / 255
_STRIP = 1 << 18  # pixels that are converted at a time, to use little memory


def read_mask(root: str | Path, path: str, *, level: int) -> NDArray[np.bool_]:
    """Read one ground truth below a root."""
    return to_mask(read_array(root, path), where(root, path), level=level)


def to_mask(array: NDArray[Any], name: str, *, level: int) -> NDArray[np.bool_]:
    """Turn the array of a file into a ground truth; `name` is for messages."""
    try:
        return as_mask(array, level=level)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name}: {error}") from error


def read_map(root: str | Path, path: str) -> Map:
    """Read one prediction below a root."""
    return to_map(read_array(root, path, arrays=MAP_ARRAYS), where(root, path))


def to_map(array: NDArray[Any], name: str) -> Map:
    """Turn the array of a file into a prediction; `name` is for messages."""
    try:
        return as_map(array)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name}: {error}") from error


def read_array(
    root: str | Path, path: str, *, arrays: Sequence[str] = TRUTH_ARRAYS, indices: bool = False
) -> NDArray[Any]:
    """Read one grey file below a root; see `decode`."""
    return decode(read_content(root, path), where(root, path), arrays=arrays, indices=indices)


def read_colour(root: str | Path, path: str) -> NDArray[np.uint8]:
    """Read one image (BGR) below a root."""
    data, name = read_content(root, path), where(root, path)
    header = _checked_header(data, name)
    # rotated here: which formats OpenCV rotates depends on its version
    array = _decode_image(data, name, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    return np.asarray(_upright(array, header.orientation), dtype=np.uint8)


def where(root: str | Path, path: str) -> str:
    """Return the name of a file for messages."""
    return printable(f"{str(root).rstrip('/')}/{path}")


def decode(
    data: bytes, name: str, *, arrays: Sequence[str] = TRUTH_ARRAYS, indices: bool = False
) -> NDArray[Any]:
    """Turn the content of a file into a two-dimensional array.

    Args:
        data: the content.
        name: of the file, for messages.
        arrays: names of the array to take from a .npz file that holds several, best first.
        indices: the values are numbers and not grey levels: return the indices of a palette PNG and not
            its colours, and refuse whatever may have changed a number.

    Example:
        >>> _, data = cv2.imencode(".png", np.array([[0, 128], [255, 7]], dtype=np.uint8))
        >>> decode(data.tobytes(), "map.png")
        array([[  0, 128],
               [255,   7]], dtype=uint8)
    """
    if _has_kind(data, name, ".npy", _NPY):
        return decode_npy(data, name)
    if _has_kind(data, name, ".npz", _ZIP):
        return decode_npz(data, name, arrays)
    factor = 1
    if indices:
        if is_lossy(data):  # whatever its name
            raise InputError(
                f"{name!r} is a JPEG or lossy WebP file, which changes numbers; save them as PNG"
            )
        data, factor = palette_as_grey(data)
    header = _checked_header(data, name)
    if header.hidden_alpha:
        raise InputError(_transparent_message(name))
    if header.hidden_channels:
        raise InputError(
            f"{name!r} has channels beside its grey one, such as alpha, that cannot be read; expected "
            "an opaque grey map; save it without them"
        )
    array = _decode_image(data, name, cv2.IMREAD_UNCHANGED)
    if header.white_is_zero and array.dtype != np.uint8:  # OpenCV inverts only that
        np.subtract(_white(array), array, out=array)
    if array.ndim == 3:
        array = _grey(array, name, tolerance=0.0 if indices else _GREY_TOLERANCE)
    if factor > 1:
        array //= factor
    return _upright(array, header.orientation)


def _has_kind(data: bytes, name: str, extension: str, beginning: bytes) -> bool:
    """Tell by the name; by the content if it is that of a column and not of a file."""
    lower = name.lower()
    return lower.endswith(extension) or (data.startswith(beginning) and not lower.endswith(EXTENSIONS))


def _transparent_message(name: str) -> str:
    return f"{name!r} has transparency; expected an opaque grey map; flatten it first"


def read_content(root: str | Path, path: str) -> bytes:
    """Return the bytes of one file below a root."""
    try:
        return read_bytes(root, path)
    except OSError as error:
        raise InputError(f"{where(root, path)!r} cannot be read: {error.strerror or error}") from error


def _checked_header(data: bytes, name: str) -> Header:
    header = read_header(data)
    if header is None:  # an unknown format is not decoded: its size could be anything
        raise InputError(_unreadable_message(name))
    check_size((header.height, header.width), header.pixel_bytes, name)
    if header.is_cut:
        raise InputError(_unreadable_message(name))
    return header


def _decode_image(data: bytes, name: str, flags: int) -> NDArray[Any]:
    with quiet_decoders:
        try:
            array = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), flags)
        except cv2.error:
            array = None
    if array is None:
        raise InputError(_unreadable_message(name))
    return np.asarray(array)


def _unreadable_message(name: str) -> str:
    return f"{name!r} is not an image that can be read, or is cut short; replace the file"


def _upright(array: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Rotate or flip the stored pixels according to the orientation of EXIF, 1 to 8."""
    if orientation == 1:
        return array
    if orientation >= 5:
        array = array.swapaxes(0, 1)
    rows = -1 if orientation in (3, 4, 7, 8) else 1
    columns = -1 if orientation in (2, 3, 6, 7) else 1
    return np.ascontiguousarray(array[::rows, ::columns])


def _white(array: NDArray[Any]) -> Any:
    """Return the value of white in the type of an array."""
    return array.dtype.type(1 if array.dtype.kind == "f" else np.iinfo(array.dtype).max)


def _grey(array: NDArray[Any], name: str, *, tolerance: float) -> NDArray[Any]:
    most = _white(array)
    rows = max(1, _STRIP // array.shape[1])
    strips = [array[at : at + rows, :, :3] for at in range(0, len(array), rows)]
    if not all(_channels_agree(strip, tolerance * float(most)) for strip in strips):
        raise InputError(
            f"{name!r} is a colour image whose channels differ; expected a grey map; "
            "convert it to grey as its values mean it"
        )
    if array.shape[2] == 4 and not array[..., 3].min() >= most:  # written so that NaN is not opaque
        raise InputError(_transparent_message(name))
    return np.ascontiguousarray(array[..., 1])


def _channels_agree(strip: NDArray[Any], tolerance: float) -> bool:
    if strip.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # some kinds of NaN
            strip = strip.astype(np.float64)
    blue, green, red = strip[..., 0], strip[..., 1], strip[..., 2]
    highest = np.maximum(np.maximum(blue, green), red)
    lowest = np.minimum(np.minimum(blue, green), red)
    agree = highest - lowest <= tolerance
    if strip.dtype.kind == "f":
        agree |= np.isnan(green)  # refused elsewhere, with its own message
    return bool(agree.all())


def resize(plane: NDArray[np.uint8], size: int | tuple[int, int]) -> NDArray[np.uint8]:
    """Scale to a square, or to height and width.

    Area interpolation when shrinking, so that no small object is skipped.
    """
    height, width = (size, size) if isinstance(size, int) else size
    shrinks = plane.shape[0] > height or plane.shape[1] > width
    interpolation = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.asarray(
        cv2.resize(np.ascontiguousarray(plane), (width, height), interpolation=interpolation)
    )
