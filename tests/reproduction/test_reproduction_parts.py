"""The parts of the reproduction without training: cells, data sets, costs, commands, errors."""

import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from helpers.command_line import run
from helpers.platforms import links

pytest.importorskip("lightning", reason="extra torch is not installed")


from sisod import paper
from sisod.common.exceptions import InputError, UsageError
from sisod.reproduction import run as running
from sisod.reproduction import tables
from sisod.reproduction.cells import GridCell, cell_recipe, estimate_cost, find_cell, grid
from sisod.reproduction.run import Reproduction, open_reproduction, run_cells
from sisod.reproduction.sets import find_sets, write_synthetic_sets
from sisod.scoring.metrics import PAPER_KEYS

COUNTS = {"DUTS-TR": 10_553, "MSOD": 300}


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of the paper's data sets, synthetic; tests must not change them."""
    return write_synthetic_sets(tmp_path_factory.mktemp("synthetic"))


def test_grid_is_the_papers() -> None:
    cells = {cell.name: cell for cell in grid()}
    assert len(cells) == len(grid()) == 5 * 2 + 1 + 2 + 1
    for network in paper.networks():
        for loss in ("plain", "si"):
            cell = cells[f"{network.lower()}-{loss}"]
            assert (cell.network, cell.loss, cell.alpha) == (network.lower(), loss, "ratio")
            assert cell_recipe(cell, "full").name == network.lower()
            assert cell_recipe(cell, "tiny").network.name == network.lower()
    order = list(cells)
    needs = [(order.index(need), order.index(cell.name)) for cell in grid() for need in cell.needs]
    assert len(needs) > len(cells)
    assert [pair for pair in needs if pair[0] >= pair[1]] == []
    with pytest.raises(UsageError, match="unknown cell 'edn-is'; did you mean 'edn-si'\\?"):
        find_cell("edn-is")


def test_two_losses_differ_in_nothing_else() -> None:
    plain, si = (cell_recipe(find_cell(f"edn-{loss}"), "full") for loss in ("plain", "si"))
    assert plain == si
    zero = cell_recipe(find_cell("edn-alpha0"), "full")
    assert replace(zero, loss=replace(zero.loss, alpha="ratio")) == si


def test_missing_and_broken_sets_are_reported(synthetic: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    shutil.copytree(synthetic, root)
    for name in ("XPIE", "SOD"):
        shutil.rmtree(root / name)
    (root / "ECSSD/mask/made00001.png").unlink()
    sets = find_sets(root)
    assert [dataset.name for dataset in sets.tests] == [
        name for name in paper.datasets() if name not in ("XPIE", "SOD", "ECSSD")
    ]
    assert "2 of the paper's 8 data sets are not below" in sets.notes[0]
    assert "(SOD, XPIE): their rows stay empty" in sets.notes[0]
    assert sets.notes[1].startswith("ECSSD is left out: 1 of 2 images have no mask in ")
    done = run("reproduce", "--data", str(root), "--out", "o", "--commands")
    assert (done.exit_code, done.output.count("warning: ")) == (0, 3)
    shutil.rmtree(root / "DUTS-TR")
    with pytest.raises(InputError, match="must hold DUTS-TR, on which everything is trained"):
        find_sets(root)
    lonely = tmp_path / "lonely"
    shutil.copytree(synthetic / "DUTS-TR", lonely / "DUTS-TR")
    with pytest.raises(InputError, match="and one or more of MSOD"):
        find_sets(lonely)


@pytest.mark.slow
def test_cost_by_hand() -> None:
    # EDN: 20.305815552 GMACs (sisod networks), 100 epochs of 10,553 images, then 300 predictions
    operations = 2 * 20.305815552e9 * (3 * 100 * 10_553 + 300)
    cost = estimate_cost(find_cell("edn-si"), "full", COUNTS, tflops=5)
    assert cost.gpu_hours == pytest.approx(operations / 5e12 / 3600)
    assert cost.paper_hours == pytest.approx(100 * 543.8 / 3600)
    # 42,845,381 floats four times (weights, two moments of Adam, the network), maps and results
    assert cost.disk == 4 * 42_845_381 * 4 + 300 * 135_000
    # GateNet: 100,000 steps of 12 are 114 epochs of 879 steps; SGD has one moment
    gatenet = estimate_cost(find_cell("gatenet-plain"), "full", COUNTS)
    assert gatenet.paper_hours == pytest.approx(114 * 561.2 / 3600)
    assert gatenet.disk == 4 * 128_629_796 * 3 + 300 * 135_000
    labels = estimate_cost(find_cell("ldf-labels"), "full", COUNTS)
    assert labels.paper_hours == pytest.approx(48 * 109.2 / 3600)
    assert labels.disk == 4 * 25_150_147 * 3 + 10_553 * 80_000
    assert estimate_cost(find_cell("tables"), "full", COUNTS) == (0, 0, 0)


def test_commands_are_one_line_a_cell(synthetic: Path, tmp_path: Path) -> None:
    out = tmp_path / "two words"
    arguments = ["reproduce", "--data", str(synthetic), "--out", str(out), "--commands"]
    done = run(*arguments, "--precision", "bf16-mixed", "--workers", "3")
    lines = done.stdout.splitlines()
    assert (done.exit_code, len(lines)) == (0, len(grid()))
    start = (
        f"sisod reproduce --out '{out}' --data {synthetic} --precision bf16-mixed --workers 3 --cell "
    )
    assert lines[0] == f"{start}poolnet-plain"
    assert f"{start}ldf-si  # after ldf-labels" in lines
    assert lines[-1] == f"{start}tables  # after all others"
    assert not out.exists()


def test_dry_run_lists_cells_and_runs_nothing(synthetic: Path, tmp_path: Path) -> None:
    arguments = ["reproduce", "--data", str(synthetic), "--out", str(tmp_path / "out"), "--dry-run"]
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert "warning: not all images of the published sets: DUTS-TR 4 of 10553, MSOD 2 " in done.stderr
    for cell in grid():
        assert cell.name in done.output
    assert "4 images to train on, to test on: MSOD 2, DUTS-TE 2" in done.output
    assert "at 10 TFLOP/s (about the median" in done.output
    assert "at 50 TFLOP/s." in run(*arguments, "--tflops", "50").output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ([], "--data"),
        (["--scale", "tiny", "--data", "x"], "--scale tiny makes its own data"),
        (["--data", "x", "--cell", "edn-si", "--dry-run"], "--dry-run"),
        (["--data", "x", "--cell", "nothing"], "unknown cell 'nothing'"),
    ],
)
def test_usage(more: list[str], text: str, tmp_path: Path) -> None:
    done = run("reproduce", "--out", str(tmp_path / "o"), *more)
    assert done.exit_code == 2
    assert text in done.output
    assert not (tmp_path / "o").exists()


