"""The same data as a folder, as Parquet and as tar gives the same numbers to the last bit."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.container_files import in_shards, write_parquet, write_tar
from helpers.evaluate_runs import evaluate_refusal, finished, kill_in_the_middle, shards
from helpers.folder_contents import content as files_of
from helpers.folder_contents import names
from helpers.platforms import posix_signals
from helpers.results import assert_same_result

import sisod


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
        ("A.parquet#image", "MSOD/mask.tar#png"),
        ("A-tables#image", "MSOD/mask-tars#png"),
    ],
)
def test_any_mix_equals_the_folders(pred: str, gt: str) -> None:
    folder = sisod.evaluate("A", "MSOD/mask", jobs=1)
    for jobs in (1, 2):
        assert_same_result(sisod.evaluate(pred, gt, jobs=jobs), folder)
    assert len(folder.images) == 70


@pytest.mark.usefixtures("packed")
def test_methods_and_data_sets_are_called_like_their_containers() -> None:
    result = run("evaluate", "A.tar", "MSOD/mask.parquet#image", "--out", "out", "--metrics", "mae")
    assert result.exit_code == 0, result.stderr
    assert names("out") == ["MSOD"]
    assert names("out/MSOD") == ["A"]


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
    assert_same_result(sisod.Evaluation.load("out/MSOD/A"), folder)


@pytest.mark.usefixtures("ten_batches")
@posix_signals
@pytest.mark.slow
@pytest.mark.parametrize("extension", [".tar", ".parquet"])
def test_killed_and_resumed(extension: str) -> None:
    write = write_tar if extension == ".tar" else write_parquet
    for folder in ("A", "MSOD/mask"):
        write(f"{Path(folder).name}{extension}", files_of(folder))
    options = [f"A{extension}", f"mask{extension}", "--out", "out", "--dataset", "MSOD", "--jobs", "2"]
    options += ["--metrics", "mae,si-mae"]
    kill_in_the_middle(*options)
    assert len(shards()) == 1  # of ten
    result = run("evaluate", *options, "--resume")
    assert result.exit_code == 0, result.stderr
    unbroken = sisod.evaluate("A", "MSOD/mask", jobs=1, metrics=["mae", "si-mae"])
    assert_same_result(sisod.Evaluation.load("out/MSOD/A"), unbroken)
