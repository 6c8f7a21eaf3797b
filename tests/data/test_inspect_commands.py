"""`sisod frames` draws the frames that are scored; `sisod stats` describes a data set."""

import csv
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.command_line import error_message, refusal, run
from numpy.typing import NDArray

import sisod
from sisod import PROTOCOLS
from sisod.analysis.masks import mask_statistics
from sisod.data.scenes import make_scenes
from sisod.paper import theory
from sisod.report.masks import draw_frames

Image = NDArray[np.uint8]


@pytest.fixture(autouse=True)
def _gt_folder(inside_tmp_path: None) -> None:  # noqa: ARG001
    Path("gt").mkdir()


def save(name: str, mask: NDArray[np.bool_], folder: str = "gt") -> None:
    path = Path(folder, f"{name}.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), mask.astype(np.uint8) * np.uint8(255))


def read(path: str) -> Image:
    picture = cv2.imread(path, cv2.IMREAD_COLOR)
    assert picture is not None
    return np.asarray(picture, dtype=np.uint8)


def by_hand() -> None:
    """Three masks of 10 x 10: two objects, none, one of half the image."""
    mask = np.zeros((10, 10), dtype=bool)
    mask[0:2, 0:3] = True  # 6 pixels that fill their frame
    mask[5:9, 5:9] = np.eye(4, dtype=bool)  # 4 pixels in a frame of 16
    save("a.1", mask)
    save("sub/none", np.zeros((10, 10), dtype=bool))
    mask = np.zeros((10, 10), dtype=bool)
    mask[:5] = True
    save("half", mask)


# frames


def test_one_picture_for_each_mask() -> None:
    by_hand()
    result = run("frames", "gt", "--out", "drawn")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "3 pictures in drawn\n", "")
    drawn = {path.relative_to("drawn").as_posix() for path in Path("drawn").rglob("*.*")}
    assert drawn == {"a.1.png", "half.png", "run.json", "sub/none.png"}
    assert read("drawn/a.1.png").shape == (480 + 32, 480, 3)

    def output(kind: str) -> str:
        return run("frames", "gt", "--out", "drawn", "--overwrite", "--format", kind).stdout

    pictures = json.loads(output("json"))
    values = {"components": 2, "frames": 2, "background": 0.78, "alpha": 78 / 22}
    assert pictures[0] == {"image": "a.1"} | values
    assert output("csv").splitlines()[2] == "half,1,1,0.5,1.0"
    assert "| half | 1 | 1 | 0.5000 | 1.0000 |" in output("md")


def test_frames_are_where_the_partition_is() -> None:
    mask = np.zeros((100, 120), dtype=bool)
    mask[20:60, 30:90] = True
    canvas = np.full((100, 120, 3), 200, dtype=np.uint8)
    picture = draw_frames(canvas, sisod.partition(mask))
    scale = 5  # to 480 pixels, rounded
    assert picture.shape == (500 + 32, 600, 3)
    frame = np.array([0, 94, 213])
    for y, x in ((20, 60), (59, 60), (40, 30), (40, 89)):  # on the four sides
        window = picture[y * scale : (y + 1) * scale, x * scale : (x + 1) * scale]
        assert (window == frame).all(axis=2).any(), (y, x)
    inside, outside = picture[50 * scale, 60 * scale], picture[10 * scale, 60 * scale]
    assert (inside == 200).all()  # not tinted
    assert outside.tolist() == [194, 178, 150]  # three quarters of it and one of blue
    assert picture[-32:].min() < 100  # something is written below


def test_over_images_of_another_size() -> None:
    Path("images").mkdir()
    for scene in make_scenes(2, seed=4, shape=(60, 80)):
        save(scene.name, scene.mask > 0)
        large = cv2.resize(scene.image, (160, 120))
        assert cv2.imwrite(f"images/{scene.name}.jpg", large)
    assert run("frames", "gt", "--out", "drawn", "--images", "images").exit_code == 0
    picture = read("drawn/scene000.png")
    assert picture.shape == (480 + 32, 640, 3)
    assert np.ptp(picture[:480].astype(int), axis=2).max() > 50  # in colour
    Path("images", "scene001.jpg").unlink()
    text = refusal("frames", "gt", "--out", "other", "--images", "images")
    assert "scene001" in text
    assert "'images'" in text


def test_long_thin_masks_are_not_blown_up() -> None:
    save("thin", np.arange(120)[None] == 5)
    assert run("frames", "gt", "--out", "drawn").exit_code == 0
    assert read("drawn/thin.png").size < 5_000_000 * 3


# both


@pytest.mark.parametrize("command", [["frames", "gt", "--out", "drawn"], ["stats", "gt"]])
def test_what_is_refused(command: list[str]) -> None:
    assert "'papr'" in error_message(run(*command, "--protocol", "papr"), exit_codes=(2,))
    assert "'no' does not exist" in refusal(command[0], "no", *command[2:])
    assert refusal(*command).startswith("'gt' has no image files")
    Path("gt", "bad.png").write_bytes(b"text")
    assert "'gt/bad.png' is not an image that can be read" in refusal(*command)
    assert [path.name for path in Path.cwd().iterdir()] == ["gt"]  # nothing begun is left


# stats


