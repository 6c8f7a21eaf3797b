"""Shards as the unit of work: the bits of a folder, whoever scores them and however they are stopped."""

import dataclasses
import io
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import polars as pl
import pytest
from helpers.command_line import run
from helpers.evaluate_runs import kill_in_the_middle
from helpers.platforms import posix_signals
from helpers.results import assert_same_result

import sisod
from sisod.common.exceptions import InputError
from sisod.common.output import write_atomically
from sisod.common.run_folder import partial_folder
from sisod.data import pairs
from sisod.data.scenes import make_scenes, sees_all_coarsely
from sisod.evaluation import driver
from sisod.evaluation.driver import make_plan
from sisod.evaluation.shards import LEAST_SHARDS, ShardPair
from sisod.evaluation.tasks import Folders, Request, make_request

Named = Sequence[tuple[str, bytes]]


def write_parquet(path: Path, files: Named, **others: Named) -> None:
    """Write a table of structs, as Hugging Face does; with other columns beside it."""
    columns = {"image": files, **others}
    cells = {key: [{"bytes": d, "path": n} for n, d in column] for key, column in columns.items()}
    pl.DataFrame(cells).write_parquet(path)


def write_tar(path: Path, files: Named) -> None:
    """Write an archive whose names may come twice."""
    with tarfile.open(path, "w") as archive:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 128 pairs and two more predictions, and the same in 64 shards of several formats.

    The images are in no order, and in another one in the shards of predictions than in the masks'.
    """
    root = tmp_path_factory.mktemp("shards")
    files: dict[str, dict[str, bytes]] = {"pred": {}, "gt": {}}
    scenes = make_scenes(16, seed=5, shape=(24, 32))
    for index in range(2 * LEAST_SHARDS):
        scene = scenes[index % len(scenes)]
        for kind, picture in (("pred", sees_all_coarsely(scene)), ("gt", scene.mask)):
            data = cv2.imencode(".png", picture)[1].tobytes()
            files[kind][f"{'deep/' if index % 3 else ''}{index:03d}.png"] = data
    names = list(files["gt"])
    names.sort(key=lambda name: name[::-1])  # in another order, and so are the shards
    extra = {3: "extra-b.png", 40: "extra-a.png"}
    files["pred"] |= dict.fromkeys(extra.values(), files["pred"]["000.png"])
    for kind, contents in files.items():
        for name, data in contents.items():
            (root / kind / name).parent.mkdir(parents=True, exist_ok=True)
            (root / kind / name).write_bytes(data)
    for place in ("tar/gt", "tar/pred", "parquet/gt", "parquet/pred", "table"):
        (root / place).mkdir(parents=True)
    for index in range(LEAST_SHARDS):
        chosen = names[2 * index : 2 * index + 2]
        gt = [(name, files["gt"][name]) for name in chosen]
        pred = [(name, files["pred"][name]) for name in chosen]
        more = [(extra[index], files["pred"]["000.png"])] if index in extra else []
        write_tar(root / "tar" / "gt" / f"{index:05d}.tar", gt)
        write_tar(root / "tar" / "pred" / f"{index:05d}.tar", [*more, *pred[::-1]])
        write_parquet(root / "parquet" / "gt" / f"{index:05d}.parquet", gt)
        write_parquet(root / "parquet" / "pred" / f"{index:05d}.parquet", [*pred[::-1], *more])
        write_parquet(root / "table" / f"{index:05d}.parquet", gt, map=pred)
    return root


def roots(folder: Path, form: str) -> tuple[str, str]:
    if form == "table":
        return f"{folder / 'table'}#map", f"{folder / 'table'}#image"
    if form == "mixed":
        return str(folder / "parquet" / "pred"), str(folder / "tar" / "gt")
    return str(folder / form / "pred"), str(folder / form / "gt")


@pytest.fixture(scope="module")
def expected(folder: Path) -> sisod.Evaluation:
    with pytest.warns(UserWarning, match=r"2 files .* have no ground truth \(extra-a, extra-b\)"):
        return sisod.evaluate(folder / "pred", folder / "gt", jobs=1)


@pytest.fixture
def listing_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it an error to list the images of a root."""

    def refuse(root: object) -> list[Any]:
        raise AssertionError(f"the images of {root} were listed")

    monkeypatch.setattr(pairs, "list_files", refuse)


