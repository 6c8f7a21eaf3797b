"""Names of methods and folders are taken literally: not as a pattern, not as the home folder."""

from pathlib import Path

import polars as pl
import pytest
from helpers.evaluate_runs import finished
from helpers.platforms import byte_names, posix_names

import sisod
from sisod.common.exceptions import InputError
from sisod.common.files import read_table
from sisod.common.output import table_bytes

NAMES = ["*", "EDN?", "[ab]", "a{b,c}", "**", "~", "x=1", "s3:", "a%20b", "a\nb"]


@posix_names
@pytest.mark.usefixtures("inside_tmp_path")
def test_every_name_is_literal() -> None:
    for name in ("EDN1", "a", "ab", *NAMES):
        Path(name).mkdir()
        Path(name, "t.parquet").write_bytes(table_bytes(pl.DataFrame({"v": [name]})))
    for name in NAMES:  # relative, so that ~ comes first
        assert read_table(Path(name, "t.parquet"))["v"].to_list() == [name]


@posix_names
def test_a_method_called_like_a_pattern(four_images: Path) -> None:
    finished("--metrics", "mae", preds=("EDN?=A", "EDN1=B", "*=B"))
    for method, source in (("EDN?", "A"), ("EDN1", "B"), ("*", "B")):
        loaded = sisod.Evaluation.load(four_images / "out" / "MSOD" / method)
        assert loaded.images.height == 4
        assert loaded.run["inputs"]["predictions"] == str(four_images / source)


@byte_names
@pytest.mark.usefixtures("four_images")
def test_a_folder_whose_name_is_not_utf8() -> None:
    """There is no such path for polars: refused before scoring, and when loaded."""
    folder, sentence = Path("r\udcff"), "is not valid UTF-8; rename the file$"
    with pytest.raises(InputError, match=sentence):
        sisod.evaluate("A", "MSOD/mask", out=folder, metrics="mae", jobs=1)
    assert not folder.exists()
    sisod.evaluate("A", "MSOD/mask", out="r", metrics="mae", jobs=1)
    Path("r").rename(folder)
    with pytest.raises(InputError, match=f"^the folder name .*{sentence}"):
        sisod.Evaluation.load(folder)
