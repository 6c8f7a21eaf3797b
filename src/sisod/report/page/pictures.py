"""Small pictures of image files for the page: crops, and the outline of the ground truth."""

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.exceptions import InputError
from sisod.evaluation.results import Picture, PixelFiles, Result, methods_of

SIDE = 144  # pixels of the longer side of a picture; smaller crops keep the pixels of the image
_CROP_FACTOR = 2.4  # side of a crop over that of the box, to show the surroundings
_MIN_CROP = 20  # pixels of the image: a target of two by two is a tenth of the picture
_OUTLINE_GRID = 192  # steps of the longer side of an outline
_TINY = 64  # side up to which every pixel counts
_TINY_QUALITY, _QUALITY = 90, 55

Window = tuple[slice, slice]


def crop_window(box: Mapping[str, Any], shape: tuple[int, int]) -> Window:
    """Return a square window around a box, moved and cut to lie inside the image.

    Example:
        >>> crop_window({"y0": 0, "y1": 10, "x0": 97, "x1": 100}, (200, 100))
        (slice(0, 24, None), slice(76, 100, None))
    """
    side = round(
        max(_MIN_CROP, _CROP_FACTOR * (box["y1"] - box["y0"]), _CROP_FACTOR * (box["x1"] - box["x0"]))
    )
    slices = []
    for low, high, length in ((box["y0"], box["y1"], shape[0]), (box["x0"], box["x1"], shape[1])):
        size = min(side, length)
        start = min(max(0, round((low + high - size) / 2)), length - size)
        slices.append(slice(start, start + size))
    return slices[0], slices[1]


def expected_bytes(window: Window, n_methods: int) -> int:
    """Return about how many bytes the pictures of a window will need, in base64."""
    rows, columns = (side.stop - side.start for side in window)
    area: float = rows * columns * min(1.0, SIDE / max(rows, columns)) ** 2
    return round(700 + 0.2 * area + n_methods * (350 + 0.07 * area))


class Cropper:
    """Crops pictures out of the files of results."""

    def __init__(
        self, results: Sequence[Result], image_roots: Mapping[str, Path], *, fetch: bool
    ) -> None:
        self._methods = methods_of(results)
        self._files = {
            (r.dataset, r.method): PixelFiles(r.evaluation, image_roots.get(r.dataset), fetch)
            for r in results
        }
        self._errors: dict[tuple[str, str], list[str]] = {}

    def crop(
        self, dataset: str, image: str, windows: Sequence[Window], shape: tuple[int, int]
    ) -> list[dict[str, Any]]:
        """Return the pictures of some windows of one image, for the page's script.

        Keys: `pictures` (in base64: `photo`, which is the mask if there is no photograph, and the map
        of each method by its number), `has_photo`, `outline` and `grid` (see `outline_path`). Several
        threads may call this, each for another image.
        """
        errors: list[str] = []
        files = {
            number: self._files[dataset, method]
            for number, method in enumerate(self._methods)
            if (dataset, method) in self._files
        }
        first = next(iter(files.values()))
        photo = _read(partial(_photo, first, image, shape), errors)
        mask = _read(partial(first.mask, image), errors)
        grey_mask = None if mask is None else mask.astype(np.uint8) * np.uint8(255)
        sources = {"photo": grey_mask if photo is None else photo}
        for number, of_method in files.items():
            sources[str(number)] = _read(partial(of_method.prediction, image, shape), errors)
        if errors:
            self._errors[dataset, image] = errors
        outlines = [("", [1, 1]) if grey_mask is None else outline_path(grey_mask[w]) for w in windows]
        return [
            {
                "pictures": {
                    name: encode(picture[window])
                    for name, picture in sources.items()
                    if picture is not None
                },
                "has_photo": photo is not None,
                "outline": path,
                "grid": grid,
            }
            for window, (path, grid) in zip(windows, outlines, strict=True)
        ]

    def notes(self) -> list[str]:
        """Warnings about files that were not found or read, without repetition."""
        missing = [note for files in self._files.values() for note in files.trouble]
        errors = [error for _, group in sorted(self._errors.items()) for error in group]
        return list(dict.fromkeys([*missing, *errors]))


def _read(read: Callable[[], NDArray[Any] | None], errors: list[str]) -> NDArray[Any] | None:
    """Return what a function reads; if the file is broken, add the error and return None."""
    try:
        return read()
    except InputError as error:
        errors.append(str(error))
        return None


def _photo(files: PixelFiles, image: str, shape: tuple[int, int]) -> Picture | None:
    photo = files.image(image)
    if photo is None or photo.shape[:2] == shape:
        return photo
    return np.asarray(cv2.resize(photo, shape[::-1], interpolation=cv2.INTER_AREA), np.uint8)


def outline_path(mask: Picture) -> tuple[str, list[int]]:
    """Return an SVG path around what is white in a mask, and the width and height of its grid.

    The grid is finer than the pixels of a small mask, so that the path follows their edges; that of a
    large one is coarser, and the path is a polygon with few corners.
    """
    height, width = mask.shape
    scale = _OUTLINE_GRID / max(height, width)
    if scale >= 1:
        size = (width * int(scale), height * int(scale))
        grid = cv2.resize(mask, size, interpolation=cv2.INTER_NEAREST)
    else:
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        grid = cv2.resize(mask, size, interpolation=cv2.INTER_AREA)
    contours, _ = cv2.findContours(
        (grid > 127).astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE
    )
    return "".join(_polygon(cv2.approxPolyDP(c, 0.8, closed=True)[:, 0]) for c in contours), list(size)


def _polygon(points: NDArray[Any]) -> str:
    x, y = points[0].tolist()
    steps = " ".join(f"{dx} {dy}" for dx, dy in np.diff(points, axis=0).tolist())
    return f"M{x} {y}" + (f"l{steps}" if steps else "h0") + "z"


def encode(picture: NDArray[Any]) -> str:
    """Return a picture in base64, scaled down to at most `SIDE` pixels."""
    height, width = picture.shape[:2]
    side = max(height, width)
    small = np.ascontiguousarray(picture)
    if side > SIDE:
        size = (max(1, round(width * SIDE / side)), max(1, round(height * SIDE / side)))
        small = np.asarray(cv2.resize(small, size, interpolation=cv2.INTER_AREA))
    if side <= _TINY:
        encoded, data = cv2.imencode(".webp", small, [cv2.IMWRITE_WEBP_QUALITY, _TINY_QUALITY])
    else:  # WebP would save a third of the bytes, but take ten to twenty times as long to write
        options = [cv2.IMWRITE_JPEG_QUALITY, _QUALITY, cv2.IMWRITE_JPEG_OPTIMIZE, 1]
        encoded, data = cv2.imencode(".jpg", small, options)
    if not encoded:
        raise InputError(f"a picture of shape {small.shape} cannot be encoded")
    return base64.b64encode(data.tobytes()).decode("ascii")