def assert_expected(result: sisod.Evaluation, expected: sisod.Evaluation, *, extra: bool = True) -> None:
    assert_same_result(result, expected)
    own = {"inputs"}
    counts = [{k: v for k, v in run.items() if k not in own} for run in (result.run, expected.run)]
    assert counts[0] == counts[1]
    if extra:
        for key in ("missing", "extra", "extra_names"):
            assert result.run["inputs"][key] == expected.run["inputs"][key]


@pytest.mark.filterwarnings("ignore:2 files")
@pytest.mark.usefixtures("listing_refused")
@pytest.mark.parametrize("form", ["tar", "parquet", "mixed", "table"])
def test_shards_give_the_bits_of_the_folder(
    folder: Path, expected: sisod.Evaluation, form: str, tmp_path: Path
) -> None:
    pred, gt = roots(folder, form)
    assert_expected(sisod.evaluate(pred, gt, jobs=1), expected, extra=form != "table")
    if form in ("tar", "table"):
        result = sisod.evaluate(pred, gt, jobs=2, out=tmp_path / "out")
        assert_expected(result, expected, extra=form != "table")


def request_of(pred: str, gt: str, **options: Any) -> Request:
    return dataclasses.replace(make_request(Folders(pred, gt), metrics="mae"), **options)


def by_shards(pred: str | Path, gt: str | Path, **options: Any) -> bool:
    """Whether a task is a pair of shards; InputError if the images are listed and do not pair."""
    tasks = make_plan(request_of(str(pred), str(gt), **options)).tasks
    assert [task.index for task in tasks] == list(range(len(tasks)))
    return isinstance(tasks[0], ShardPair)


def test_when_shards_are_tasks(folder: Path, tmp_path: Path) -> None:
    """Otherwise the images are listed and paired by their names."""
    pred, gt = roots(folder, "tar")
    assert by_shards(pred, gt)
    assert not by_shards(pred, gt, allow_missing=True)
    assert not by_shards(pred, gt, names=("000",))
    assert not by_shards(folder / "pred", gt)
    assert not by_shards(pred, folder / "tar" / "gt" / "00000.tar")
    few = shutil.copytree(gt, tmp_path / "few", ignore=shutil.ignore_patterns("00000.tar"))
    assert not by_shards(few, few)  # one fewer than enough
    assert not by_shards(pred, few)  # other names of shards
    write_tar(few / "00000.tar", [])
    assert not by_shards(pred, few)  # no images in the first shard
    write_tar(few / "00000.tar", [("other.png", members(Path(gt, "00001.tar"))[0][1])])
    with pytest.raises(InputError, match="1 of 127 ground truths have no prediction"):
        by_shards(pred, few)  # other images in the first shard


def test_ends_of_names(folder: Path, tmp_path: Path, expected: sisod.Evaluation) -> None:
    (tmp_path / "gt").mkdir()
    for path in Path(roots(folder, "tar")[1]).iterdir():
        named = [(name.replace(".png", "_mask.png"), data) for name, data in members(path)]
        write_tar(tmp_path / "gt" / path.name, [("readme.txt", b"masks"), *named])
    pred = roots(folder, "tar")[0]
    assert by_shards(pred, tmp_path / "gt", gt_suffix="_mask")
    with pytest.warns(UserWarning, match="2 files"):
        result = sisod.evaluate(pred, tmp_path / "gt", gt_suffix="_mask", jobs=1)
    assert_same_result(result, expected)


# shards that do not belong together, or are damaged


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """A copy of the shards of tar; the folder that holds pred and gt."""
    return Path(shutil.copytree(folder / "tar", tmp_path / "tar"))


def refusal(root: Path, **options: Any) -> str:
    settings: dict[str, Any] = {"jobs": 1, "metrics": "mae"} | options
    with pytest.raises(InputError) as info:
        sisod.evaluate(root / "pred", root / "gt", **settings)
    assert "\n" not in str(info.value)
    return str(info.value)


