"""Small pictures of image files for the page: crops, and the outline of the ground truth."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.errors import InputError
from sisod.evaluation.results import Picture, PixelFiles, Result

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
    area = rows * columns * min(1.0, SIDE / max(rows, columns)) ** 2
    return round(700 + 0.2 * area + n_methods * (350 + 0.07 * area))


class Cropper:
    """Crops pictures out of the files of results; those of the last image are cached."""

    def __init__(
        self, results: Sequence[Result], image_roots: Mapping[str, Path], *, fetch: bool
    ) -> None:
        self._files = {
            (r.dataset, r.method): PixelFiles(r.evaluation, image_roots.get(r.dataset), fetch)
            for r in results
        }
        self._cache: dict[tuple[str, str, str], NDArray[Any] | None] = {}
        self._errors: list[str] = []

    def crop(
        self,
        dataset: str,
        image: str,
        window: Window,
        *,
        shape: tuple[int, int],
        methods: Sequence[str],
    ) -> dict[str, Any]:
        """Return the pictures of a window for the page's script.

        Keys: `pictures` (in base64: `photo`, which is the mask if there is no photograph, and the map
        of each method by its number), `has_photo`, `outline` and `grid` (see `outline_path`).
        """
        if not any(key[:2] == (dataset, image) for key in self._cache):
            self._cache = {}
        files = self._first_files(dataset, methods)
        photo = self._cached((dataset, image, "photo"), partial(_photo, files, image, shape))
        mask = self._cached((dataset, image, "mask"), partial(files.mask, image))
        grey_mask = None if mask is None else mask.astype(np.uint8) * np.uint8(255)
        sources = {"photo": grey_mask if photo is None else photo}
        sources |= dict(self._maps(dataset, image, shape, methods))
        outline, grid = ("", [1, 1]) if grey_mask is None else outline_path(grey_mask[window])
        return {
            "pictures": {
                name: encode(picture[window]) for name, picture in sources.items() if picture is not None
            },
            "has_photo": photo is not None,
            "outline": outline,
            "grid": grid,
        }

    def notes(self) -> list[str]:
        """Warnings about files that were not found or read, without repetition."""
        missing = [note for files in self._files.values() for note in files.trouble]
        return list(dict.fromkeys([*missing, *self._errors]))

    def _first_files(self, dataset: str, methods: Sequence[str]) -> PixelFiles:
        return next(self._files[dataset, m] for m in methods if (dataset, m) in self._files)

    def _maps(
        self, dataset: str, image: str, shape: tuple[int, int], methods: Sequence[str]
    ) -> Iterator[tuple[str, Picture | None]]:
        for number, method in enumerate(methods):
            files = self._files.get((dataset, method))
            if files is not None:
                read = partial(files.prediction, image, shape)
                yield str(number), self._cached((dataset, image, f"map {number}"), read)

    def _cached(
        self, key: tuple[str, str, str], read: Callable[[], NDArray[Any] | None]
    ) -> NDArray[Any] | None:
        if key not in self._cache:
            try:
                self._cache[key] = read()
            except InputError as error:
                self._errors.append(str(error))
                self._cache[key] = None
        return self._cache[key]


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
