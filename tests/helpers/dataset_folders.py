"""Folders of data sets: tiny images and masks under given names."""

from pathlib import Path

import cv2
import numpy as np


def write(folder: Path, *names: str, extension: str = "png") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        assert cv2.imwrite(str(folder / f"{name}.{extension}"), np.zeros((4, 6), np.uint8))
    return folder


def write_set(root: Path, images: str, masks: str, *names: str) -> None:
    write(root / images, *names, extension="jpg")
    write(root / masks, *names)
