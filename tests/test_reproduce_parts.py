"""The parts of the reproduction that need no training: cells, data sets, costs, commands, errors."""

import shutil
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("lightning", reason="extra torch is not installed")

from typer.testing import CliRunner

from sisod import paper
from sisod.cli import app
from sisod.errors import InputError, UsageError
from sisod.reproduction import run as running
from sisod.reproduction.cells import FULL, TINY, Cell, find_cell, grid, recipe_of
from sisod.reproduction.costs import TFLOPS, cost_of, costs_grid, paper_throughputs
from sisod.reproduction.run import Work, prepare, run_cells
from sisod.reproduction.sets import find_sets, make_sets

COUNTS = {"DUTS-TR": 10_553, "MSOD": 300}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of the paper's data sets, made; not to be changed."""
    return make_sets(tmp_path_factory.mktemp("made"))


def test_grid_is_the_papers() -> None:
    cells = {cell.name: cell for cell in grid()}
    assert len(cells) == len(grid()) == 5 * 2 + 1 + 2 + 1 + 1
    for network in paper.networks():
        for loss in ("plain", "si"):
            cell = cells[f"{network.lower()}-{loss}"]
            assert (cell.network, cell.loss, cell.alpha) == (network.lower(), loss, "ratio")
            assert recipe_of(cell, FULL).name == network.lower()
            assert recipe_of(cell, TINY).network.name == network.lower()
    order = list(cells)
    assert all(order.index(need) < order.index(cell.name) for cell in grid() for need in cell.needs)
    with pytest.raises(UsageError, match="unknown cell 'edn-is'; did you mean 'edn-si'\\?"):
        find_cell("edn-is")


def test_two_losses_differ_in_nothing_else() -> None:
    plain, si = (recipe_of(find_cell(f"edn-{loss}"), FULL) for loss in ("plain", "si"))
    assert plain == si
    zero = recipe_of(find_cell("edn-alpha0"), FULL)
    assert replace(zero, loss=replace(zero.loss, alpha="ratio")) == si


