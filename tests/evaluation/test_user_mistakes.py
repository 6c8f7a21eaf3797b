"""Mistakes of users around folders: one clear sentence each, and nothing is written."""

from pathlib import Path
from unittest.mock import Mock

import cv2
import pytest
from helpers.command_line import error_message, refusal, run
from helpers.container_files import in_shards, write_parquet
from helpers.evaluate_runs import finished
from helpers.folder_contents import content as files_of
from helpers.folder_contents import names

import sisod
from sisod.common.exceptions import UsageError

pytestmark = pytest.mark.usefixtures("four_images")


def usage_error(*arguments: str) -> str:
    return error_message(run(*arguments), exit_codes=(2,))


def test_predictions_that_are_the_ground_truths() -> None:
    note = (
        "warning: predictions and ground truths are the same files, in 'MSOD/mask/.': give the "
        "predictions first, the ground truths last\n"
    )
    assert finished("--metrics", "mae", preds=("A=MSOD/mask/.",)) == note
    with pytest.warns(UserWarning, match="predictions and ground truths are the same files"):
        sisod.evaluate("A", Path("A").resolve(), jobs=1, metrics="mae")
    for path in sorted(Path("A").iterdir()):  # both in one folder, as some data sets have them
        path.with_stem(f"{path.stem}_sal").write_bytes(path.read_bytes())
        path.rename(path.with_stem(f"{path.stem}_gt"))
    sisod.evaluate("A", "A", pred_suffix="_sal", gt_suffix="_gt", jobs=1, metrics="mae")


def test_a_result_in_a_folder_of_shards() -> None:
    """Its tables are Parquet files, which the next command would read as shards."""
    for folder in ("A", "MSOD/mask"):
        in_shards(write_parquet, Path(f"{folder}-shards"), files_of(folder), ".parquet")
    text = "the result would go into '{}', a folder of shards, and its tables would be taken for shards"
    roots = ("A-shards#image", "MSOD/mask-shards")
    before = names("A-shards"), names("MSOD")
    for root, out in zip(roots, ("A-shards", "MSOD/mask-shards/results"), strict=True):
        assert usage_error("evaluate", *roots, "--out", out).startswith(text.format(root))
    with pytest.raises(UsageError, match="a folder of shards"):
        sisod.evaluate(*roots, out="A-shards/x", jobs=1)
    assert (names("A-shards"), names("MSOD")) == before
    sisod.evaluate("A", "MSOD/mask", out="A/results", jobs=1, metrics="mae")  # beside images: not read
    sisod.evaluate("A", "MSOD/mask", jobs=1, metrics="mae")


def test_pictures_in_the_folder_of_masks() -> None:
    text = "the pictures would go into the folder of {}, and be taken for some of them; give a folder"
    before = names("MSOD/mask"), names("A")
    message = usage_error("frames", "MSOD/mask", "--out", "MSOD/mask/frames")
    assert message.startswith(text.format("masks, 'MSOD/mask'"))
    message = usage_error("frames", "MSOD/mask", "--images", "A", "--out", "A")
    assert message.startswith(text.format("images, 'A'"))
    assert (names("MSOD/mask"), names("A")) == before
    assert run("frames", "MSOD/mask", "--out", "MSOD/frames").exit_code == 0


def test_a_selection_of_a_folder_of_images() -> None:
    text = "'A#mask' has no image files of #mask; expected nothing, for it has no shards, behind the #"
    assert refusal("evaluate", "A#mask", "MSOD/mask", "--out", "out") == text
    assert refusal("stats", "A#mask") == text
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "command",
    [("evaluate", "A", ""), ("evaluate", "", "MSOD/mask"), ("stats", ""), ("frames", "")],
)
def test_an_empty_name(command: tuple[str, ...]) -> None:
    """An unset variable of a shell must not mean the current folder."""
    out = () if command[0] == "stats" else ("--out", "out")
    assert usage_error(*command, *out).startswith("the name of a folder is empty; expected")
    assert not Path("out").exists()


MEMORY_ERRORS = [
    MemoryError(),
    cv2.error("OpenCV(4.10.0) alloc.cpp:73: error: (-4:Insufficient memory) Failed to allocate"),
    RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes"),
]


@pytest.mark.parametrize("error", MEMORY_ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("function", ["tasks.read_prediction", "notes.resolved_root"])
def test_out_of_memory(error: Exception, function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While scoring, in this process, and at any other time."""
    monkeypatch.setattr(f"sisod.evaluation.{function}", Mock(side_effect=error))
    options = ("--metrics", "mae", "--out", "out", "--jobs", "1")
    assert "not enough memory" in refusal("evaluate", "A", "MSOD/mask", *options)


def test_out_of_memory_in_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no damaged file."""
    monkeypatch.setattr(cv2, "imdecode", Mock(side_effect=MEMORY_ERRORS[1]))
    assert "not enough memory" in refusal("stats", "MSOD/mask")
