"""The input of `sisod evaluate`: a TOML file, or folders and options; and usage errors."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import error_message, run
from helpers.extreme_values import EXTREME_VALUES
from helpers.messages import check_one_sentence
from helpers.platforms import byte_names
from quotes import ROOT
from typer.testing import Result

import sisod
from sisod.common.exceptions import InputError, UsageError
from sisod.evaluation.benchmark import read_benchmark
from sisod.evaluation.driver import check_request
from sisod.evaluation.tasks import Folders, Options, make_request
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
    path = Path(shutil.copy(ROOT / "examples" / "benchmark.toml", tmp_path / "examples"))
    assert run("demo", "--quick", "--out", str(tmp_path / "demo")).exit_code == 0
    benchmark = read_benchmark([str(path)])
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
    "option", [["--dataset", "E"], ["--pred-suffix", "_sal"], ["--label-maps"], ["--classes", "1"]]
)
def test_options_that_a_file_leaves_no_room_for(option: list[str]) -> None:
    fill("gt")
    fill("maps")
    written(ONE)
    assert f"{option[0]}" in usage("bench.toml", *option)  # it must not be dropped without a word


# what the file holds, and what the message must name
TEXTS: dict[str, tuple[str | bytes | None, tuple[str, ...]]] = {
    "no file": (None, ("'bench.toml' cannot be read: No such file",)),
    "not TOML": ("a = = 1", ("'bench.toml' is not a TOML file", "line 1")),
    "not text": (b"\xff\xfe", ("'bench.toml' is not a TOML file", "utf-8")),
    "empty": ("", ("missing datasets",)),
    "no data set": ("[datasets]\n[methods]\n", ("no method has predictions",)),
    "no method": ('[datasets.D]\ngt = "gt"\n', ("missing methods",)),
    "unknown key": (
        "metric = 1\n" + ONE,
        ("unknown key 'metric'", "did you mean 'metrics'", "expected datasets, methods, metrics"),
    ),
    "unknown key of a data set": (ONE.replace("gt =", "mask ="), ("[datasets.D]", "'mask'")),
    "unknown key of a method": (ONE + "path = 1\n", ("[methods.M]", "'path'")),
    "no table": ('datasets.D = "gt"\n[methods.M]\npred = "m"\n', ("datasets", "expected object")),
    "no ground truth": ('[datasets.D]\n[methods.M]\npred = "m"\n', ("[datasets.D]: missing gt",)),
    "a number": (ONE.replace('"maps"', "3"), ("[methods.M]: pred: expected",)),
    "unknown data set": (ONE.replace('"maps"', '{ E = "maps" }'), ("methods.M", "'E'; expected D")),
    "name with a slash": (ONE.replace("datasets.D", 'datasets."a/b"'), ("data set name 'a/b'",)),
    "metrics": ("metrics = 5\n" + ONE, ("metrics: expected",)),
    "labels": (
        ONE.replace("[methods", "labels = 1\n[methods"),
        ("[datasets.D]: labels: expected bool",),
    ),
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


EXTREME_PLACES = {
    "metrics": "metrics = {}\n",
    "protocol": "protocol = {}\n",
    "datasets": "datasets = {}\n",
    "gt": "[datasets.E]\ngt = {}\n",
    "suffix of a data set": "[datasets.E]\ngt = 'gt'\nsuffix = {}\n",
    "pred": "[methods.N]\npred = {}\n",
    "pred of a data set": "[methods.N]\npred = {{ D = {} }}\n",
}


@pytest.mark.parametrize("place", EXTREME_PLACES)
def test_extreme_values_give_one_sentence(place: str) -> None:
    fill("gt")
    fill("maps")
    is_top = place in ("metrics", "protocol", "datasets")
    for value in EXTREME_VALUES.values():
        written(
            EXTREME_PLACES[place].format(value) + ONE
            if is_top
            else ONE + EXTREME_PLACES[place].format(value)
        )
        try:
            check_scorable()
        except InputError as error:
            check_one_sentence(str(error))


@pytest.mark.parametrize(
    "name",
    ["''", "'..'", "'a/b'", '"a\\u0000b"', '"a\\nb"', "'" + "x" * 300 + "'", "'.x'", "'Größe 😀'"],
)
def test_extreme_names_give_one_sentence(name: str) -> None:
    for text in (
        ONE.replace("datasets.D", f"datasets.{name}"),
        ONE.replace("methods.M", f"methods.{name}"),
        ONE.replace('"maps"', f"{{ {name} = 'x' }}"),
    ):
        written(text)
        with pytest.raises(InputError) as caught:  # there are no folders
            check_scorable()
        check_one_sentence(str(caught.value))


def check_scorable() -> None:
    """What `sisod evaluate` does before it scores."""
    benchmark = read_benchmark(["bench.toml"])
    protocol = benchmark.protocol or "default"
    for name, folders in benchmark.folders.items():
        request = make_request(folders, protocol=protocol, metrics=benchmark.metrics)
        check_request(request, Options(jobs=1), Path("out", *name))


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
        (["a/edn", "b/edn", "MSOD"], "two predictions are called 'MSOD/edn' and 'MSOD/edn'"),
        (["A=a", "a=b", "MSOD"], "'MSOD/A' and 'MSOD/a'"),
        ([".hidden", "MSOD"], "method name '.hidden' cannot name a folder"),
    ],
)
def test_names_that_cannot_be_folders(paths: list[str], text: str) -> None:
    with pytest.raises(InputError, match=text):
        read_benchmark(paths)


def test_data_sets_that_differ_in_case_only() -> None:
    text = '[datasets.D]\ngt = "a"\n[datasets.d]\ngt = "b"\n[methods.M]\npred = { D = "m" }\n'
    written(text + '[methods.N]\npred = { d = "m" }\n')
    with pytest.raises(InputError, match="'D' and 'd/N'"):
        read_benchmark(["bench.toml"])


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
    for path in (f"A={odd}", odd):
        assert "is not valid UTF-8; rename the file" in refusal(path, "gt")
    assert not Path("out").exists()


def test_name_too_long_for_a_folder() -> None:
    fill("gt")
    fill("A")
    assert "File name too long" in refusal(f"{'x' * 300}=A", "gt")


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
