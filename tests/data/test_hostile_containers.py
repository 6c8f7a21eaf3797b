"""Damaged and hostile containers: one sentence that names file and member or row; nothing is written."""

import io
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import polars as pl
import pytest
from helpers.container_files import IMAGE, write_parquet, write_tar
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sisod.common.exceptions import InputError
from sisod.data.images import read_array
from sisod.data.pairs import find_masks
from sisod.data.storage import list_files

PNG = cv2.imencode(".png", np.eye(8, dtype=np.uint8) * 255)[1].tobytes()


pytestmark = pytest.mark.usefixtures("inside_tmp_path")


def read_all(root: str) -> None:
    """Read every mask of a container."""
    for file in find_masks(root).values():
        read_array(root, file.path)


def read_or_refuse(root: str) -> None:
    """Read every mask of a container that may be damaged; a failure must be one sentence."""
    try:
        read_all(root)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017


def refusal(root: str) -> str:
    """Return why a container cannot be read; nothing but the container is in the folder afterwards."""
    before = sorted(Path().rglob("*"))
    with pytest.raises(InputError) as caught:
        read_all(root)
    assert sorted(Path().rglob("*")) == before
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"'{root.partition('#')[0]}")
    return str(caught.value)


# tar


def tar_of(*members: tarfile.TarInfo, form: int = tarfile.PAX_FORMAT) -> None:
    """Write x.tar: a plain file, and then members of any type."""
    with tarfile.open("x.tar", "w", format=form) as archive:
        for member in (tarfile.TarInfo("a.png"), *members):
            member.size = len(PNG) if member.isreg() and not member.issparse() else 0
            archive.addfile(member, io.BytesIO(PNG))


def info(
    name: str, kind: bytes = tarfile.REGTYPE, headers: dict[str, str] | None = None
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.pax_headers = kind, "/etc/passwd", headers or {}
    return member


SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "999999999999"}
MEMBERS = {
    "link": (info("b.png", tarfile.SYMTYPE), "'b.png' is a link, device, pipe or sparse file"),
    "unknown type": (info("b.png", b"Z"), "'b.png' is a link"),
    "sparse": (info("b.png", tarfile.GNUTYPE_SPARSE), "x.tar"),
    "sparse by pax": (info("b.png", headers=SPARSE), "x.tar"),
    "out": (info("../a.png"), "'../a.png' is a link"),
    "a NUL": (info("x", headers={"path": "a\0.png"}), "leads out"),
}


@pytest.mark.parametrize("case", MEMBERS)
def test_members_that_are_refused(case: str) -> None:
    member, text = MEMBERS[case]
    tar_of(member)
    assert text in refusal("x.tar")


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_as_tar_writes_them(form: int) -> None:
    """A leading `./`, long names in three ways, names that are not ASCII; folders are passed over."""
    names = ["./b.png", "day/b.png", "café.png", "d" * 90 + "/" + "e" * 80 + ".png"]
    if form != tarfile.USTAR_FORMAT:
        names.append("night/" * 30 + "im.png")
    tar_of(info("day", tarfile.DIRTYPE), *map(info, names), form=form)
    files = find_masks("x.tar")
    expected = [name.removeprefix("./").removesuffix(".png") for name in ("a.png", *names)]
    assert sorted(files) == sorted(expected)
    for file in files.values():
        assert read_array("x.tar", file.path).shape == (8, 8)


@pytest.mark.parametrize(
    "field", [b"77777777777\0", b"\x80" + struct.pack(">xxxQ", 2**63), b"\xff" * 12]
)
@pytest.mark.parametrize("kind", [b"0", b"L", b"x", b"Z"])
def test_bomb(field: bytes, kind: bytes) -> None:
    """A size that the archive does not have, in octal and in binary, or a negative one."""
    write_tar("x.tar", {"a.png": PNG})
    data = bytearray(Path("x.tar").read_bytes())
    data[124:136], data[156:157] = field, kind
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    Path("x.tar").write_bytes(data)
    assert "is not a tar archive that can be read: " in refusal("x.tar")


