"""Pictures show the files that were scored and no others, from any folder; no URL is opened."""

import json
import shutil
from pathlib import Path

import pytest
from helpers.command_line import refusal, run

import sisod
from sisod.data import files, storage
from sisod.evaluation.results import PixelFiles

pytest.importorskip("jinja2", reason="extra report is not installed")


@pytest.fixture
def scored(four_images: Path) -> Path:
    """Two methods scored by relative paths, in a folder that is left for one of the same names."""
    options = ["--out", "out", "--metrics", "mae,si_mae", "--jobs", "1"]
    result = run("evaluate", "A", "B", "MSOD/mask", *options)
    assert result.exit_code == 0, result.stderr
    elsewhere = four_images / "elsewhere"
    shutil.copytree("MSOD", elsewhere / "MSOD")
    for ours, theirs in (("A", "B"), ("B", "A")):
        shutil.copytree(ours, elsewhere / theirs)
    return four_images


def n_pictures(page: Path) -> list[int]:
    """How many pictures there are of the photograph or mask, and of each method."""
    data = page.read_text().split('<script type="application/json" id="data">')[1].split("</script>")[0]
    items = json.loads(data)["failures"]["items"]
    return [sum(key in item["pictures"] for item in items) for key in ("photo", "0", "1")]


def test_the_same_page_from_any_folder(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = []
    # a second file of an image does not take the place of the one that was scored
    shutil.copy("B/scene000.png", "A/scene000.bmp")
    for folder in (scored, scored / "elsewhere"):
        monkeypatch.chdir(folder)
        result = run("report", scored / "out", "--out", scored / "page.html")
        assert (result.exit_code, result.stderr) == (0, "")
        pages.append((scored / "page.html").read_bytes())
    assert pages[0] == pages[1]


def test_files_that_changed(scored: Path) -> None:
    for name in ("scene000", "scene001", "scene002"):
        shutil.copy(f"B/{name}.png", f"A/{name}.png")
    Path("B/scene003.png").unlink()
    shutil.copy("MSOD/mask/scene000.png", "MSOD/mask/scene001.png")
    result = run("report", "out", "--out", "page.html")
    assert result.exit_code == 0
    where = {name: repr(str(scored / name)) for name in ("A", "B", "MSOD/mask")}
    assert set(result.stderr.splitlines()) == {
        f"warning: {text}; evaluate again to see more"
        for text in (
            f"3 maps changed since the evaluation (scene000, scene001, scene002), in {where['A']}",
            f"1 map gone since the evaluation (scene003), in {where['B']}",
            f"1 ground truth changed since the evaluation (scene001), in {where['MSOD/mask']}",
        )
    }
    evaluation = sisod.Evaluation.load("out/MSOD/A")
    pixels = PixelFiles(evaluation)
    assert [pixels.prediction(f"scene00{i}", (24, 32)) is None for i in range(4)] == [True] * 3 + [False]
    assert [pixels.mask(f"scene00{i}") is None for i in range(4)] == [False, True, False, False]
    assert len(pixels.trouble) == 2
    drawn = refusal("plot", "out", "--figure", "examples", "--example", "scene000", "--out", "e.pdf")
    assert drawn.startswith("the map of 'A' for 'scene000' cannot be shown: 3 maps changed since")
    assert not Path("e.pdf").exists()


def test_nobody_is_asked(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, seen = "http://localhost/maps", []

    def opened(root: str) -> None:
        seen.append(root)
        raise OSError("nobody answers")

    for module in (files, storage):  # what reads and what lists
        monkeypatch.setattr(module, "file_system", opened)
    file = scored / "out/MSOD/A/run.json"
    record = json.loads(file.read_text())
    record["inputs"] |= {"predictions": url, "ground_truths": f"simplecache::{url}"}
    file.write_text(json.dumps(record))
    result = run("report", "out", "--out", "page.html")
    assert result.exit_code == 0
    assert f"warning: {url!r} is not asked for pictures; use --fetch to allow that\n" in result.stderr
    assert n_pictures(scored / "page.html")[1] == 0
    assert run("plot", "out", "--figure", "examples", "--out", "e.pdf").exit_code == 1
    assert run("compare", "out/MSOD/A", "out/MSOD/B", "--resamples", "9").exit_code == 0
    assert seen == []
    result = run("report", "out", "--out", "page.html", "--fetch")
    assert result.exit_code == 0
    assert f"warning: {url!r} cannot be read: " in result.stderr
    assert seen