def test_numbers_by_hand() -> None:
    by_hand()
    found = mask_statistics("gt", PROTOCOLS["default"])
    assert found.n_objects.tolist() == [2, 1, 0]
    assert sorted(found.shares.tolist()) == [0.04, 0.06, 0.5]
    numbers = json.loads(run("stats", "gt", "--format", "json").stdout)
    sizes = numbers.pop("objects_by_percent_of_image")
    assert list(sizes.values()) == [2, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert list(sizes)[:2] == ["0-10", "10-20"]
    fine = numbers.pop("objects_by_log_size")
    assert {group: count for group, count in fine.items() if count} == {"3-10 %": 2, "30-100 %": 1}
    assert numbers == {
        "protocol": "default",
        "images": 3,
        "objects": 3,
        "components": 3,
        "left_out": 0,
        "grey_masks": 0,
        "emptied_masks": 0,
        "objects_per_image": 1.0,
        "rho": 4 / 16,
        "rho_image": 0.1,
        "images_by_objects": {"0": 1, "1": 1, "2": 1, "3": 0, "4": 0, "5+": 0},
    }
    rows = list(csv.reader(run("stats", "gt", "--format", "csv").stdout.splitlines()))
    assert rows[0] == ["statistic", "group", "value"]
    assert ["images_by_objects", "2", "1"] in rows
    assert len(rows) == 1 + 10 + 10 + 8 + 6
    assert run("stats", "gt", "--format", "md").stdout.count("| --- | ---: |") == 4


def test_groups() -> None:
    """Of sizes, a lower bound belongs to its group; five objects or more are one."""
    for tenth in range(1, 11):
        save(f"{tenth:02d}", np.repeat(np.arange(10)[:, None] < tenth, 10, axis=1))
    groups = mask_statistics("gt", PROTOCOLS["default"]).size_groups()
    assert groups.tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 1, 2]
    for count in (4, 5, 9):
        mask = np.zeros((20, 20), dtype=bool)
        mask.ravel()[np.arange(count) * 42] = True
        save(str(count), mask, "many")
    counts = mask_statistics("many", PROTOCOLS["paper"]).number_groups()
    assert counts == {"0": 0, "1": 0, "2": 0, "3": 0, "4": 1, "5+": 2}


def test_rho_counts_every_salient_pixel_of_a_frame() -> None:
    """An L of 19 pixels and a square of 9 in its frame of 100, on 400, as in the theorem's proof."""
    mask = np.zeros((20, 20), dtype=bool)
    mask[:10, 0] = mask[9, :10] = mask[2:5, 5:8] = True
    save("a", mask)
    found = mask_statistics("gt", PROTOCOLS["default"])
    assert found.rho == theory.salient_shares(mask).left == 28 / 100
    assert found.rho_image == 28 / 400
    cells = sisod.partition(mask, kind="voronoi", min_area=0)
    assert mask_statistics("gt", PROTOCOLS["cc"]).rho == (cells.areas / cells.frame_areas).min()


@pytest.mark.needs("matplotlib")
def test_no_object_at_all(recwarn: pytest.WarningsRecorder) -> None:
    save("black", np.zeros((4, 4), dtype=bool))
    found = mask_statistics("gt", PROTOCOLS["default"])
    assert np.isnan([found.rho, found.rho_image]).all()  # undefined, not one
    assert json.loads(run("stats", "gt", "--format", "json").stdout)["rho"] is None
    assert run("stats", "gt", "--plot", "new/p.svg").exit_code == 0
    assert "objects in an image" in Path("new/p.svg").read_text()
    assert not recwarn.list


# the same options as `evaluate`

LEFT_OUT = "{} of {} components in 'gt' are below min_area and not scored; --min-area 0 scores all\n"


@pytest.mark.parametrize("command", [["stats", "gt"], ["frames", "gt", "--out", "drawn", "--overwrite"]])
def test_suffix_list_and_least_size(command: list[str]) -> None:
    """Two masks of 100 x 100 called NAME_mask: an object and a speck, two specks; and another file."""
    mask = np.zeros((100, 100), dtype=bool)
    mask[10:30, 10:30] = mask[90, 90] = True
    save("a_mask", mask)
    specks = np.zeros((100, 100), dtype=bool)
    specks[5, 5] = specks[50, 50] = True
    save("sub/b_mask", specks)
    save("a_edge", mask)
    Path("names.txt").write_text("sub/b\n")
    for options, line in (
        (["--min-area", "0"], ""),
        (["--min-area", "401"], LEFT_OUT.format(2, 4)),  # the largest is always kept
        (["--list", "names.txt"], LEFT_OUT.format(1, 2)),
    ):
        result = run(*command, "--gt-suffix", "_mask", *options)
        assert (result.exit_code, result.stderr) == (0, line), options
    if command[0] == "frames":
        assert {path.name for path in Path("drawn").rglob("*.*")} == {"b.png", "run.json"}
        record = json.loads(Path("drawn", "run.json").read_text())
        assert (record["protocol"], record["components"], record["left_out"]) == ("default", 2, 1)
    found = mask_statistics("gt", "default", gt_suffix="_mask", names=["a"])
    assert (found.n_objects.tolist(), found.n_left_out, found.n_components) == ([1], 1, 2)
    assert found.rho_image == 401 / 10_000  # a speck has no frame, but is salient
    assert "no image files ending in '_no';" in refusal(*command, "--gt-suffix", "_no")
    assert "1 of 1 listed images have no ground truth" in refusal(*command, "--list", "names.txt")
    assert "'no.txt' cannot be read" in refusal(*command, "--list", "no.txt")