def test_a_failed_cell_does_not_stop_the_others(
    synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def run_cell(cell: GridCell, *_: object) -> None:
        if cell.name == "icon-si":
            raise InputError("the loss of step 3 is not finite")
        if cell.name == "edn-plain":
            raise RuntimeError("CUDA out of memory.\nTried to allocate 20 GiB")
        done.append(cell.name)

    monkeypatch.setattr(running, "run_cell", run_cell)
    reported: list[str] = []
    work = Reproduction(tmp_path, "tiny", find_sets(synthetic))
    cells = [find_cell(name) for name in ("icon-plain", "icon-si", "edn-plain", "edn-si")]
    assert run_cells(cells, work, reported.append) == ["icon-si", "edn-plain"]
    assert done == ["icon-plain", "edn-si"]
    assert reported == [
        "error: icon-si: the loss of step 3 is not finite",
        "error: edn-plain: CUDA out of memory.",
    ]


@links
def test_other_data_are_another_reproduction(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")

    def opened(data: str, precision: str = "32-true") -> bool:
        return open_reproduction(tmp_path / "o", "full", tmp_path / data, precision, write=True)

    assert [opened(data) for data in ("a", "a", "b/../a", "link")] == [False, True, True, True]
    for other, text in ((("b",), "data was '.*a' and is now '.*b'"), (("a", "bf16-mixed"), "precision")):
        with pytest.raises(InputError, match=f"is another run: {text}"):
            opened(*other)
    with pytest.raises(UsageError, match="precision"):
        opened("a", "64")


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--commands",)], ids=" ".join)
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, more: tuple[str, ...]) -> None:
    (tmp_path / "mine" / "data" / "MSOD").mkdir(parents=True)
    start = ["reproduce", "--scale", "tiny", "--out", str(tmp_path / "mine")]
    done = run(*start, *more)
    assert done.exit_code == 1
    assert "exists and is not a result of" in done.output
    assert [path.name for path in (tmp_path / "mine").rglob("*")] == ["data", "MSOD"]


def test_cells_scored_on_different_images_have_no_difference() -> None:
    counts = {"edn-plain": 2, "edn-si": 3, "icon-plain": 3, "icon-si": 3}
    rows = [
        {"protocol": "official", "dataset": "MSOD", "network": find_cell(cell).title, "cell": cell}
        | {"loss": cell.rpartition("-")[2], "images": n, **dict.fromkeys(PAPER_KEYS, 0.5)}
        for cell, n in counts.items()
    ]
    differences = tables.difference_table(pl.DataFrame(rows)).filter(loss="si")
    assert differences.filter(network="EDN")["difference"].is_nan().all()
    assert (differences.filter(network="ICON")["difference"] == 0).all()
