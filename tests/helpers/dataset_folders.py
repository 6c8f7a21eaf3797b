"""Data sets on disk: black images and masks of 4 x 6 pixels under given names."""

from pathlib import Path

import cv2
import numpy as np


def write(folder: Path, *names: str, extension: str = "png") -> Path:
    """Write one image for each name into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        assert cv2.imwrite(str(folder / f"{name}.{extension}"), np.zeros((4, 6), np.uint8))
    return folder


def write_set(root: Path, images: str, masks: str, *names: str) -> None:
    """Write a folder of images (JPEG) and one of masks (PNG) with the same names."""
    write(root / images, *names, extension="jpg")
    write(root / masks, *names)
