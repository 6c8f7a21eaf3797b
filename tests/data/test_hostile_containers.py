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

from sisod.common.errors import InputError
from sisod.data.images import read_array
from sisod.data.pairs import find_masks
from sisod.data.storage import list_files

PNG = cv2.imencode(".png", np.eye(8, dtype=np.uint8) * 255)[1].tobytes()


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read_all(root: str) -> None:
    """Read every mask of a container."""
    for file in find_masks(root).values():
        read_array(root, file.path)


def read_or_refuse(root: str) -> None:
    """Read every mask of a container that may be damaged; a failure must be one sentence."""
    message = ""
    try:
        read_all(root)
    except InputError as error:
        message = str(error)
    assert "\n" not in message


def refusal(root: str) -> str:
    """Return why a container cannot be read; nothing but the container is in the folder afterwards."""
    before = sorted(Path().rglob("*"))
    with pytest.raises(InputError) as caught:
        read_all(root)
    assert sorted(Path().rglob("*")) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


# tar


def special(name: str, kind: bytes, link: str = "") -> None:
    """Write an archive of one plain file and one member of another type."""
    with tarfile.open("x.tar", "w") as archive:
        plain = tarfile.TarInfo("a.png")
        plain.size = len(PNG)
        archive.addfile(plain, io.BytesIO(PNG))
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, link
        archive.addfile(member)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (b"Z", "of the unknown type b'Z'"),
    ],
)
def test_links_devices_and_pipes(kind: bytes, what: str) -> None:
    special("b.png", kind, "/etc/passwd")
    assert refusal("x.tar") == (
        f"'x.tar': the member 'b.png' is {what}; expected plain files only; pack the archive again "
        "without it"
    )


