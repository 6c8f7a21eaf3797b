"""Names of methods and folders are taken literally: not as a pattern, not as the home folder."""

from pathlib import Path

import polars as pl
import pytest
from helpers.command_line import run
from helpers.evaluate_runs import finished
from helpers.platforms import byte_names, posix_names

import sisod
from sisod.common.exceptions import InputError
from sisod.common.files import read_table
from sisod.common.output import table_bytes

NAMES = ["*", "EDN?", "[", "[ab]", "a{b,c}", "**", "~", "x=1", "s3:", "a%20b", "a\nb"]


@posix_names
@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_literal(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("EDN1", "a", "ab", name):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "t.parquet").write_bytes(table_bytes(pl.DataFrame({"v": [folder]})))
    monkeypatch.chdir(tmp_path)
    file = Path(name, "t.parquet")  # relative, so that ~ comes first
    assert read_table(file)["v"].to_list() == [name]


@posix_names
def test_a_method_called_like_a_pattern(four_images: Path) -> None:
    finished("--metrics", "mae", preds=("EDN?=A", "EDN1=B", "*=B"))
    for method, source in (("EDN?", "A"), ("EDN1", "B"), ("*", "B")):
        loaded = sisod.Evaluation.load(four_images / "out" / "MSOD" / method)
        assert loaded.images.height == 4
        assert loaded.run["inputs"]["predictions"] == str(four_images / source)
    folders = [str(four_images / "out" / "MSOD" / method) for method in ("EDN?", "EDN1")]
    result = run("compare", *folders, "--resamples", "9")
    assert result.exit_code == 0
    assert "4 images" in result.stdout


@byte_names
def test_a_folder_whose_name_is_not_utf8(three_batches: Path) -> None:
    """There is no such path for polars: refused before scoring, and when loaded."""
    folder, sentence = three_batches / "r\udcff", "is not valid UTF-8; rename the file$"
    with pytest.raises(InputError, match=sentence):
        sisod.evaluate(
            three_batches / "A", three_batches / "MSOD/mask", out=folder, metrics="mae", jobs=1
        )
    assert not folder.exists()
    sisod.evaluate(
        three_batches / "A", three_batches / "MSOD/mask", out=three_batches / "r", metrics="mae", jobs=1
    )
    (three_batches / "r").rename(folder)
    with pytest.raises(InputError, match=f"^the folder name .*{sentence}"):
        sisod.Evaluation.load(folder)


@posix_names
def test_what_is_not_parquet(tmp_path: Path) -> None:
    file = tmp_path / "a\nb"
    with pytest.raises(InputError, match="No such file"):
        read_table(file)
    for damaged in (b"", b"not Parquet", table_bytes(pl.DataFrame({"a": [1]}))[:-9]):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"^'.*/a\\nb' is not a Parquet file that can be read: .+$"):
            read_table(file)
