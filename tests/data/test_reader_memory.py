"""Reading takes the decoded image and at most 8 more bytes a pixel, for every kind of file."""

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.image_files import encoded, exif, grey_as, npy, png, tiff, with_exif
from helpers.platforms import linux

SIDE = 1024
MOST_BESIDE = 8.0  # bytes a pixel

# in a process of its own; a small file first, so that all is loaded; the system forgets the peak before
# each file, and memory goes back to it at once
READ = """
import ctypes, gc, json, sys
from sisod.data.images import read_colour
from sisod.data.truths import read_prediction, read_truth

def state(key):
    (line,) = [line for line in open("/proc/self/status") if line.startswith(key)]
    return int(line.split()[1]) * 1024

readers = {
    "map": read_prediction,
    "mask": lambda root, name: read_truth(root, name).mask(level=128),
    "colour": read_colour,
}
taken = []
for name, reader in json.loads(sys.argv[2]):
    readers[reader](sys.argv[1], "small-" + name)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    open("/proc/self/clear_refs", "w").write("5")
    before = state("VmRSS")
    readers[reader](sys.argv[1], name)
    taken.append(state("VmHWM") - before)
print(json.dumps(taken))
"""


def files(side: int) -> dict[str, tuple[bytes, int]]:
    """Kinds of files, and the bytes of an unpacked pixel of each."""
    grey = np.add.outer(np.arange(side) // 8, np.arange(side) // 8).astype(np.uint8)
    rgb, opaque = grey_as(grey, grey, grey), np.full_like(grey, 255)
    palette = bytes(value for value in range(256) for _ in range(3))
    wide = grey.astype(np.uint16) * 257
    return {
        "grey.png": (encoded(".png", grey), 1),
        "rgb.png": (encoded(".png", rgb), 3),
        "rgba.png": (encoded(".png", grey_as(rgb, opaque)), 4),
        "palette.png": (png(grey, colour=3, palette=palette), 3),
        "wide.png": (encoded(".png", wide), 2),
        "wide-rgb.png": (encoded(".png", grey_as(wide, wide, wide)), 6),
        "turned.jpg": (with_exif(encoded(".jpg", rgb), exif(6)), 3),
        "progressive.jpg": (encoded(".jpg", rgb, cv2.IMWRITE_JPEG_PROGRESSIVE, 1), 3),
        "rgb.webp": (encoded(".webp", rgb, cv2.IMWRITE_WEBP_QUALITY, 80), 3),
        "rgb.bmp": (encoded(".bmp", rgb), 3),
        "float.tif": (tiff((grey / 255).astype(np.float32)), 4),
        "double.npy": (npy(grey / 255), 8),
    }


@linux
@pytest.mark.slow
def test_memory_beside_the_image(tmp_path: Path) -> None:
    large, small = files(SIDE), files(64)
    for name in large:
        (tmp_path / name).write_bytes(large[name][0])
        (tmp_path / f"small-{name}").write_bytes(small[name][0])
    cases = [(name, "map") for name in large]
    cases += [("rgb.png", "mask"), ("turned.jpg", "colour"), ("double.npy", "mask")]
    call = [sys.executable, "-c", READ, str(tmp_path), json.dumps(cases)]
    done = subprocess.run(call, check=True, capture_output=True, text=True)  # noqa: S603
    for (name, reader), taken in zip(cases, json.loads(done.stdout), strict=True):
        unpacked = 3 if reader == "colour" else large[name][1]
        # half a byte for what the process takes besides
        assert unpacked < taken / SIDE**2 + 1, (name, reader)
        assert taken / SIDE**2 - unpacked <= MOST_BESIDE + 0.5, (name, reader)