@pytest.mark.parametrize("name", ["../a.png", "/a.png", "b/../../a.png", "b//a.png", "a\0.png"])
def test_names_that_lead_out(name: str) -> None:
    header = tarfile.TarInfo("x")
    header.size = len(PNG)
    with tarfile.open("x.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        if "\0" in name:
            header.pax_headers = {"path": name}
        else:
            header.name = name
        archive.addfile(header, io.BytesIO(PNG))
    assert "has a name that leads out of the archive; pack it again with relative names" in refusal(
        "x.tar"
    )


def test_names_as_tar_writes_them() -> None:
    """A leading `./`, long names in three ways, names that are not ASCII; folders are passed over."""
    long = "night/" * 30 + "im.png"
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        names = ["./a.png", "day/b.png", "café.png", "d" * 90 + "/" + "e" * 80 + ".png"]
        if form != tarfile.USTAR_FORMAT:
            names.append(long)
        with tarfile.open("x.tar", "w", format=form) as archive:
            folder = tarfile.TarInfo("day")
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = len(PNG)
                archive.addfile(member, io.BytesIO(PNG))
        files = find_masks("x.tar")
        assert sorted(files) == sorted(name.removeprefix("./").removesuffix(".png") for name in names)
        for file in files.values():
            assert read_array("x.tar", file.path).shape == (8, 8)


def with_size(field: bytes) -> None:
    """Write an archive whose only member states another size."""
    write_tar("x.tar", {"a.png": PNG})
    data = bytearray(Path("x.tar").read_bytes())
    data[124:136] = field
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    Path("x.tar").write_bytes(data)


def test_bomb() -> None:
    """A member that states more than the archive has; sizes in octal and in binary."""
    size = Path("x.tar")
    for field, stated in ((b"77777777777\0", 8**11 - 1), (b"\x80" + struct.pack(">xxxQ", 2**63), 2**63)):
        with_size(field)
        assert refusal("x.tar") == (
            f"'x.tar' is cut short or damaged: the member 'a.png' should have {stated} bytes and "
            f"{size.stat().st_size - 512} are left; copy the archive again"
        )
    with_size(b"\xff" * 12)  # negative, which made other readers walk in circles
    assert refusal("x.tar") == "'x.tar' is damaged: there is no valid header at byte 512; copy it again"


def test_sparse() -> None:
    special("b.png", tarfile.GNUTYPE_SPARSE)
    assert "the member 'b.png' is a sparse file" in refusal("x.tar")
    with tarfile.open("x.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("a.png")
        member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": "999999999999"}
        archive.addfile(member)
    assert refusal("x.tar").startswith("'x.tar' holds a sparse file; expected plain files only")


def test_tar_that_is_cut_short_at_every_block() -> None:
    write_tar("x.tar", {f"{index}.png": PNG for index in range(3)})
    whole = Path("x.tar").read_bytes()
    for end in range(0, 3 * 1024 + 1, 256):
        Path("x.tar").write_bytes(whole[:end])
        assert any(text in refusal("x.tar") for text in ("cut short", "empty", "not a tar archive"))
    Path("x.tar").write_bytes(whole[: 3 * 1024 + 512])  # the first of two blocks of zeros says the end
    assert len(list_files("x.tar")) == 3


def test_other_files_called_tar() -> None:
    Path("x.tar").write_bytes(PNG * 20)
    assert refusal("x.tar") == "'x.tar' is not a tar archive that can be read; replace the file"
    write_tar("one.tar", {"a.png": PNG})
    Path("x.tar").write_bytes(Path("one.tar").read_bytes() * 2)
    assert "has content behind its end" in refusal("x.tar")
    for name in ("x.tar.gz", "x.tgz"):
        Path(name).write_bytes(b"")
        assert refusal(name) == (
            f"'{name}' is a compressed archive, which can only be read from its beginning; decompress "
            "it to a .tar file first"
        )


@given(position=st.integers(0, 2559), value=st.integers(0, 255))
@example(position=156, value=ord("L"))  # a long name that lacks its member
@example(position=156, value=ord("x"))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damaged_byte_of_a_tar(position: int, value: int) -> None:
    """Every change is refused in one sentence, or the archive still lists images of it."""
    write_tar("x.tar", {"a.png": PNG, "b.png": PNG})
    data = bytearray(Path("x.tar").read_bytes())
    data[position] = value
    Path("x.tar").write_bytes(data)
    read_or_refuse("x.tar")


# Parquet


def table(**columns: pl.Series | list[object]) -> None:
    """Write x.parquet."""
    pl.DataFrame(columns).write_parquet("x.parquet")


def images(*contents: bytes | None, names: list[str | None] | None = None) -> pl.Series:
    """Return a column in Hugging Face's layout."""
    paths = names or [f"{index}.png" for index in range(len(contents))]
    rows = [{"bytes": data, "path": path} for data, path in zip(contents, paths, strict=True)]
    return pl.Series(rows, dtype=IMAGE)


def test_wrong_schema() -> None:
    table(score=[1.5], label=[3])
    assert refusal("x.parquet") == (
        "'x.parquet' has no column of images; expected one of bytes, or of structs of bytes and path; "
        "it has score (Float64), label (Int64)"
    )
    table(mask=images(PNG), label=[3])
    assert refusal("x.parquet#label") == (
        "'x.parquet' has no column 'label' of images; expected one of mask"
    )
    table(image=images(PNG), mask=images(PNG))
    assert refusal("x.parquet") == (
        "'x.parquet' has 2 columns of images (image, mask); choose one like this: x.parquet#mask"
    )
    table(mask=[PNG])
    assert refusal("x.parquet").startswith(
        "'x.parquet' does not name its images; expected a path beside"
    )


def test_nulls() -> None:
    table(mask=images(PNG, None, PNG))
    assert refusal("x.parquet") == (
        "'x.parquet': row 1 of 'mask' is null; expected the bytes of an image in every row; leave the "
        "row out"
    )
    table(mask=images(PNG, PNG, names=["a.png", None]))
    assert refusal("x.parquet").startswith("'x.parquet': row 1 of 'mask' has no name; expected a path")
    table(mask=pl.Series([None], dtype=IMAGE))
    assert refusal("x.parquet").startswith("'x.parquet': row 0 of 'mask' has no name")


def test_path_is_never_opened() -> None:
    """Hugging Face also knows rows without bytes, whose path leads to a file."""
    Path("a.png").write_bytes(PNG)
    table(mask=images(None, names=["a.png"]))
    assert "row 0 of 'mask' is null" in refusal("x.parquet")


def test_broken_image_in_row_17() -> None:
    write_parquet("x.parquet", {f"{i:02d}.png": PNG[:40] if i == 17 else PNG for i in range(40)})
    assert refusal("x.parquet") == (
        "'x.parquet/row 17/17.png' is not an image that can be read, or is cut short; replace the file"
    )


@pytest.mark.parametrize("write", [write_tar, write_parquet])
def test_two_members_for_one_image(write: Callable[[str, dict[str, bytes]], None]) -> None:
    kind = write.__name__.removeprefix("write_")
    write(f"x.{kind}", {"a.png": PNG, "b.png": PNG, "a.jpg": PNG})
    message = refusal(f"x.{kind}")
    assert message.startswith(f"'x.{kind}' has two files for the image 'a': ")
    assert ("'row 2/a.jpg' and 'row 0/a.png'" if kind == "parquet" else "a.jpg' and 'bytes") in message


@pytest.mark.parametrize("name", ["../a.png", "/home/a.png", "b//a.png"])
def test_names_of_rows_that_lead_out(name: str) -> None:
    table(mask=images(PNG, names=[name]))
    assert refusal("x.parquet") == (
        f"'x.parquet': row 0 has the name {name!r}, which is not a relative path; rename it"
    )


def test_no_rows_and_no_members() -> None:
    table(mask=pl.Series([], dtype=IMAGE))
    assert refusal("x.parquet") == "'x.parquet' has no image files; expected a folder of masks"
    write_tar("x.tar", {})
    assert refusal("x.tar") == "'x.tar' has no image files; expected a folder of masks"
    write_tar("x.tar", {"a.json": b"{}", "a.cls": b"1"})
    assert refusal("x.tar") == "'x.tar' has no image files; expected a folder of masks"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", PNG])
def test_not_parquet_at_all(content: bytes) -> None:
    Path("x.parquet").write_bytes(content)
    assert refusal("x.parquet").startswith("'x.parquet' is not a Parquet file that can be read: ")


@pytest.mark.parametrize("seed", range(8))
def test_damaged_parquet(seed: int) -> None:
    write_parquet("whole.parquet", {f"{index}.png": PNG for index in range(20)})
    data = bytearray(Path("whole.parquet").read_bytes())
    rng = np.random.default_rng(seed)
    for position in rng.integers(4, len(data), 8):
        data[position] ^= 1 << int(rng.integers(8))
    Path("x.parquet").write_bytes(data)
    read_or_refuse("x.parquet")


def test_hostile_names_are_not_written(tmp_path: Path) -> None:
    """Pictures of frames are named after members, and stay inside their folder."""
    pytest.importorskip("matplotlib", reason="extra report is not installed")
    from sisod.report.frames import draw_folder
    from sisod.scoring.protocols import find_protocol

    write_tar("x.tar", {"a.png": PNG, "../../evil.png": PNG})
    with pytest.raises(InputError, match="leads out of the archive"):
        draw_folder("x.tar", tmp_path / "out", protocol=find_protocol("default"))
    assert [path.name for path in tmp_path.iterdir()] == ["x.tar"]
