"""A saved result of which a file, or a field of run.json, was changed: it loads, or one sentence."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from helpers.report_runs import one_object_scenes, write_benchmark

import sisod
from sisod.common.exceptions import InputError
from sisod.common.run_folder import DIGESTS
from sisod.evaluation.saved import read_run

pytest.importorskip("jinja2", reason="extra report is not installed")
METRICS = ("mae", "si_mae", "f_mean", "f_max", "si_f_max", "auc", "object_recall", "pq")


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


@pytest.mark.parametrize(
    "field", ["format", "kind", "protocol", "metrics", "images", "objects", DIGESTS]
)
def test_a_field_of_the_record(field: str, saved: Path) -> None:
    """Without it, or with a value of another type, the result is refused by its name."""
    content = json.loads((saved / "run.json").read_text())
    without = {name: value for name, value in content.items() if name != field}
    for changed in (
        without,
        content | {field: None},
        content | {field: -1.5},
        content | {field: {"x": [1]}},
    ):
        (saved / "run.json").write_text(json.dumps(changed))
        assert field in refusal(saved)


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
