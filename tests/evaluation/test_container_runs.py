"""The same data as a folder, as Parquet and as tar gives the same numbers to the last bit."""

from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.container_files import in_shards, write_parquet, write_tar
from helpers.folder_contents import content as files_of
from helpers.folder_contents import names
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
