"""The same data as a folder, as Parquet and as tar gives the same numbers to the last bit."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command_line import error_message, run
from helpers.container_files import in_shards, write_parquet, write_tar
from helpers.evaluate_runs import evaluate_refusal, finished, kill_in_the_middle, shards
from helpers.folder_contents import content as files_of
from helpers.folder_contents import names
from helpers.platforms import posix_signals

import sisod
from sisod.data.containers import read_shard
from sisod.data.storage import list_files, list_shards


def assert_same(result: sisod.Evaluation, other: sisod.Evaluation) -> None:
    """Bit for bit; only the record says where the files were."""
    assert repr(result.summary) == repr(other.summary)  # some are NaN
    assert result.defined == other.defined
    assert result.images.equals(other.images)
    assert result.objects.equals(other.objects)
    assert result.curves.equals(other.curves)
    assert result.image_curves.equals(other.image_curves)


@pytest.fixture
def packed(three_batches: Path) -> Path:
    """The three batches also as single files and as shards, whose order is not that of the names."""
    for folder in ("A", "MSOD/mask"):
        members = files_of(folder)
        write_tar(f"{folder}.tar", members)
        write_parquet(f"{folder}.parquet", members)
        shuffled = sorted(members, key=lambda name: name[::-1])
        in_shards(write_tar, Path(f"{folder}-tars"), members, ".tar", order=shuffled)
        in_shards(write_parquet, Path(f"{folder}-tables"), members, ".parquet", order=shuffled)
    return three_batches


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize(
    ("pred", "gt"),
    [
        ("A.tar", "MSOD/mask.parquet"),
        ("A-tables", "MSOD/mask"),
        ("A", "MSOD/mask-tars"),
        ("A-tars", "MSOD/mask-tables"),
        ("A.parquet#image", "MSOD/mask.tar#png"),
        ("A-tables#image", "MSOD/mask-tars#png"),
    ],
)
def test_any_mix_equals_the_folders(pred: str, gt: str) -> None:
    folder = sisod.evaluate("A", "MSOD/mask", jobs=1)
    assert_same(sisod.evaluate(pred, gt, jobs=1), folder)
    assert len(folder.images) == 70


@pytest.mark.usefixtures("packed")
@pytest.mark.slow
@pytest.mark.parametrize("kind", [".tar", ".parquet", "-tars", "-tables"])
def test_in_several_processes(kind: str) -> None:
    folder = sisod.evaluate("A", "MSOD/mask", jobs=1)
    assert_same(sisod.evaluate(f"A{kind}", f"MSOD/mask{kind}", jobs=2), folder)


@pytest.mark.usefixtures("packed")
def test_methods_and_data_sets_are_called_like_their_containers() -> None:
    result = run("evaluate", "A.tar", "MSOD/mask.parquet#image", "--out", "out", "--metrics", "mae")
    assert result.exit_code == 0, result.stderr
    assert names("out") == ["MSOD"]
    assert names("out/MSOD") == ["A"]


@pytest.mark.usefixtures("packed")
def test_every_shard_in_stored_order() -> None:
    for root in ("MSOD/mask-tars", "MSOD/mask-tables", "MSOD/mask.tar", "MSOD/mask.parquet#image"):
        read = [
            (file.name, content) for shard in list_shards(root) for file, content in read_shard(shard)
        ]
        assert dict(read) == files_of("MSOD/mask")
        assert sorted(name for name, _ in read) == [file.name for file in list_files(root)]
    assert list_shards("MSOD/mask") == []
    assert [shard.prefix for shard in list_shards("A-tars")] == [
        f"train-{index:05d}-of-00003.tar/" for index in range(3)
    ]


# runs that end early


@pytest.mark.usefixtures("three_batches")
@pytest.mark.parametrize("write", [write_tar, write_parquet])
def test_broken_image_then_mended(write: Callable[[str, dict[str, bytes]], None]) -> None:
    """The row or member is named, finished work is kept, and a container that changed is noticed."""
    extension, place = (".tar", r"bytes \d+-\d+") if write is write_tar else (".parquet", "row 66")
    members = files_of("A")
    write(f"A{extension}", members | {"scene066.png": members["scene066.png"][:40]})
    preds = (f"A=A{extension}",)
    message = evaluate_refusal(preds=preds)
    assert re.fullmatch(
        rf"'A{extension}/{place}/scene066.png' is not an image that can be read, or is cut short; "
        "replace the file",
        message,
    )
    assert [name[:7] for name in shards()] == ["0000000", "0000001"]
    write(f"A{extension}", members)
    finished("--resume", preds=preds)  # which scores all again, since the container changed
    folder = sisod.evaluate("A", "MSOD/mask", jobs=1)
    assert_same(sisod.Evaluation.load("out/MSOD/A"), folder)


@pytest.mark.usefixtures("ten_batches")
@posix_signals
@pytest.mark.slow
@pytest.mark.parametrize("extension", [".tar", ".parquet"])
def test_killed_and_resumed(extension: str) -> None:
    for folder in ("A", "MSOD/mask"):
        write = write_tar if extension == ".tar" else write_parquet
        write(f"{Path(folder).name}{extension}", files_of(folder))
    options = [f"A{extension}", f"mask{extension}", "--out", "out", "--dataset", "MSOD", "--jobs", "2"]
    options += ["--metrics", "mae,si-mae"]
    kill_in_the_middle(*options)
    assert len(shards()) == 1  # of ten
    result = run("evaluate", *options, "--resume")
    assert result.exit_code == 0, result.stderr
    unbroken = sisod.evaluate("A", "MSOD/mask", jobs=1, metrics=["mae", "si-mae"])
    assert_same(sisod.Evaluation.load("out/MSOD/A"), unbroken)


@pytest.mark.usefixtures("packed")
def test_pictures_of_a_result() -> None:
    """The report reads maps and ground truths again, from where they were scored."""
    pytest.importorskip("matplotlib", reason="extra report is not installed")
    sisod.evaluate("A.parquet", "MSOD/mask-tars", jobs=1, metrics=["mae"], out="out/MSOD/A")
    pages = run("report", "out", "--out", "page.html")
    assert pages.exit_code == 0, pages.stderr
    assert "evaluate again" not in pages.stderr


@pytest.mark.usefixtures("packed")
def test_error_of_a_missing_prediction() -> None:
    write_tar("few.tar", dict(list(files_of("A").items())[:3]))
    result = run("evaluate", "few.tar", "MSOD/mask.parquet", "--out", "out")
    assert error_message(result).startswith("67 of 70 ground truths have no prediction in 'few.tar'")
