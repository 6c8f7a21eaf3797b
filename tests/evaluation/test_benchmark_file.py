"""The input of `sisod evaluate`: a TOML file, or folders and options; and usage errors."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import error_message, run
from helpers.platforms import byte_names
from quotes import ROOT
from typer.testing import Result

import sisod
from sisod.common.exceptions import InputError, UsageError
from sisod.evaluation.benchmark import read_benchmark
from sisod.evaluation.benchmark_file import read_benchmark_file
from sisod.evaluation.request import Folders
from sisod.scoring.metrics import PAPER_KEYS

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


def usage(*args: str) -> str:
    """Answer to what can never work, whatever the files."""
    result = evaluate(*args)
    assert result.exit_code == 2, repr(result.exception)
    assert not Path("out").exists()
    return " ".join(result.stderr.replace("│", " ").split())


# the file


def test_methods_times_data_sets() -> None:
    Path("sub").mkdir()
    path = Path("sub", "bench.toml")
    path.write_text(TWO_BY_TWO)
    benchmark = read_benchmark_file(path)
    assert list(benchmark.folders.items()) == [
        (("D1", "EDN"), Folders("sub/maps/edn/D1", "sub/gt1", "_sal", "_mask")),
        (("D1", "ICON"), Folders("sub/maps/icon", "sub/gt1", "", "_mask")),
        (("D 2", "EDN"), Folders("sub/maps/edn/D 2", "s3://bucket/gt2", "_sal", "")),
    ]
    assert (benchmark.metrics, benchmark.protocol) == (("mae", "si_mae"), "paper")


@pytest.mark.slow
def test_the_shipped_example(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    path = Path(shutil.copy(ROOT / "examples" / "benchmark.toml", tmp_path / "examples"))
    assert run("demo", "--quick", "--out", str(tmp_path / "demo")).exit_code == 0
    benchmark = read_benchmark_file(path)
    result = evaluate(str(path), "--format", "csv")
    assert result.exit_code == 0, result.stderr
    rows = [line.split(",") for line in result.stdout.splitlines()]
    assert rows[0] == ["dataset", "method", *PAPER_KEYS]
    assert [row[:2] for row in rows[1:]] == [list(name) for name in benchmark.folders]
    assert len(benchmark.folders) >= 2
    for name in benchmark.folders:
        assert sisod.Evaluation.load(Path("out", *name)).protocol.name == "default"


def test_one_run_of_several() -> None:
    for folder in ("gt1", "gt2", "maps/edn/D1", "maps/edn/D2", "maps/icon"):
        fill(folder)
    written(TWO_BY_TWO.replace("s3://bucket/", "").replace('"D 2"', "D2").replace("suffix", "#"))
    result = evaluate("bench.toml", "--format", "csv")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "dataset,method,mae,si_mae\n" + "".join(
        f"{cell},0.0,0.0\n" for cell in ("D1,EDN", "D1,ICON", "D2,EDN")
    )


def test_options_are_stronger_than_the_file() -> None:
    fill("gt")
    fill("maps")
    written('metrics = "paper"\nprotocol = "default"\n' + ONE)
    result = evaluate("bench.toml", "--metrics", "mae", "--protocol", "paper", "--format", "csv")
    assert (result.exit_code, result.stdout) == (0, "dataset,method,mae\nD,M,0.0\n")
    assert sisod.Evaluation.load("out/D/M").protocol.name == "paper"


@pytest.mark.parametrize(
    "option", [["--dataset", "E"], ["--pred-suffix", "_sal"], ["--gt-suffix", "_mask"]]
)
def test_options_that_a_file_leaves_no_room_for(option: list[str]) -> None:
    fill("gt")
    fill("maps")
    written(ONE)
    assert usage("bench.toml", *option) == (  # it must not be dropped without a word
        "error: --dataset, --pred-suffix and --gt-suffix are for folders; a TOML file says them itself"
    )


TEXTS = {
    "no file": (None, "'bench.toml' cannot be read: No such file or directory"),
    "not TOML": ("a = = 1", "'bench.toml' is not a TOML file: Invalid value (at line 1, column 5)"),
    "empty": ("", "bench.toml: expected at least one [datasets.NAME]"),
    "no data set": ("[datasets]\n", "bench.toml: expected at least one [datasets.NAME]"),
    "no method": ('[datasets.D]\ngt = "gt"\n', "bench.toml: expected at least one [methods.NAME]"),
    "unknown key": (
        "metric = 1\n" + ONE,
        "bench.toml: unknown key 'metric' at the top; expected datasets, methods, metrics, protocol",
    ),
    "unknown key of a data set": (
        ONE.replace("gt =", "mask ="),
        "bench.toml: unknown key 'mask' in [datasets.D]; expected class, gt, labels, suffix",
    ),
    "unknown key of a method": (
        ONE + "path = 1\n",
        "bench.toml: unknown key 'path' in [methods.M]; expected pred, suffix",
    ),
    "no table": (
        'datasets.D = "gt"\n[methods.M]\npred = "m"\n',
        "bench.toml: datasets.D must be a table like [datasets.D]",
    ),
    "no ground truth": (
        '[datasets.D]\n[methods.M]\npred = "m"\n',
        'bench.toml: [datasets.D] needs gt = "...", which is missing',
    ),
    "a number": (ONE.replace('"maps"', "3"), 'bench.toml: [methods.M] needs pred = "...", got 3'),
    "a number in a table": (
        ONE.replace('"maps"', "{ D = 3 }"),
        'bench.toml: [methods.M.pred] needs D = "...", got 3',
    ),
    "unknown data set": (
        ONE.replace('"maps"', '{ E = "maps" }'),
        "bench.toml: methods.M names the data set 'E'; expected D",
    ),
    "name with a slash": (
        ONE.replace("datasets.D", 'datasets."a/b"'),
        "data set name 'a/b' cannot name a folder; give it another",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_files_that_are_refused(case: str) -> None:
    content, text = TEXTS[case]
    if content is not None:
        written(content)
    assert refusal("bench.toml") == text


def test_file_that_is_no_text() -> None:
    Path("bench.toml").write_bytes(b"\xff\xfe")
    assert refusal("bench.toml").startswith(
        "'bench.toml' is not a TOML file: 'utf-8' codec can't decode"
    )


def test_file_that_asks_for_nothing() -> None:
    written(ONE.replace('"maps"', "{}"))
    assert refusal("bench.toml") == (
        "bench.toml: no method has predictions for any data set; give some a pred"
    )


METRICS_TEXT = 'metrics must be "paper", "sod", "dis", "all" or a list of keys, got '


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("metrics = 5", METRICS_TEXT + "5"),
        ("metrics = [1]", METRICS_TEXT + "[1]"),
        ("metrics = true", METRICS_TEXT + "True"),
        ("metrics = { mae = 1 }", METRICS_TEXT + "{'mae': 1}"),
        ("protocol = 3", "protocol must be a name in quotes, got 3"),
    ],
)
def test_settings_of_the_wrong_type(setting: str, text: str) -> None:
    fill("gt")
    fill("maps")
    written(f"{setting}\n{ONE}")
    assert refusal("bench.toml") == f"bench.toml: {text}"
    assert not Path("out").exists()


def test_names_that_are_a_single_text() -> None:
    """It would be taken for a list of letters."""
    fill("gt")
    fill("maps")
    path = written("[datasets.D]\ngt = 'gt'\n[methods.M]\npred = 'maps'\n")
    with pytest.raises(UsageError, match=r"^names must be a list of names, got the string 'ab'$"):
        sisod.evaluate_benchmark(path, "out", names="ab", jobs=1)


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


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        (["a/edn", "b/edn", "MSOD"], "two predictions are called 'edn'; give them names, as NAME=DIR"),
        ([".hidden", "MSOD"], "method name '.hidden' cannot name a folder; give it another"),
    ],
)
def test_requests_that_are_refused(paths: list[str], text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_benchmark(paths)
    assert str(caught.value) == text


def test_name_without_a_folder() -> None:
    text = "^'EDN=' names a method but no folder; expected NAME=DIR$"
    with pytest.raises(UsageError, match=text):
        read_benchmark(["EDN=", "MSOD"])


def test_half_of_the_maps() -> None:
    fill("gt")
    fill("A", "bdx")
    assert refusal("A", "gt") == (
        "2 of 4 ground truths have no prediction in 'A' (a, c); use --allow-missing to score the other 2"
    )
    assert not Path("out").exists()
    result = evaluate("A", "gt", "--allow-missing", "--format", "json", "--dataset", "half")
    assert result.exit_code == 0
    assert result.stderr == (
        "warning: no prediction in 'A' for 2 ground truths (a, c), left out\n"
        "warning: 1 file in 'A' has no ground truth (x) and was not scored\n"
        "half: SI-AUC undefined on all 2 images\n"  # the object fills its frame
    )
    loaded = sisod.Evaluation.load("out/half/A")
    assert loaded.images["image"].to_list() == ["b", "d"]
    assert loaded.run["inputs"] == {
        "predictions": str(Path("A").resolve()),
        "ground_truths": str(Path("gt").resolve()),
        "pred_suffix": "",
        "gt_suffix": "",
        "missing": ["a", "c"],
        "extra": 1,
        "extra_names": ["x"],
    }


def test_suffixes_list_and_name_of_the_data_set() -> None:
    fill("gt", suffix="_mask")
    fill("A", suffix="_sal")
    Path("names.txt").write_text("d\nb.png\n")
    options = ["--pred-suffix", "_sal", "--gt-suffix", "_mask", "--list", "names.txt", "--dataset", "D"]
    assert evaluate("A", "gt", *options).exit_code == 0
    assert sisod.Evaluation.load("out/D/A").images["image"].to_list() == ["b", "d"]


@byte_names
def test_folder_whose_name_is_no_text() -> None:
    odd = os.fsdecode(b"A\xff")
    fill("gt")
    fill(odd)
    for path, what in ((f"A={odd}", "the folder name"), (odd, "method name")):
        assert refusal(path, "gt") == f"{what} 'A\\udcff' is not valid UTF-8; rename the file"
    assert not Path("out").exists()


def test_name_too_long_for_a_folder() -> None:
    fill("gt")
    fill("A")
    assert "is too long for a folder; shorten it" in refusal(f"{'x' * 300}=A", "gt")


# usage


def test_standard_error_holds_warnings_only() -> None:
    fill("gt")
    fill("A")
    for options in ([], ["--overwrite", "--format", "csv"]):
        result = evaluate("A", "gt", "--dataset", "D", *options)
        undefined = "D: SI-AUC undefined on all 4 images\n"  # the object fills its frame
        assert (result.exit_code, result.stderr) == (0, undefined)
        assert "A" in result.stdout


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--metrics", "si_ma"], "error: unknown metric 'si_ma'; did you mean 'si_mae'? available: "),
        (["--metrics", "mae,"], "error: unknown metric ''; available: "),
        (["--protocol", "papr"], "unknown protocol 'papr'; did you mean 'paper'? available: cc, def"),
        (["--jobs", "0"], "Invalid value for '--jobs'"),
        (["--format", "xml"], "Invalid value for '--format'"),
        (["--nonsense"], "No such option: --nonsense"),
        (
            ["--resume", "--overwrite"],
            "error: --resume goes on with a run and --overwrite begins again; choose one",
        ),
    ],
)
def test_bad_usage(args: list[str], text: str) -> None:
    fill("gt")
    fill("A")
    assert text in usage("A", "gt", *args)


def test_too_few_folders() -> None:
    text = "expected folders of predictions and after them the folder of ground truths, or one TOML file"
    assert text in usage("A")


def test_help_tells_the_defaults() -> None:
    said = run("evaluate", "--help", env={"COLUMNS": "200"})
    assert said.exit_code == 0
    for text in ("Name of the data set; by default", "with commas; by default", "Processes; by default"):
        assert text in said.stdout


def test_from_python(four_images: Path) -> None:
    """The same results as the command, in the order of the file; warnings name the cell."""
    text = (
        'metrics = ["mae", "si_mae"]\n[datasets.MSOD]\ngt = "MSOD/mask"\n'
        '[methods.B]\npred = "B"\n[methods.A]\npred = "A"\n'
    )
    Path("b.toml").write_text(text, encoding="utf-8")
    command = run("evaluate", "b.toml", "--out", "by_command", "--jobs", "1")
    assert command.exit_code == 0, command.stderr
    results = sisod.evaluate_benchmark("b.toml", "out", jobs=1)
    assert list(results) == [("MSOD", "B"), ("MSOD", "A")]
    for (dataset, method), result in results.items():
        saved = sisod.Evaluation.load(Path("by_command", dataset, method))
        assert (
            result.summary == saved.summary == sisod.Evaluation.load(f"out/{dataset}/{method}").summary
        )
        assert result.images.equals(saved.images)
    assert set(results["MSOD", "A"].summary) == {"mae", "si_mae"}
    chosen = sisod.evaluate_benchmark("b.toml", "paper", jobs=1, metrics=["mse"], protocol="paper")
    assert list(chosen["MSOD", "A"].summary) == ["mse"]
    assert chosen["MSOD", "A"].protocol.name == "paper"
    (four_images / "A" / "more.png").write_bytes((four_images / "A" / "scene000.png").read_bytes())
    with pytest.warns(UserWarning, match="^A on MSOD: 1 file in .* has no ground truth"):
        sisod.evaluate_benchmark("b.toml", "again", jobs=1)


def test_from_python_nothing_is_scored_before_all_is_checked(four_images: Path) -> None:
    (four_images / "B" / "scene001.png").unlink()
    text = '[datasets.MSOD]\ngt = "MSOD/mask"\n[methods.A]\npred = "A"\n[methods.B]\npred = "B"\n'
    Path("b.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="1 of 4 ground truths have no prediction"):
        sisod.evaluate_benchmark("b.toml", "out", jobs=1)
    assert not Path("out").exists()
    with pytest.raises(UsageError, match="file must be a TOML file of methods and data sets, got 'A'"):
        sisod.evaluate_benchmark("A", "out")
