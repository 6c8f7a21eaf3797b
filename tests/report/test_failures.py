"""What the browser of failures contains: lists, crops, outlines, limits; the names of numbers."""

import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.command_line import run
from helpers.container_files import in_shards, write_parquet, write_tar
from helpers.folder_contents import content as files_of
from helpers.report_runs import data_of, without_objects
from numpy.typing import NDArray

import sisod
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report
from sisod.report.page import failures as failures_module
from sisod.report.page.failures import choose_false, choose_images
from sisod.report.page.pictures import outline_path
from sisod.scoring.metrics import METRICS

pytest.importorskip("jinja2", reason="extra report is not installed")
ASSETS = Path(failures_module.__file__).parent


@pytest.fixture(scope="module")
def text(saved: list[Saved], tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_report(saved, out, resamples=50)
    return out.read_text(encoding="utf-8")


def test_false_objects_are_those_of_the_table(saved: list[Saved]) -> None:
    chosen = choose_false(saved, 1000)
    expected = {
        (r.dataset, image, index, (r.method,))
        for r in saved
        if r.evaluation.predicted is not None
        for image, index, false in r.evaluation.predicted.select("image", "index", "false").iter_rows()
        if false
    }
    assert {(f.dataset, f.image, f.index, f.methods) for f in chosen} == expected
    assert len(chosen) == len(expected) > 5
    assert choose_false([without_objects(result) for result in saved]) == []


def test_worst_images_come_first(saved: list[Saved]) -> None:
    one = [result for result in saved if result.dataset == "mixed"][:1]
    images = one[0].evaluation.images
    for metric, descending in (("si_f_mean", False), ("si_mae", True)):
        names = images.filter(images[metric].is_not_nan()).sort(metric, descending=descending)["image"]
        assert [f.image for f in choose_images(one, metric, 4)] == names.to_list()[:4]


def test_images_are_ranked_by_the_first_score_that_was_evaluated() -> None:
    for metrics, expected in (
        (["mae", "f_mean"], "f_mean"),
        (["n_predicted"], "mae"),  # none: no image is listed
    ):
        evaluator = sisod.Evaluator(metrics=metrics)
        gt = np.zeros((20, 20), dtype=bool)
        gt[2:9, 2:9] = True
        evaluator.update(gt * 0.7, gt, name="a")
        data, _ = failures_module.failure_data([Saved("D", "m", evaluator.result())], {})
        assert data["image_score"]["title"] == METRICS[expected].title
        assert ("image" in {item["kind"] for item in data["items"]}) is (len(metrics) > 1)


def test_lists_share_the_page(text: str, saved: list[Saved]) -> None:
    content = data_of(text)["failures"]
    kinds = [item["kind"] for item in content["items"]]
    assert {kind: kinds.count(kind) > 5 for kind in ("object", "false", "image")} == {
        "object": True, "false": True, "image": True,
    }  # fmt: skip
    # without photographs the outline is drawn too
    shown = [item for item in content["items"] if item["kind"] != "false"]
    assert {item["outline"][:1] for item in shown} == {"M"}
    assert {photo["has_photo"] for of in content["photos"].values() for photo in of.values()} == {False}
    assert all(item["image"] in content["photos"][item["dataset"]] for item in content["items"])
    assert content["image_score"] == {"title": "SI-F mean", "better": "up"}
    images = {(r.dataset, r.method): r.evaluation.images for r in saved}
    for item in content["items"]:
        if item["kind"] == "image":
            table = images[item["dataset"], "Net"]
            row = table.filter(table["image"] == item["image"])
            assert item["scores"]["0"] == [round(row["si_f_mean"][0], 4)]


def test_what_one_finds_and_another_misses_is_on_the_page(text: str, saved: list[Saved]) -> None:
    """The largest difference of F mean of every pair of methods."""
    items = [i for i in data_of(text)["failures"]["items"] if i["kind"] == "object"]
    keys = {(i["dataset"], i["image"], i["index"]) for i in items}
    n_pairs = 0
    for finder in saved:
        for loser in saved:
            if finder.dataset != loser.dataset or finder is loser:
                continue
            both = finder.evaluation.objects.join(
                loser.evaluation.objects, on=["image", "index"], maintain_order="left"
            )
            both = both.filter((both["recall_binary"] >= 0.5) & (both["recall_binary_right"] < 0.5))
            if both.height:
                worst = both[int((both["f_mean"] - both["f_mean_right"]).arg_max() or 0)]
                assert (finder.dataset, worst["image"][0], worst["index"][0]) in keys
                n_pairs += 1
    assert n_pairs > 5


def drawn(path: str, grid: list[int]) -> NDArray[np.bool_]:
    """Fill an outline, as an SVG with even-odd rule would, on its own grid."""
    canvas = np.zeros((grid[1], grid[0]), dtype=np.uint8)
    for part in re.findall(r"M[^M]*", path):
        numbers = [int(n) for n in re.findall(r"-?\d+", part)]
        points = np.cumsum(np.array(numbers[: len(numbers) // 2 * 2]).reshape(-1, 2), axis=0)
        single = np.zeros_like(canvas)
        cv2.fillPoly(single, [points.astype(np.int32)], 1)
        canvas ^= single
    return canvas.astype(bool)


@pytest.mark.parametrize("seed", range(6))
def test_outline_of_a_small_mask_follows_its_pixels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = np.zeros((20, 24), dtype=np.uint8)
    for y, x in rng.integers(2, 17, size=(3 + 4 * seed, 2)):
        mask[y, x : x + 2] = 255
    path, grid = outline_path(mask)
    step = grid[0] // 24
    assert grid == [24 * step, 20 * step]
    filled = drawn(path, grid).reshape(20, step, 24, step)[:, 2:-2, :, 2:-2]
    # the corners of a hole belong to the object, so only the inner part of each pixel is compared
    assert (filled.mean(axis=(1, 3)) > 0.5).tolist() == (mask > 0).tolist()


def test_page_is_the_same_bytes_and_small(saved: list[Saved], tmp_path: Path, text: str) -> None:
    write_report(saved, tmp_path / "again.html", resamples=50)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == text
    content = data_of(text)["failures"]
    pictures = [p for i in content["items"] for p in i["pictures"].values()]
    pictures += [photo["picture"] for of in content["photos"].values() for photo in of.values()]
    assert len(text) - sum(map(len, pictures)) < 700_000
    assert failures_module.MAX_BYTES + 700_000 < 4_000_000


def test_number_of_failures_adapts(saved: list[Saved], tmp_path: Path, text: str) -> None:
    """Less room or fewer files that may be read: fewer failures, of all kinds."""
    everything = data_of(text)["failures"]["items"]
    for name, value in (("MAX_BYTES", 100_000), ("MAX_FILES", 30)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(failures_module, name, value)
            write_report(saved, tmp_path / "r.html", resamples=20)
        items = data_of((tmp_path / "r.html").read_text())["failures"]["items"]
        assert 3 <= len(items) < len(everything)
        assert {item["kind"] for item in items} == {"object", "false", "image"}
        if name == "MAX_FILES":
            assert len(items) == 30 // 6


def test_scripts_never_write_markup() -> None:
    for name in ("page.js", "failures.js"):
        script = (ASSETS / name).read_text()
        assert (
            re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", script)
            == []
        )
        assert re.findall(r"\bfetch\(|XMLHttpRequest|import\(|sendBeacon|WebSocket", script) == []


def test_photographs_of_a_container(benchmark_root: Path, tmp_path: Path) -> None:
    """The page is the same as with a folder of photographs, byte for byte."""
    folder, results = benchmark_root / "data/mixed/image", benchmark_root / "results/mixed/Net"
    write_tar(tmp_path / "mixed.tar", files_of(folder))
    write_parquet(tmp_path / "mixed.parquet", files_of(folder))
    in_shards(write_tar, tmp_path / "shards", files_of(folder), ".tar")
    roots: list[Path | str] = [folder, tmp_path / "mixed.tar", f"{tmp_path}/mixed.parquet#image"]
    pages = []
    for root in (*roots, tmp_path / "shards"):
        ended = run("report", results, "--out", tmp_path / "r.html", "--images", root)
        assert (ended.exit_code, ended.stderr) == (0, "")
        pages.append((tmp_path / "r.html").read_bytes())
    assert pages == pages[:1] * 4
