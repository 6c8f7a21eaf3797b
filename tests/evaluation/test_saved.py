"""A saved result of which a file, or a field of run.json, was changed: it loads, or one sentence."""

import dataclasses
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import run as run_command
from helpers.report_runs import ablation_rows, one_object_scenes, write_benchmark

import sisod
from sisod.analysis.seeds import read_ablation
from sisod.common.exceptions import InputError
from sisod.common.run_folder import DIGESTS
from sisod.evaluation.saved import read_run, read_summary

pytest.importorskip("jinja2", reason="extra report is not installed")
METRICS = ("mae", "si_mae", "f_mean", "f_max", "si_f_max", "auc", "object_recall", "pq")
OTHERS: tuple[Any, ...] = (None, "x", -1.5, True, [], {"x": [1]}, math.nan)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods on one data set; never written to."""
    root = tmp_path_factory.mktemp("saved")
    write_benchmark(root, "D", one_object_scenes(3), ("coarse", "large only"))
    for method in ("coarse", "large only"):
        sisod.evaluate(
            root / "maps" / "D" / method, root / "data" / "D" / "mask", metrics=METRICS, jobs=1,
            out=root / "results" / "D" / method, overwrite=True,
        )  # fmt: skip
    return root / "results" / "D"


@pytest.fixture
def saved(results: Path, tmp_path: Path) -> Path:
    """One of them, to be changed."""
    return Path(shutil.copytree(results / "coarse", tmp_path / "D" / "coarse"))


def refusal(saved: Path) -> str:
    """Load a result; return why it is refused, or an empty text."""
    try:
        sisod.Evaluation.load(saved)
    except InputError as error:
        said = str(error)
    else:
        return ""
    beginning = f"{str(saved)!r} is not a result of 'sisod evaluate' that can be read: "
    assert said.startswith(beginning)
    assert "\n" not in said
    return said.removeprefix(beginning)


def changed_json(content: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """The same without the field, and with each of many other values in it."""
    for other in ("removed", *OTHERS):
        copy = json.loads(json.dumps(content))
        inside = copy
        for name in path[:-1]:
            inside = inside[name]
        del inside[path[-1]]
        if other != "removed":
            inside[path[-1]] = other
        yield copy


def fields(content: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all fields of an object, those of objects in it too."""
    for name, value in content.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from fields(value, (*above, name))


def test_every_field_of_the_record(saved: Path) -> None:
    """A value of another type is refused by the name of its field, wherever it is."""
    content = json.loads((saved / "run.json").read_text())
    free = {"config", "custom", "sisod", "files", "finished"}  # not read, or any text
    for path in fields(content):
        if path[0] in free or path[:2] == ("protocol", "released_code"):
            continue
        refused = 0
        for copy in changed_json(content, path):
            (saved / "run.json").write_text(json.dumps(copy))
            if said := refusal(saved):
                refused += 1
                assert "run.json: " in said or "run.json has the format" in said
                assert path[-1] in said or path[0] in said or "..." in said
        assert refused, path  # null, at least, or a string in place of an object


def test_other_json(saved: Path) -> None:
    for text in ("", "[]", "1", "null", "{}", "{", '"text"', "[" * 100_000, "\xff"):
        (saved / "run.json").write_bytes(text.encode("latin-1"))
        assert "run.json" in refusal(saved)


FILES = ["summary.json"] + [
    f"{name}.parquet"
    for name in ("images", "objects", "curves", "dataset_curves", "predicted", "counts", "files")
]


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_another_result_is_refused(file: str, saved: Path, results: Path) -> None:
    """Both are results of the same images, so that only the digest tells them apart."""
    shutil.copyfile(results / "large only" / file, saved / file)
    assert f"{file} is not the file that was saved with run.json" in refusal(saved)
    (saved / file).unlink()
    assert file in refusal(saved)


def test_every_file_has_a_digest(saved: Path) -> None:
    files = {path.name for path in saved.iterdir()}
    assert files == {*FILES, "run.json"}
    assert set(read_run(saved)[DIGESTS]) == set(FILES)
    loaded = sisod.Evaluation.load(saved)
    loaded.save(saved.parent / "copy")
    assert sisod.Evaluation.load(saved.parent / "copy").run == loaded.run


def test_every_protocol_is_read_back(saved: Path) -> None:
    for protocol in sisod.PROTOCOLS.values():
        run = json.loads((saved / "run.json").read_text())
        run["protocol"] = dataclasses.asdict(protocol)
        (saved / "run.json").write_text(json.dumps(run))
        assert sisod.Protocol(**read_run(saved)["protocol"]) == protocol


@pytest.mark.parametrize("command", ["report", "plot", "compare"])
def test_commands(command: str, saved: Path, results: Path) -> None:
    """One line and exit code 1."""
    (saved / "run.json").write_text("[]")
    arguments = [str(saved), str(results / "large only")]
    if command != "compare":
        arguments += ["--out", str(saved.parent / "out.html")]
    result = run_command(command, *arguments)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 1
    beginning = f"error: {str(saved)!r} is not a result of 'sisod evaluate' that can be read: run.json"
    assert result.stderr.startswith(beginning)
    assert result.stderr.count("\n") == 1


def test_metrics_that_are_needed(saved: Path) -> None:
    assert read_summary(saved, needed=["mae"])[1]["mae"] == 3
    with pytest.raises(InputError, match=r"summary.json has no 'wf'; evaluate again$"):
        read_summary(saved, needed=["mae", "wf"])


def test_every_field_of_an_ablation(tmp_path: Path) -> None:
    content: Any = ablation_rows({"plain": (0.3, 0.5), "ratio": (0.2, None)})  # type: ignore[dict-item]
    file = tmp_path / "ablation.json"
    file.write_text(json.dumps(content))
    assert len(read_ablation(file)) == 2
    row = content["rows"][0]
    tampered: list[Any] = [
        {"rows": rows} for path in fields(row) for copy in changed_json(row, path) for rows in ([copy],)
    ]
    tampered += [other for other in OTHERS if other != {}] + list(changed_json(content, ("rows",)))
    said = []
    for one in tampered:
        file.write_text(json.dumps(one))
        try:
            read_ablation(file)
        except InputError as error:
            said.append(str(error))
    assert len(said) > 40
    beginning = f"{str(file)!r} is not a table of 'sisod ablate': "
    assert all(text.startswith(beginning) and "\n" not in text for text in said)
