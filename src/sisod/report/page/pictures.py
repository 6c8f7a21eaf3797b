"""Small pictures of image files for the page: crops, and the outline of the ground truth."""

import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.exceptions import InputError
from sisod.evaluation.results import Picture, PixelFiles, Result, methods_of

SIDE = 144  # pixels of the longer side of a picture; smaller crops keep the pixels of the image
WHOLE_SIDE = 256  # of the picture of a whole image
_CROP_FACTOR = 2.4  # side of a crop over that of the box, to show the surroundings
_MIN_CROP = 20  # pixels of the image: a target of two by two is a tenth of the picture
_OUTLINE_GRID, _WHOLE_GRID = 192, 384  # steps of the longer side of an outline
_TINY = 64  # side up to which every pixel counts
_TINY_QUALITY, _QUALITY = 90, 55

Window = tuple[slice, slice]


def crop_window(box: tuple[int, int, int, int], shape: tuple[int, int]) -> Window:
    """Return a square window around a box, moved and cut to lie inside the image.

    Args:
        box: x0, y0, x1, y1.
        shape: height and width of the image.

    Example:
        >>> crop_window((97, 0, 100, 10), (200, 100))
        (slice(0, 24, None), slice(76, 100, None))
    """
    x0, y0, x1, y1 = box
    side = round(max(_MIN_CROP, _CROP_FACTOR * (y1 - y0), _CROP_FACTOR * (x1 - x0)))
    slices = []
    for low, high, length in ((y0, y1, shape[0]), (x0, x1, shape[1])):
        size = min(side, length)
        start = min(max(0, round((low + high - size) / 2)), length - size)
        slices.append(slice(start, start + size))
    return slices[0], slices[1]


class Cropper:
    """Crops pictures out of the files of results.

    Args:
        results: saved results.
        image_roots: data set -> folder of its photographs.
        fetch: whether to read maps from URLs too.
    """

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
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return the pictures of some windows of one image, and of all of it, for the page's script.

        Several threads may call this, each for another image.

        Args:
            dataset: its name.
            image: name of the image.
            windows: to be cropped.
            shape: height and width of the image.

        Returns:
            For each window `pictures` (in base64: `photo`, which is the mask if there is no photograph,
            and the map of each method by its number), `outline` and `grid` (see `outline_path`); and of
            the whole image `picture`, `has_photo`, `outline` and `grid`.
        """
        files = {
            str(number): self._files[dataset, method]
            for number, method in enumerate(self._methods)
            if (dataset, method) in self._files
        }
        first = next(iter(files.values()))
        photo = self._read((dataset, image), first.image, image)
        if photo is not None and photo.shape[:2] != shape:
            photo = np.asarray(cv2.resize(photo, shape[::-1], interpolation=cv2.INTER_AREA), np.uint8)
        mask = self._read((dataset, image), first.mask, image)
        grey_mask = None if mask is None else mask.astype(np.uint8) * np.uint8(255)
        sources = {"photo": grey_mask if photo is None else photo}
        for number, of_method in files.items():
            sources[number] = self._read((dataset, image), of_method.prediction, image, shape)
        crops = []
        for window in windows:
            codes = {name: encode(full[window]) for name, full in sources.items() if full is not None}
            crops.append({"pictures": codes} | _outline(grey_mask, window, _OUTLINE_GRID))
        shown = sources["photo"]
        picture = "" if shown is None else encode(shown, WHOLE_SIDE)
        outline = _outline(grey_mask, (slice(None), slice(None)), _WHOLE_GRID)
        return crops, {"picture": picture, "has_photo": photo is not None} | outline

    def _read(self, place: tuple[str, str], read: Callable[..., Any], *args: Any) -> Any:
        """What a function reads; None if the file is broken, which is noted."""
        try:
            return read(*args)
        except InputError as error:
            self._errors.setdefault(place, []).append(str(error))
            return None

    def notes(self) -> list[str]:
        """Return warnings about files that were not found or read, without repetition."""
        missing = [note for files in self._files.values() for note in files.trouble]
        errors = [error for _, group in sorted(self._errors.items()) for error in group]
        return list(dict.fromkeys([*missing, *errors]))


def _outline(mask: Picture | None, window: Window, steps: int) -> dict[str, Any]:
    path, grid = ("", [1, 1]) if mask is None else outline_path(mask[window], steps)
    return {"outline": path, "grid": grid}


def outline_path(mask: Picture, steps: int = _OUTLINE_GRID) -> tuple[str, list[int]]:
    """Return an SVG path around what is white in a mask, and the width and height of its grid.

    The grid is finer than the pixels of a small mask, so that the path follows their edges; that of a
    large one is coarser, and the path is a polygon with few corners.

    Args:
        mask: 0 and 255.
        steps: of the grid on the longer side, at most.

    Example:
        >>> outline_path(np.full((64, 64), 255, np.uint8))
        ('M0 0l0 191 191 0 0 -191z', [192, 192])
    """
    height, width = mask.shape
    scale = steps / max(height, width)
    scale = int(scale) if scale >= 1 else scale
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    how = cv2.INTER_NEAREST if scale >= 1 else cv2.INTER_AREA
    grid = cv2.resize(mask, size, interpolation=how)
    white = (grid > 127).astype(np.uint8)
    contours, _ = cv2.findContours(white, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    path = ""
    for contour in contours:
        points = cv2.approxPolyDP(contour, 0.8, closed=True)[:, 0]
        x, y = points[0].tolist()
        lines = " ".join(f"{dx} {dy}" for dx, dy in np.diff(points, axis=0).tolist())
        path += f"M{x} {y}" + (f"l{lines}" if lines else "h0") + "z"
    return path, list(size)


def encode(picture: NDArray[Any], longest: int = SIDE) -> str:
    """Return a picture as JPEG in base64.

    Args:
        picture: grey, or in colour (BGR).
        longest: pixels of its longer side, to which a larger picture is scaled down.
    """
    height, width = picture.shape[:2]
    side = max(height, width)
    small = np.ascontiguousarray(picture)
    if side > longest:
        size = (max(1, round(width * longest / side)), max(1, round(height * longest / side)))
        small = np.asarray(cv2.resize(small, size, interpolation=cv2.INTER_AREA))
    quality = _TINY_QUALITY if side <= _TINY else _QUALITY
    options = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_OPTIMIZE, 1]
    _, data = cv2.imencode(".jpg", small, options)
    return base64.b64encode(data.tobytes()).decode("ascii")