def test_missing_and_broken_sets_are_said(made: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    shutil.copytree(made, root)
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
    done = CliRunner().invoke(app, ["reproduce", "--data", str(root), "--out", "o", "--commands"])
    assert (done.exit_code, done.output.count("warning: ")) == (0, 2)
    shutil.rmtree(root / "DUTS-TR")
    with pytest.raises(InputError, match="does not hold DUTS-TR, on which everything is trained; "):
        find_sets(root)
    lonely = tmp_path / "lonely"
    shutil.copytree(made / "DUTS-TR", lonely / "DUTS-TR")
    with pytest.raises(InputError, match="holds none of the paper's data sets to test on"):
        find_sets(lonely)


def test_cost_by_hand() -> None:
    # EDN: 20.305815552 GMACs (sisod networks), 100 epochs of 10,553 images, then 300 predictions
    operations = 2 * 20.305815552e9 * (3 * 100 * 10_553 + 300)
    cost = cost_of(find_cell("edn-si"), FULL, COUNTS, tflops=5)
    assert cost.gpu_hours == pytest.approx(operations / 5e12 / 3600)
    assert cost.paper_hours == pytest.approx(100 * 543.8 / 3600)
    # 42,845,381 floats four times (weights, two moments of Adam, the network), maps and results
    assert cost.disk == 4 * 42_845_381 * 4 + 300 * 45_000
    # GateNet: 100,000 steps of 12 are 114 epochs of 879 steps; SGD has one moment
    gatenet = cost_of(find_cell("gatenet-plain"), FULL, COUNTS)
    assert gatenet.paper_hours == pytest.approx(114 * 561.2 / 3600)
    assert gatenet.disk == 4 * 128_629_796 * 3 + 300 * 45_000
    labels = cost_of(find_cell("ldf-labels"), FULL, COUNTS)
    assert labels.paper_hours == pytest.approx(48 * 109.2 / 3600)
    assert labels.disk == 4 * 25_150_147 * 3 + 10_553 * 80_000
    assert cost_of(find_cell("time"), FULL, COUNTS).gpu_hours == 0


def test_assumed_throughput_is_what_the_papers_epochs_come_to() -> None:
    found = paper_throughputs()
    # EDN by hand: three times 20.305815552 GMACs, two operations each, 10,553 images in 340 s
    assert found["edn"] == pytest.approx(6 * 20.305815552e9 * 10_553 / 340 / 1e12)
    assert statistics.median(found.values()) == pytest.approx(TFLOPS, rel=0.1)


def test_sums_are_those_of_the_cells() -> None:
    cells = [find_cell("edn-plain"), find_cell("edn-si"), find_cell("time")]
    costs = [cost_of(cell, FULL, COUNTS) for cell in cells]
    last = costs_grid(cells, FULL, COUNTS).rows[-1]
    hours = sum(cost.gpu_hours for cost in costs)
    assert last[2:] == (f"{hours:.1f}", f"{(340 + 543.8) / 36:.1f}", f"{2 * costs[0].disk / 1e9:.1f} GB")


def test_commands_are_one_line_a_cell(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "two words"
    asked = ["reproduce", "--data", str(made), "--out", str(out), "--commands"]
    done = CliRunner().invoke(app, [*asked, "--precision", "bf16-mixed", "--workers", "3"])
    lines = done.output.splitlines()
    assert (done.exit_code, len(lines)) == (0, len(grid()))
    start = f"sisod reproduce --out '{out}' --data {made} --precision bf16-mixed --workers 3 --cell "
    assert lines[0] == f"{start}poolnet-plain"
    assert f"{start}ldf-si  # after ldf-labels" in lines
    assert lines[-1] == f"{start}tables  # after all others"
    assert not out.exists()


def test_dry_run_lists_cells_and_runs_nothing(made: Path, tmp_path: Path) -> None:
    asked = ["reproduce", "--data", str(made), "--out", str(tmp_path / "out"), "--dry-run"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    for cell in grid():
        assert cell.name in done.output
    assert "4 images to train on, to test on: MSOD 2, DUTS-TE 2" in done.output
    assert "at 10 TFLOP/s (what the paper's own epochs on a GeForce RTX 3090 come to)." in done.output
    faster = CliRunner().invoke(app, [*asked, "--tflops", "50"])
    assert "at 50 TFLOP/s." in faster.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ([], "--data is missing: the folder that holds DUTS-TR and the paper's test sets"),
        (["--scale", "tiny", "--data", "x"], "--scale tiny makes its own data; leave --data out"),
        (["--data", "x", "--cell", "time", "--dry-run"], "--cell and --dry-run exclude each other"),
        (["--data", "x", "--cell", "nothing"], "unknown cell 'nothing'"),
    ],
)
def test_usage(more: list[str], text: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path / "o"), *more])
    assert done.exit_code == 2
    assert text in done.output
    assert not (tmp_path / "o").exists()


def test_a_cell_that_fails_does_not_stop_the_others(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def run_cell(cell: Cell, *_: object) -> None:
        if cell.name == "icon-si":
            raise InputError("the loss of step 3 is no number")
        done.append(cell.name)

    monkeypatch.setattr(running, "run_cell", run_cell)
    told: list[str] = []
    work = Work(tmp_path, TINY, find_sets(made))
    cells = [find_cell(name) for name in ("icon-plain", "icon-si", "edn-si")]
    assert run_cells(cells, work, told.append) == ["icon-si"]
    assert done == ["icon-plain", "edn-si"]
    assert told == ["error: icon-si: the loss of step 3 is no number"]


def test_tables_need_a_result(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["reproduce", "--scale", "tiny", "--out", str(tmp_path / "o"), "--cell", "tables"]
    )
    assert done.exit_code == 1
    assert "holds no result yet; run a cell first" in done.output


def test_other_data_are_another_reproduction(tmp_path: Path) -> None:
    prepare(tmp_path / "o", FULL, tmp_path / "a")
    prepare(tmp_path / "o", FULL, tmp_path / "a")
    with pytest.raises(InputError, match=r"is another reproduction: data was '.*a' and is now '.*b'"):
        prepare(tmp_path / "o", FULL, tmp_path / "b")
