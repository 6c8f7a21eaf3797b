"""The input of `sisod evaluate`: a TOML file, or folders and options; and usage errors."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import error_message, run
from helpers.results import assert_same_result
from quotes import ROOT
from typer.testing import Result

import sisod
from sisod.common.exceptions import InputError, UsageError
from sisod.evaluation.benchmark import read_benchmark
from sisod.evaluation.tasks import Folders

pytestmark = pytest.mark.usefixtures("inside_tmp_path")

GT = np.zeros((6, 8), dtype=bool)
GT[1:4, 1:4] = GT[5, 7] = True

TWO_BY_TWO = """
metrics = ["mae", "si_mae"]
protocol = "paper"
[datasets.D1]
gt = "gt1"
suffix = "_mask"
[datasets."D 2"]
gt = "s3://bucket/gt2"
[methods.EDN]
pred = "maps/edn/{dataset}"
suffix = "_sal"
[methods.ICON]
pred = { D1 = "maps/icon" }
"""
ONE = '[datasets.D]\ngt = "gt"\n[methods.M]\npred = "maps"\n'


def fill(folder: str | Path, names: str = "abcd", suffix: str = "") -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names:
        np.save(Path(folder, f"{name}{suffix}.npy"), GT)


def written(text: str) -> Path:
    path = Path("bench.toml")
    path.write_text(text)
    return path


def evaluate(*args: str) -> Result:
    return run("evaluate", "--out", "out", "--jobs", "1", *args)


def refusal(*args: str) -> str:
    return error_message(evaluate(*args))


# the file


def test_methods_times_data_sets() -> None:
    Path("sub").mkdir()
    path = Path("sub", "bench.toml")
    path.write_text(TWO_BY_TWO)
    benchmark = read_benchmark([str(path)])
    assert list(benchmark.folders.items()) == [
        (("D1", "EDN"), Folders("sub/maps/edn/D1", "sub/gt1", "_sal", "_mask")),
        (("D1", "ICON"), Folders("sub/maps/icon", "sub/gt1", "", "_mask")),
        (("D 2", "EDN"), Folders("sub/maps/edn/D 2", "s3://bucket/gt2", "_sal", "")),
    ]
    assert (benchmark.metrics, benchmark.protocol) == (("mae", "si_mae"), "paper")


@pytest.mark.slow
def test_the_shipped_example(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    path = shutil.copy(ROOT / "examples" / "benchmark.toml", tmp_path / "examples")
    assert run("demo", "--quick", "--out", tmp_path / "demo").exit_code == 0
    assert len(sisod.evaluate_benchmark(path, "out", jobs=1)) >= 2


def test_options_are_stronger_than_the_file() -> None:
    fill("gt")
    fill("maps")
    written('metrics = "paper"\nprotocol = "default"\n' + ONE)
    result = evaluate("bench.toml", "--metrics", "mae", "--protocol", "paper", "--format", "csv")
    assert (result.exit_code, result.stdout) == (0, "dataset,method,mae\nD,M,0.0\n")
    assert sisod.Evaluation.load("out/D/M").protocol.name == "paper"


# what the file holds, and what the message must name
TEXTS: dict[str, tuple[str | bytes | None, tuple[str, ...]]] = {
    "no file": (None, ("'bench.toml' cannot be read: No such file",)),
    "not TOML": ("a = = 1", ("'bench.toml' is not a TOML file", "line 1")),
    "not text": (b"\xff\xfe", ("'bench.toml' is not a TOML file", "utf-8")),
    "no data set": ("[datasets]\n[methods]\n", ("no method has predictions",)),
    "no method": ('[datasets.D]\ngt = "gt"\n', ("missing methods",)),
    "unknown key": (
        "metric = 1\n" + ONE,
        ("unknown key 'metric'", "did you mean 'metrics'", "expected datasets, methods, metrics"),
    ),
    "unknown key of a data set": (ONE.replace("gt =", "mask ="), ("[datasets.D]", "'mask'")),
    "unknown key of a method": (ONE + "path = 1\n", ("[methods.M]", "'path'")),
    "no ground truth": ('[datasets.D]\n[methods.M]\npred = "m"\n', ("[datasets.D]: missing gt",)),
    "a number": (ONE.replace('"maps"', "3"), ("[methods.M]: pred: expected",)),
    "unknown data set": (ONE.replace('"maps"', '{ E = "maps" }'), ("methods.M", "'E'; expected D")),
    "name with a slash": (ONE.replace("datasets.D", 'datasets."a/b"'), ("data set name 'a/b'",)),
    "function": ('metrics = ["mae", "os:system"]\n' + ONE, ("a file runs no code",)),
}


@pytest.mark.parametrize("case", TEXTS)
def test_files_with_errors(case: str) -> None:
    content, texts = TEXTS[case]
    if content is not None:
        Path("bench.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    message = refusal("bench.toml")
    assert all(text in message for text in texts), message
    assert "bench.toml" in message or case == "name with a slash"
    assert not Path("out").exists()


# folders


@pytest.mark.parametrize(
    ("paths", "methods"),
    [
        (["maps/edn", "MSOD/mask"], [("MSOD", "edn", "maps/edn")]),
        (["maps/edn/", "data/MSOD/GT/"], [("MSOD", "edn", "maps/edn/")]),
        (["E=maps/edn", "I J=x=y", "MSOD"], [("MSOD", "E", "maps/edn"), ("MSOD", "I J", "x=y")]),
        (["s3://bucket/maps/edn", "s3://bucket/MSOD/gt"], [("MSOD", "edn", "s3://bucket/maps/edn")]),
    ],
)
def test_methods_and_data_sets_are_named_after_folders(
    paths: list[str], methods: list[tuple[str, str, str]]
) -> None:
    benchmark = read_benchmark(paths)
    assert [(*name, folders.pred_root) for name, folders in benchmark.folders.items()] == methods


def test_folder_with_an_equals_sign_in_its_name() -> None:
    Path("lr=0.1").mkdir()
    (folders,) = read_benchmark(["lr=0.1", "MSOD"]).folders.values()
    assert folders.pred_root == "lr=0.1"


CASES = """
datasets = { D = { gt = "a" }, d = { gt = "b" } }
methods = { M = { pred = { D = "m" } }, N = { pred = { d = "m" } } }
"""


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        (["a/edn", "b/edn", "MSOD"], "'MSOD/edn' and 'MSOD/edn' would share a folder"),
        (["A=a", "a=b", "MSOD"], "'MSOD/A' and 'MSOD/a'"),
        ([".hidden", "MSOD"], "method name '.hidden' cannot name a folder"),
        (["bench.toml"], "'D' and 'd' would share"),  # data sets that differ in case only
    ],
)
def test_names_that_cannot_be_folders(paths: list[str], text: str) -> None:
    written(CASES)
    with pytest.raises(InputError, match=text):
        read_benchmark(paths)


def test_half_of_the_maps() -> None:
    fill("gt")
    fill("A", "bdx")
    assert refusal("A", "gt") == (
        "2 of 4 ground truths have no prediction in 'A' (a, c); use --allow-missing to score the other 2"
    )
    assert not Path("out").exists()
    result = evaluate("A", "gt", "--allow-missing", "--metrics", "mae", "--dataset", "half")
    assert (result.exit_code, result.stderr) == (
        0,
        "warning: no prediction in 'A' for 2 ground truths (a, c), left out\n"
        "warning: 1 file in 'A' has no ground truth (x) and was not scored\n",
    )
    loaded = sisod.Evaluation.load("out/half/A")
    assert loaded.images["image"].to_list() == ["b", "d"]
    expected = {"missing": ["a", "c"], "extra": 1, "extra_names": ["x"]}
    assert expected.items() <= loaded.run["inputs"].items()


def test_suffixes_list_and_name_of_the_data_set() -> None:
    fill("gt", suffix="_mask")
    fill("A", suffix="_sal")
    Path("names.txt").write_text("d\nb.png\n")
    options = ["--pred-suffix", "_sal", "--gt-suffix", "_mask", "--list", "names.txt", "--dataset", "D"]
    assert evaluate("A", "gt", *options).exit_code == 0
    assert sisod.Evaluation.load("out/D/A").images["image"].to_list() == ["b", "d"]


# usage, and from Python


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["A", "gt", "--metrics", "si_ma"], "unknown metric 'si_ma'; did you mean 'si_mae'?"),
        (["A", "gt", "--metrics", "mae,"], "unknown metric ''"),
        (["A", "gt", "--protocol", "papr"], "unknown protocol 'papr'; did you mean 'paper'?"),
        (["A", "gt", "--jobs", "0"], "'--jobs'"),
        (["A", "gt", "--format", "xml"], "'--format'"),
        (["A", "gt", "--resume", "--overwrite"], "--resume goes on with a run and --overwrite begins"),
        (["A"], "expected folders of predictions and after them the folder of ground truths, or one"),
        # a file leaves no room for them, and they must not be dropped without a word
        (["bench.toml", "--dataset", "E"], "--dataset"),
        (["bench.toml", "--pred-suffix", "_sal"], "--pred-suffix"),
        (["bench.toml", "--label-maps"], "--label-maps"),
        (["bench.toml", "--classes", "1"], "--classes"),
    ],
)
def test_bad_usage(args: list[str], text: str) -> None:
    """What can never work, whatever the files."""
    for folder in ("gt", "A", "maps"):
        fill(folder)
    written(ONE)
    result = evaluate(*args)
    assert result.exit_code == 2, repr(result.exception)
    assert text in " ".join(result.stderr.replace("│", " ").split())
    assert not Path("out").exists()


def test_from_python(four_images: Path) -> None:
    """The same results as the command, in the order of the file; warnings name the cell."""
    text = (
        'metrics = ["mae", "si_mae"]\n[datasets.MSOD]\ngt = "MSOD/mask"\n'
        '[methods.B]\npred = "B"\n[methods.A]\npred = "A"\n'
    )
    written(text)
    command = run("evaluate", "bench.toml", "--out", "by_command", "--jobs", "1")
    assert command.exit_code == 0, command.stderr
    results = sisod.evaluate_benchmark("bench.toml", "out", jobs=1)
    assert list(results) == [("MSOD", "B"), ("MSOD", "A")]
    for name, result in results.items():
        for out in ("by_command", "out"):
            assert_same_result(result, sisod.Evaluation.load(Path(out, *name)))
    assert set(results["MSOD", "A"].summary) == {"mae", "si_mae"}
    chosen = sisod.evaluate_benchmark("bench.toml", "paper", jobs=1, metrics=["mse"], protocol="paper")
    assert list(chosen["MSOD", "A"].summary) == ["mse"]
    assert chosen["MSOD", "A"].protocol.name == "paper"
    (four_images / "A" / "more.png").write_bytes((four_images / "A" / "scene000.png").read_bytes())
    with pytest.warns(UserWarning, match="^A on MSOD: 1 file in .* has no ground truth"):
        sisod.evaluate_benchmark("bench.toml", "again", jobs=1)


def test_from_python_nothing_is_scored_before_all_is_checked(four_images: Path) -> None:
    (four_images / "B" / "scene001.png").unlink()
    text = '[datasets.MSOD]\ngt = "MSOD/mask"\n[methods.A]\npred = "A"\n[methods.B]\npred = "B"\n'
    written(text)
    with pytest.raises(InputError, match="1 of 4 ground truths have no prediction"):
        sisod.evaluate_benchmark("bench.toml", "out", jobs=1)
    assert not Path("out").exists()
    with pytest.raises(UsageError, match="or one TOML file; got one folder, 'A'"):
        sisod.evaluate_benchmark("A", "out")
