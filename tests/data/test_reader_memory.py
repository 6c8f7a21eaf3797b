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

SIDE = 2048
MOST_BESIDE = 8.0  # bytes a pixel

# in a process of its own, whose peak is of nothing else; a small file first, so that all is loaded
READ = """
import json, sys
from sisod.data.images import read_colour, read_map, read_mask

def peak():  # not what getrusage says: that begins with the peak of the process that started us
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024

reader = {
    "map": read_map,
    "mask": lambda root, name: read_mask(root, name, level=128),
    "colour": read_colour,
}[sys.argv[2]]
name = sys.argv[3]
reader(sys.argv[1], "small-" + name)
before = peak()
reader(sys.argv[1], name)
print(json.dumps(peak() - before))
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


SMALL = files(64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("large")
    for name, (data, _) in files(SIDE).items():
        (root / name).write_bytes(data)
        (root / f"small-{name}").write_bytes(SMALL[name][0])
    return root


CASES = [(name, "map") for name in SMALL] + [
    ("rgb.png", "mask"),
    ("rgb.png", "colour"),
    ("turned.jpg", "colour"),
    ("double.npy", "mask"),
]


@linux
@pytest.mark.parametrize(("name", "reader"), CASES)
@pytest.mark.slow
def test_memory_beside_the_image(folder: Path, name: str, reader: str) -> None:
    call = [sys.executable, "-c", READ, str(folder), reader, name]
    done = subprocess.run(call, check=True, capture_output=True, text=True)  # noqa: S603
    unpacked = 3 if reader == "colour" else SMALL[name][1]
    beside = json.loads(done.stdout) / SIDE**2 - unpacked
    assert beside <= MOST_BESIDE + 0.5  # for what the process takes besides
