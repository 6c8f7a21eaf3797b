"""COCO files made from label maps, and folders of the same objects."""

import json
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

SHAPE = 24, 32
Kind = Literal["compressed", "plain"]


def plain_runs(mask: NDArray[Any]) -> dict[str, Any]:
    """Return the run lengths of a mask, one column after the other, by a loop over its pixels."""
    counts, value = [0], 0
    for pixel in mask.T.ravel().tolist():
        if int(bool(pixel)) != value:
            counts.append(0)
            value = 1 - value
        counts[-1] += 1
    return {"size": list(mask.shape), "counts": counts}


def runs(mask: NDArray[Any], kind: Kind) -> dict[str, Any]:
    """Return run lengths, compressed by pycocotools or as numbers."""
    if kind == "plain":
        return plain_runs(mask)
    from pycocotools import mask as coco

    found = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": found["size"], "counts": found["counts"].decode()}


def square(x0: float, y0: float, x1: float, y1: float) -> list[float]:
    """Return the polygon of a rectangle."""
    return [x0, y0, x1, y0, x1, y1, x0, y1]


def image(number: int, name: str, shape: tuple[int, int] = SHAPE) -> dict[str, Any]:
    """Return the entry of an image."""
    return {"id": number, "file_name": name, "height": shape[0], "width": shape[1]}


def annotation(number: int, of: int, segmentation: object, **fields: Any) -> dict[str, Any]:
    """Return the entry of an object; a field that is None is left out."""
    entry = {"id": number, "image_id": of, "category_id": 1, "segmentation": segmentation, "iscrowd": 0}
    return {key: value for key, value in (entry | fields).items() if value is not None}


def write_coco(
    path: Path, images: object, annotations: object, categories: tuple[str, ...] = ("cup", "person")
) -> Path:
    """Write an annotation file; the ids of the categories are 1, 2, ..."""
    named = [{"id": index + 1, "name": name} for index, name in enumerate(categories)]
    content = {"images": images, "annotations": annotations, "categories": named}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def label_scenes(count: int, *, seed: int = 3) -> dict[str, NDArray[np.uint16]]:
    """Return label maps of rectangles, some of which touch and some of which are in two pieces."""
    rng = np.random.default_rng(seed)
    scenes = {}
    for index in range(count):
        labels = np.zeros(SHAPE, dtype=np.uint16)
        for label in range(1, int(rng.integers(2, 6))):
            y, x = rng.integers(0, 16, 2)
            labels[y : y + int(rng.integers(2, 9)), x : x + int(rng.integers(2, 15))] = 1000 * label
        labels[20:22, 28:31] = 1000  # the second piece of the first object
        scenes[f"im{index:03d}"] = labels
    return scenes


def write_scenes(root: Path, count: int) -> Path:
    """Write the same objects as label PNGs, .npz, and COCO of both kinds, and maps of a method."""
    for folder in ("png", "npz", "maps"):
        (root / folder).mkdir(parents=True)
    images: list[Any] = []
    annotations: dict[Kind, list[Any]] = {"compressed": [], "plain": []}
    rng = np.random.default_rng(4)
    for number, (name, labels) in enumerate(label_scenes(count).items()):
        assert cv2.imwrite(str(root / "png" / f"{name}.png"), labels)
        np.savez_compressed(root / "npz" / name, labels=labels, other=labels[:3])
        pred = cv2.blur((labels > 0).astype(np.uint8) * 200, (3, 3)) + rng.integers(0, 50, SHAPE)
        assert cv2.imwrite(str(root / "maps" / f"{name}.png"), pred.astype(np.uint8))
        images.append(image(number, f"{name}.jpg"))
        for kind, entries in annotations.items():
            for label in np.unique(labels[labels > 0]):
                entries.append(annotation(len(entries), number, runs(labels == label, kind)))
    for kind, entries in annotations.items():
        write_coco(root / f"{kind}.json", images, entries)
    return root
