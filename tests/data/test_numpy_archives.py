"""Files of `.npz`, the indices of palette PNGs, and label maps of 16 bits."""

import io
import re
import tracemalloc
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.image_files import Array, encoded, npy, png
from helpers.messages import check_one_sentence

from sisod.common.exceptions import InputError
from sisod.data.images import decode
from sisod.data.truths import TruthFormat, read_prediction, read_truth
from sisod.scoring.counting.components import label_instances

GREY = np.random.default_rng(5).integers(0, 256, (12, 17), dtype=np.uint8)
NOT_NPZ = "is not a .npz file of two-dimensional arrays of numbers"


def npz(**arrays: Array) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def archive(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return file.getvalue()


def test_which_array_is_read(tmp_path: Path) -> None:
    np.testing.assert_array_equal(decode(npz(anything=GREY), "a.npz"), GREY)
    data = npz(pred=GREY, mask=GREY >= 128, labels=GREY // 100, more=GREY[:2])
    (tmp_path / "a.npz").write_bytes(data)
    np.testing.assert_array_equal(read_prediction(tmp_path, "a.npz"), GREY)
    np.testing.assert_array_equal(read_truth(tmp_path, "a.npz").mask(level=128), GREY >= 128)
    truth = read_truth(tmp_path, "a.npz", TruthFormat(labels=True))
    assert truth.labels is not None
    np.testing.assert_array_equal(truth.labels, GREY // 100)
    np.testing.assert_array_equal(truth.array, GREY >= 100)
    fortran = np.asfortranarray(GREY / 255)
    np.testing.assert_array_equal(decode(npz(a=fortran), "a.npz"), fortran)
    large = np.arange(90_000.0).reshape(300, 300)
    np.testing.assert_array_equal(decode(npz(a=large), "A.NPZ"), large)


REFUSED = {
    "no archive": (b"PK but not really", NOT_NPZ),
    "objects": (archive(a=npy(np.array([[{}]]), pickled=True)), NOT_NPZ),
    "three dimensions": (npz(a=np.zeros((2, 2, 2))), "holds an array of shape (2, 2, 2); expected"),
    "an array cut short": (archive(a=npy(GREY)[:-5]), NOT_NPZ),
    "an archive cut short": (npz(a=GREY)[:-30], NOT_NPZ),
    "other names": (npz(a=GREY, b=GREY, mask=GREY), "holds 3 arrays (a, b, mask); expected one"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_archives_that_are_refused(case: str) -> None:
    data, text = REFUSED[case]
    with pytest.raises(InputError, match=f"^'a.npz' {re.escape(text)}") as caught:
        decode(data, "a.npz", arrays=("pred",))
    check_one_sentence(str(caught.value))


def test_a_bomb_is_not_unpacked() -> None:
    header = npy(np.zeros((1, 1)))[:128].replace(b"(1, 1), }         ", b"(100000, 100000), }")[:128]
    data = archive(a=header + bytes(1 << 24))
    tracemalloc.start()
    with pytest.raises(InputError, match="100000 x 100000 pixels of 8 bytes; expected at most 268 mega"):
        decode(data, "a.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 22


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_the_indices_of_a_palette(bits: int) -> None:
    indices = (np.arange(7 * 9).reshape(7, 9) % min(2**bits, 40)).astype(np.uint8)
    palette = np.random.default_rng(1).integers(0, 256, 3 * min(2**bits, 40)).astype(np.uint8).tobytes()
    for transparent in (b"", b"\x00\x80"):
        data = png(indices, colour=3, bits=bits, palette=palette, transparent=transparent)
        np.testing.assert_array_equal(decode(data, "a.png", indices=True), indices)
        with pytest.raises(InputError):  # as a map its colours count
            decode(data, "a.png")
    for length in (-20, 40):
        with pytest.raises(InputError, match="is not an image that can be read, or is cut short"):
            decode(data[:length], "a.png", indices=True)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.uint64])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (7, 11)])
def test_labels_of_any_integer_type(dtype: type[np.integer], shape: tuple[int, int]) -> None:
    """The same as of int32, which the tests of `partition` compare with the oracle."""
    labels = np.random.default_rng(8).integers(0, 6, shape) * 40
    found, expected = (label_instances(labels.astype(kind)) for kind in (dtype, np.int32))
    for name in ("areas", "boxes", "first"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.coordinate_sums(), expected.coordinate_sums())


def test_numbers_that_a_file_may_have_changed_are_refused() -> None:
    """Whatever the name of the file: a row of Parquet may have none."""
    for data in (encoded(".jpg", GREY), encoded(".webp", GREY, cv2.IMWRITE_WEBP_QUALITY, 90)):
        decode(data, "a")
        for name in ("a", "a.png"):
            with pytest.raises(InputError, match="JPEG or lossy WebP file, which changes numbers"):
                decode(data, name, indices=True)
    data = encoded(".webp", GREY, cv2.IMWRITE_WEBP_QUALITY, 101)  # lossless
    np.testing.assert_array_equal(decode(data, "a.webp", indices=True), GREY)


def test_colours_are_no_numbers() -> None:
    """Ids in red, as of COCO panoptic, are small; as grey levels they would be noise."""
    for array in (GREY, GREY.astype(np.uint16) * 200, np.repeat(GREY[..., None], 3, axis=2)):
        found = decode(encoded(".png", array), "a.png", indices=True)
        np.testing.assert_array_equal(found, array if array.ndim == 2 else GREY)
    colours = np.zeros((4, 6, 3), dtype=np.uint8)
    colours[1:3, 1:3, 2] = 2
    data = encoded(".png", colours)
    assert not decode(data, "a.png").any()
    with pytest.raises(InputError, match=r"'a\.png' is a colour image whose channels differ"):
        decode(data, "a.png", indices=True)