def test_tar_that_is_cut_short_at_every_block() -> None:
    write_tar("x.tar", {f"{index}.png": PNG for index in range(3)})
    whole = Path("x.tar").read_bytes()
    for end in range(0, 3 * 1024 + 1, 256):
        Path("x.tar").write_bytes(whole[:end])
        assert "is not a tar archive that can be read: " in refusal("x.tar")
    Path("x.tar").write_bytes(whole[: 3 * 1024 + 512])  # the first of two blocks of zeros says the end
    assert len(list_files("x.tar")) == 3
    damaged = bytearray(whole)
    damaged[1024 + 148] ^= 1  # the checksum of the second header, which tarfile takes for the end
    Path("x.tar").write_bytes(damaged)
    assert "damaged at byte 1024" in refusal("x.tar")


def test_other_files_called_tar_or_parquet() -> None:
    write_tar("one.tar", {"a.png": PNG})
    Path("x.tar").write_bytes(Path("one.tar").read_bytes() * 2)
    assert "or several archives were joined" in refusal("x.tar")
    for name, content, text in (
        ("x.tar", PNG * 20, "is not a tar archive that can be read"),
        ("x.tgz", b"", "is a compressed archive"),
        ("x.parquet", b"", "is not a Parquet file that can be read"),
        ("x.parquet", b"PAR1" + b"\xff" * 100 + b"PAR1", "is not a Parquet file that can be read"),
    ):
        Path(name).write_bytes(content)
        assert text in refusal(name)


@given(position=st.integers(0, 2559), value=st.integers(0, 255))
@example(position=156, value=ord("L"))  # a long name that lacks its member
@example(position=156, value=ord("x"))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damaged_byte_of_a_tar(position: int, value: int) -> None:
    """Every change is refused in one sentence, or the archive still lists images of it."""
    write_tar("x.tar", {"a.png": PNG, "b.png": PNG})
    data = bytearray(Path("x.tar").read_bytes())
    data[position] = value
    Path("x.tar").write_bytes(data)
    read_or_refuse("x.tar")


# Parquet


def images(*contents: bytes | None, names: list[str | None] | None = None) -> pl.Series:
    """Return a column in Hugging Face's layout."""
    paths = names or [f"{index}.png" for index in range(len(contents))]
    rows = [{"bytes": data, "path": path} for data, path in zip(contents, paths, strict=True)]
    return pl.Series(rows, dtype=IMAGE)


TABLES: dict[str, tuple[dict[str, pl.Series], str, str]] = {
    "no images": ({"score": pl.Series([1.5])}, "", "one column of images, that is of bytes"),
    "another column": ({"mask": images(PNG), "label": pl.Series([3])}, "#label", "a column 'label' of"),
    "two columns": ({"image": images(PNG), "mask": images(PNG)}, "", "like this: x.parquet#mask"),
    "no names": ({"mask": pl.Series([PNG])}, "", "does not name its images"),
    "null": ({"mask": images(PNG, None)}, "", "row 1 has no image"),
    "no name": ({"mask": images(PNG, PNG, names=["a.png", None])}, "", "row 1 has the name 'None'"),
    "out": ({"mask": images(PNG, names=["../a.png"])}, "", "row 0 has the name '../a.png'"),
    "no rows": ({"mask": images()}, "", "has no image files"),
    "broken image": ({"mask": images(PNG, PNG[:40])}, "", "/row 1/1.png' is not an image that can"),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_that_are_refused(case: str) -> None:
    columns, selection, text = TABLES[case]
    pl.DataFrame(columns).write_parquet("x.parquet")
    assert text in refusal(f"x.parquet{selection}")


@pytest.mark.parametrize("write", [write_tar, write_parquet])
def test_two_members_for_one_image(write: Callable[[str, dict[str, bytes]], None]) -> None:
    kind = write.__name__.removeprefix("write_")
    write(f"x.{kind}", {"a.png": PNG, "b.png": PNG, "a.jpg": PNG})
    assert f"'x.{kind}' has two files for the image 'a': " in refusal(f"x.{kind}")


@pytest.mark.parametrize("seed", range(2))
def test_damaged_parquet(seed: int) -> None:
    write_parquet("whole.parquet", {f"{index}.png": PNG for index in range(20)})
    data = bytearray(Path("whole.parquet").read_bytes())
    rng = np.random.default_rng(seed)
    for position in rng.integers(4, len(data), 8):
        data[position] ^= 1 << int(rng.integers(8))
    Path("x.parquet").write_bytes(data)
    read_or_refuse("x.parquet")
