"""Names of methods and folders are taken literally: not as a pattern, not as the home folder."""

import ast
from pathlib import Path

import polars as pl
import pytest
from helpers.command_line import run
from helpers.evaluate_runs import finished
from helpers.folder_contents import content
from helpers.paths import ROOT
from helpers.platforms import byte_names, posix_names

import sisod
from sisod.common.errors import InputError
from sisod.common.parquet import join_tables, read_table, table_bytes, write_table
from sisod.evaluation import answers
from sisod.evaluation.driver import evaluate_to
from sisod.evaluation.request import Options, Request

NAMES = ["*", "EDN?", "[", "[ab]", "a{b,c}", "**", "~", "x=1", "s3:", "a%20b", "a\nb"]


@posix_names
@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_literal(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("EDN1", "a", "ab", name):
        (tmp_path / folder).mkdir(exist_ok=True)
        write_table(pl.DataFrame({"v": [folder]}), tmp_path / folder / "t.parquet")
    monkeypatch.chdir(tmp_path)
    file = Path(name, "t.parquet")  # relative, so that ~ comes first
    assert read_table(file)["v"].to_list() == [name]
    join_tables([file, Path("a", "t.parquet")], Path(name, "j.parquet"), row_group_size=9)
    assert sorted(path.name for path in (tmp_path / name).iterdir()) == ["j.parquet", "t.parquet"]
    assert read_table(Path(name, "j.parquet"))["v"].to_list() == [name, "a"]


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


def test_a_folder_called_like_a_pattern(three_batches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables in several parts, which are joined."""
    monkeypatch.setattr(answers, "_GROUP", 1)
    request = Request(
        str(three_batches / "A"),
        str(three_batches / "MSOD/mask"),
        protocol=sisod.PROTOCOLS["default"],
        keys=("mae",),
    )
    out = three_batches / "re[s]" / "A"
    evaluate_to(out, request, Options(jobs=1))
    plain = three_batches / "plain" / "A"
    evaluate_to(plain, request, Options(jobs=1))
    assert content(out) == content(plain)
    assert sisod.Evaluation.load(out).images.height == 70


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
    for use in (read_table, lambda path: write_table(pl.DataFrame({"a": [1]}), path)):
        with pytest.raises(InputError, match=f"^the path .*{sentence}"):
            use(folder / "images.parquet")


@posix_names
def test_what_is_not_parquet(tmp_path: Path) -> None:
    file = tmp_path / "a\nb"
    with pytest.raises(InputError, match=r"^'.*/a\\nb' does not exist$"):
        read_table(file)
    for damaged in (b"", b"not Parquet", table_bytes(pl.DataFrame({"a": [1]}))[:-9]):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"^'.*/a\\nb' is not a Parquet file that can be read: .+$"):
            read_table(file)


def test_nobody_else_reads_or_writes_parquet() -> None:
    """A direct call would take a path for a pattern again."""
    calls = {"read_parquet", "scan_parquet", "sink_parquet", "write_parquet"}
    places = (Path(sisod.__file__).parent, ROOT / "benchmarks", ROOT / "examples")
    files = [path for place in places for path in place.rglob("*.py")]
    assert len(files) > 100
    users = {
        path.name
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in calls
    }
    assert users == {"parquet.py"}
