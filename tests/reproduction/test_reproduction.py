"""The paper's grid at scale tiny: trained, scored, resumed, its tables by hand.

Two of the five networks on two of the eight data sets: EDN has the ablation, LDF the first stage.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers.command_line import run

pytest.importorskip("lightning", reason="extra torch is not installed")
pytest.importorskip("efficientnet_lite_pytorch", reason="extra lite is not installed")

from helpers.training_runs import weights
from typer.testing import Result

from sisod import Evaluation, evaluate, paper
from sisod.common.output import lock
from sisod.data.scenes import write_scenes
from sisod.report.drawing.groups import network_of
from sisod.reproduction.cells import find_cell
from sisod.scoring.metrics import PAPER_KEYS

pytestmark = pytest.mark.slow  # one training of the grid serves them all
TRAINED = ("ldf-plain", "ldf-si", "edn-plain", "edn-si", "edn-alpha0", "edn-alpha1")


@pytest.fixture(scope="module", autouse=True)
def _small_grid() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "networks", lambda: ("LDF", "EDN"))
        patch.setattr(paper, "datasets", lambda: ("MSOD", "SOD"))
        yield


def reproduce(out: Path, *more: str) -> Result:
    start = ["reproduce", "--scale", "tiny", "--out", str(out), "--workers", "0"]
    return run(*start, *more)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Result]]:
    """The grid, once."""
    out = tmp_path_factory.mktemp("reproduced") / "out"
    yield out, reproduce(out)
    shutil.rmtree(out)


def summary(out: Path, cell: str, dataset: str = "MSOD", protocol: str = "official") -> dict[str, float]:
    return Evaluation.load(out / "results" / protocol / dataset / find_cell(cell).method).summary


def test_every_cell_is_trained_and_scored(whole: tuple[Path, Result]) -> None:
    out, done = whole
    assert done.exit_code == 0, done.output
    for cell in TRAINED:
        assert f"{cell}: 2 steps in" in done.output
        record = json.loads((out / "cells" / cell / "run" / "run.json").read_text())
        assert (record["finished"], record["images"]) == (True, 4)
        assert record["config"]["loss"] == ("plain" if cell.endswith("-plain") else "si")
        for dataset in paper.datasets():
            for protocol in ("default", "official"):
                result = Evaluation.load(out / "results" / protocol / dataset / find_cell(cell).method)
                assert (result.protocol.name, result.images.height) == (protocol, 2)
    alphas = {
        cell: json.loads((out / "cells" / cell / "run" / "run.json").read_text())["config"]["settings"]
        for cell in ("edn-alpha0", "edn-alpha1", "edn-si")
    }
    assert [tables["loss"]["alpha"] for tables in alphas.values()] == [0.0, 1.0, "ratio"]
    maps = [json.loads((out / f"cells/{cell}/maps/MSOD/run.json").read_text()) for cell in TRAINED]
    assert len({run["config"]["weights"] for run in maps}) == 6  # no two runs are the same
    assert not (out / "cells/ldf-si/run/labels").exists()  # both losses learn from those of ldf-labels
    assert (out / "cells/ldf-labels/labels/body/made00000.png").exists()


def test_the_other_networks_are_trained_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "networks", lambda: ("PoolNet", "ICON", "GateNet", "EDN"))
    monkeypatch.setattr(paper, "datasets", lambda: ("SOD",))
    for name in ("poolnet-si", "icon-plain", "gatenet-si"):
        done = reproduce(tmp_path / "out", "--cell", name)
        assert done.exit_code == 0, done.output
        assert f"{name}: scored on SOD" in done.output


def test_tables_are_the_papers_with_ours_beside(whole: tuple[Path, Result]) -> None:
    out, done = whole
    scores = pl.read_parquet(out / "tables/scores.parquet")
    differences = pl.read_parquet(out / "tables/differences.parquet")
    assert scores.height == 2 * 2 * 6
    assert differences.height == 2 * 2 * 6 * len(PAPER_KEYS)
    chosen = differences.filter(protocol="official", dataset="MSOD", network="EDN")
    plain = summary(out, "edn-plain")
    for loss, metric, published in (
        ("si", "si_mae", 0.0724 - 0.0788),
        ("alpha0", "f_mean", 0.4790 - 0.7925),
    ):
        [row] = chosen.filter(loss=loss, metric=metric).to_dicts()
        assert row["value"] == summary(out, f"edn-{loss}")[metric]
        assert row["difference"] == row["value"] - plain[metric]
        assert row["published_difference"] == pytest.approx(published)
    text = (out / "tables/official.md").read_text()
    assert "| EDN | the paper's | -0.0014 | -0.0064 | +0.0205 |" in text
    assert f"| EDN | SI | {summary(out, 'edn-si')['mae']:.4f} |" in text
    assert "| EDN | the paper's | +0.1873 | +0.1212 |" in text  # of alpha = 0
    mean = f"| EDN | SI | {summary(out, 'edn-si', protocol='default')['mae']:.4f} |"
    assert mean in (out / "tables/default.md").read_text()
    assert "the numbers mean nothing" in done.output
    assert "the paper's" in done.output


def test_other_commands_take_the_results(whole: tuple[Path, Result], tmp_path: Path) -> None:
    results = whole[0] / "results"
    compared = run("compare", str(results / "official/MSOD/EDN+SI"), "--against-paper")
    assert compared.exit_code == 0, compared.stderr
    assert "paper, MSOD/EDN+SI" in compared.stdout
    page = tmp_path / "report.html"
    done = run("report", str(results / "official"), "--against-paper", "--out", str(page))
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("is not compared with the paper") == 2 * 2  # alpha 0 and 1 are not in it
    for network in paper.networks():
        assert f"{network}+SI" in page.read_text(encoding="utf-8")
    figure = str(tmp_path / "size.svg")
    drawn = run("plot", str(results / "default/MSOD"), "--figure", "size", "--out", figure)
    assert drawn.exit_code == 0, drawn.stderr
    methods = [path.name for path in (results / "default/MSOD").iterdir()]
    assert len(methods) == 6
    assert {network_of(method) for method in methods} == set(paper.networks())  # a panel for each


def test_what_is_finished_is_left_alone(whole: tuple[Path, Result]) -> None:
    out, _ = whole
    before = stamps(out)
    tables = (out / "tables/official.md").read_text()
    again = reproduce(out)
    assert again.exit_code == 0, again.output
    assert again.output.count(": finished already") == 7
    assert stamps(out) == before
    assert (out / "tables/official.md").read_text() == tables
    listed = reproduce(out, "--dry-run")
    assert listed.exit_code == 0
    assert listed.output.count("finished") == 7
    only = reproduce(out, "--cell", "tables")
    assert (only.exit_code, "finished already" in only.output) == (0, False)
    assert "alpha of EDN" in only.output


def test_killed_cell_goes_on_to_the_same(whole: tuple[Path, Result]) -> None:
    out, _ = whole
    run = out / "cells/edn-si/run"
    was, scores, other = weights(run), summary(out, "edn-si"), stamps(out / "cells/edn-plain")
    # as a kill after the last epoch would leave it: no network yet
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"finished": False}))
    (run / "model.safetensors").unlink()
    assert "begun" in reproduce(out, "--dry-run").output
    done = reproduce(out, "--cell", "edn-si")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1].endswith("edn-si: scored on MSOD, SOD")
    now = weights(run)
    assert now.keys() == was.keys()
    assert len(was) > 10
    for key, value in was.items():
        assert now[key].equal(value), key
    assert summary(out, "edn-si") == scores
    # as a kill between two data sets would leave it
    kept = stamps(out / "results/official/SOD/EDN+SI")
    for protocol in ("default", "official"):
        shutil.rmtree(out / "results" / protocol / "MSOD" / "EDN+SI")
    shutil.rmtree(out / "cells/edn-si/maps/MSOD")
    done = reproduce(out, "--cell", "edn-si")
    assert done.output.splitlines()[-1].endswith("edn-si: scored on MSOD")
    assert summary(out, "edn-si") == scores
    assert stamps(out / "results/official/SOD/EDN+SI") == kept
    assert stamps(out / "cells/edn-plain") == other


def test_cell_that_is_trained_again_is_scored_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert reproduce(out, "--cell", "edn-plain").exit_code == 0
    before = summary(out, "edn-plain")
    write_scenes(tmp_path / "more", 8, seed=77, shape=(64, 64))
    for kind in ("image", "mask"):
        for path in (tmp_path / "more" / kind).iterdir():
            shutil.copy(path, out / "data/DUTS-TR" / kind / f"more_{path.name}")
    refused = reproduce(out, "--cell", "edn-plain")
    assert refused.exit_code == 1
    assert "is another run: images was 4 and is now 12" in refused.output
    shutil.rmtree(out / "cells/edn-plain/run")  # the maps and the results of the old network stay
    done = reproduce(out, "--cell", "edn-plain")
    assert done.exit_code == 0, done.output
    assert "edn-plain: 6 steps in" in done.output
    after = summary(out, "edn-plain")
    assert after != before
    maps = Evaluation.load(out / "results/official/MSOD/EDN").run["inputs"]["predictions"]
    assert evaluate(maps, out / "data/MSOD/mask", protocol="official", metrics="paper").summary == after


def test_unreadable_file_of_one_set_and_a_larger_set(tmp_path: Path) -> None:
    out = tmp_path / "out"
    start = ["reproduce", "--scale", "tiny", "--out", str(out), "--workers", "0", "--cell"]
    empty = run(*start, "tables")  # makes the data
    assert empty.exit_code == 1
    assert empty.stderr == f"error: '{out}' holds no result yet; run a cell first\n"
    mask = out / "data/MSOD/mask/made00001.png"
    content = mask.read_bytes()
    mask.write_bytes(content[:-30])
    environment = {"SLURM_NTASKS": "4", "SLURM_PROCID": "1", "SLURM_JOB_ID": "5", "SLURM_JOB_NAME": "x"}
    failed = run(*start, "edn-si", env=environment)  # one task of four runs a cell
    assert failed.exit_code == 1
    assert "error: edn-si: MSOD is not scored: " in failed.output
    assert "is cut short; replace the file" in failed.output
    for dataset in paper.datasets():
        assert (out / "results/official" / dataset / "EDN+SI").exists() == (dataset != "MSOD")
    mask.write_bytes(content)
    for kind, ending in (("image", "jpg"), ("mask", "png")):
        first = next((out / "data/SOD" / kind).iterdir())
        shutil.copy(first, first.with_name(f"third.{first.suffix[1:] or ending}"))
    done = reproduce(out, "--cell", "edn-si")
    assert done.exit_code == 0, done.output
    assert "edn-si: scored on MSOD, SOD" in done.output
    assert Evaluation.load(out / "results/default/SOD/EDN+SI").images.height == 3


def test_second_process_is_kept_off_a_cell(whole: tuple[Path, Result]) -> None:
    out, _ = whole
    result = out / "results/official/SOD/EDN+SI"
    result.rename(out / "elsewhere")  # so that there is something to do
    with lock(out / "cells/edn-si"):
        refused = reproduce(out, "--cell", "edn-si")
    (out / "elsewhere").rename(result)
    assert refused.exit_code == 1
    assert "error: edn-si: another sisod process is writing to" in refused.output
    assert "1 of 1 cells failed (edn-si)" in refused.output


def stamps(folder: Path) -> dict[Path, Any]:
    """When each file was written, tables apart."""
    return {
        path: path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file() and "tables" not in path.parts
    }