def members(path: Path) -> list[tuple[str, bytes]]:
    with tarfile.open(path) as archive:
        return [(member.name, archive.extractfile(member).read()) for member in archive]  # type: ignore[union-attr]


def test_an_image_without_a_prediction(copied: Path) -> None:
    pred = copied / "pred" / "00007.tar"
    kept, lost = members(pred)
    write_tar(pred, [kept])
    name = lost[0].removesuffix(".png")
    gt = copied / "gt" / "00007.tar"
    assert refusal(copied).startswith(
        f"1 of 2 ground truths in {str(gt)!r} have no prediction in {str(pred)!r} ({name}); use "
        "--allow-missing"
    )
    write_tar(copied / "pred" / "00008.tar", [*members(copied / "pred" / "00008.tar"), lost])
    with pytest.warns(UserWarning, match="2 files"):  # the prediction is found in another shard
        result = sisod.evaluate(
            copied / "pred", copied / "gt", metrics="mae", jobs=1, allow_missing=True
        )
    assert result.images.height == 2 * LEAST_SHARDS


def test_a_name_that_comes_twice(copied: Path) -> None:
    gt, pred = (copied / kind / "00009.tar" for kind in ("gt", "pred"))
    first, second = members(gt)
    name = first[0].removesuffix(".png")
    write_tar(gt, [first, second, first])
    assert refusal(copied).startswith(f"{str(copied / 'gt')!r} has two files for the image {name!r}: ")
    write_tar(gt, [first, second])
    for path in (gt, pred):  # in two shards
        other = path.with_name("00010.tar")
        write_tar(other, [*members(other), members(path)[-1 if path == pred else 0]])
    for options in ({}, {"out": copied / "out", "jobs": 2}):
        with pytest.raises(InputError) as info:
            sisod.evaluate(copied / "pred", copied / "gt", metrics="mae", **options)  # type: ignore[arg-type]
        text = f"the image {name!r} was scored twice, from two shards or tables; keep one of them"
        assert str(info.value) == text


@pytest.mark.filterwarnings("ignore:2 files")
def test_a_broken_image_then_repaired(copied: Path, expected: sisod.Evaluation) -> None:
    """Finished shards are kept, and only the others are scored after it was repaired."""
    pred, out = copied / "pred" / "00033.tar", copied / "out"
    whole = members(pred)
    write_tar(pred, [whole[0], (whole[1][0], b"not an image")])
    text = refusal(copied, out=out, metrics=None)
    assert "/pred/00033.tar/bytes " in text
    assert f"/{whole[1][0]}' is not an image that can be read" in text
    answers = sorted(path.name for path in partial_folder(out).glob(".parts/*.rows"))
    assert [name[:7] for name in answers] == [f"{index:07d}" for index in range(33)]
    write_tar(pred, whole)
    scored: list[str] = []

    def count(path: Path, data: bytes) -> None:
        scored.append(path.name)
        write_atomically(path, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "write_atomically", count)
        result = sisod.evaluate(copied / "pred", copied / "gt", out=out, jobs=1, resume=True)
    assert len([name for name in scored if name.endswith(".rows")]) == LEAST_SHARDS - 33
    assert_expected(result, expected)
    again = sisod.evaluate(copied / "pred", copied / "gt", out=out, jobs=1, resume=True)
    assert again.run == result.run


@posix_signals
@pytest.mark.slow
def test_killed_and_resumed(folder: Path, tmp_path: Path, expected: sisod.Evaluation) -> None:
    pred, gt = roots(folder, "parquet")
    options = [f"A={pred}", gt, "--dataset", "D", "--out", str(tmp_path), "--jobs", "2"]
    kill_in_the_middle(*options)
    assert len(list(partial_folder(tmp_path / "D/A").glob(".parts/*.rows"))) == 1
    assert run("evaluate", *options, "--resume").exit_code == 0
    assert_expected(sisod.Evaluation.load(tmp_path / "D" / "A"), expected)
