"""The tables of docs/real-data.md are computed from the saved rows."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.paths import RESULTS, ROOT

from benchmarks.real_data import figures, losses, runs, scores, tables
from sisod import paper
from sisod.report.style import save_figure

SAVED = tables.Results()


TABLES = {name: partial(make, SAVED) for name, make in tables.MAKERS.items()} | losses.MAKERS


@pytest.mark.parametrize("name", TABLES)
def test_table_is_what_the_rows_give(name: str) -> None:
    assert (RESULTS / "real_data" / f"{name}.md").read_text() == TABLES[name]() + "\n"


def test_level_of_an_object_agrees_with_found_at_one_half() -> None:
    rows = SAVED.objects
    assert rows.height > 10_000
    assert ((rows["level"] >= 128) == (rows["recall_binary"] >= 0.5)).all()


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_figures_are_drawn(tmp_path: Path) -> None:
    save_figure(figures.draw_losses(), tmp_path / "losses.svg")
    for name, draw in figures.FIGURES.items():
        save_figure(draw(SAVED), tmp_path / f"{name}.svg")
        assert (figures.DOCS / f"real_data_{name}.svg").exists()


def test_new_rows_replace_those_of_the_same_run_and_leave_the_others(tmp_path: Path) -> None:
    def rows(run: str, values: list[int]) -> pl.DataFrame:
        names = pl.Enum(["first", "second", "third"])
        return pl.DataFrame({"run": pl.Series([run] * len(values), dtype=names), "value": values})

    path = tmp_path / "rows.parquet"
    assert runs.with_saved_rows(rows("first", [1]), path).rows() == [("first", 1)]
    pl.concat([rows("first", [2, 1]), rows("third", [3, 5, 4])]).write_parquet(path)
    new = runs.with_saved_rows(rows("second", [7, 6]), path)
    assert new["value"].to_list() == [2, 1, 7, 6, 3, 5, 4]
    new = runs.with_saved_rows(rows("first", [9, 8]), path)
    assert new["value"].to_list() == [9, 8, 3, 5, 4]


def test_every_run_was_scored_as_trained_and_calibrated() -> None:
    fits = json.loads(scores.MEANS.read_text())["fits"]
    assert {fit["images"] for fit in fits.values()} == {500}
    assert set(losses.means()) == {name + end for name in fits for end in losses.KINDS}


def test_another_number_of_threads_changes_the_mae_as_much_as_another_loss() -> None:
    changes = [
        abs(SAVED.result(run, dataset).summary["mae"] - losses.means()[run][dataset]["mae"])
        for run in (f"edn-{loss}-{seed}" for loss in ("plain", "si") for seed in range(3))
        for dataset in runs.TESTS
    ]
    assert 0.0045 < max(changes) < 0.0055


def scores_of(run: str, dataset: str, end: str = "") -> dict[str, float]:
    return {**losses.means()[f"{run}-0{end}"][dataset]}


def test_what_the_text_says_of_the_baselines() -> None:
    for dataset in runs.TESTS:
        printed, own, iou = (scores_of(f"edn-{loss}", dataset) for loss in ("plain", "own", "iou"))
        for key in ("mae", "si_mae", "false_objects"):
            assert own[key] < printed[key]
        others = [scores_of(f"edn-{loss}", dataset) for loss in losses.LOSSES if loss != "iou"]
        assert iou["mae"] < min(other["mae"] for other in others)
        if dataset != "MSOD":
            assert iou["si_mae"] < min(other["si_mae"] for other in others)
        else:
            found = [other["object_recall_small"] for other in others]
            assert iou["object_recall_small"] < min(found)
        if dataset != "ECSSD":
            si, balanced = (scores_of(f"edn-{loss}", dataset) for loss in ("si", "tversky"))
            assert si["false_objects"] > 3 * own["false_objects"]
            assert all(si[key] > own[key] for key in ("mae", "si_mae"))
            assert si["object_recall_small"] == max(
                score["object_recall_small"] for score in (*others, iou)
            )
            assert balanced["object_recall_small"] > max(
                score["object_recall_small"] for score in (own, iou, printed)
            )
            assert balanced["false_objects"] > own["false_objects"]
            for key in ("mae", "si_mae", "false_objects"):
                assert max(losses.changes("tversky", "", dataset, key, baseline="plain")) < 0
    found = [
        scores_of(f"edn-{loss}", dataset)["object_recall_small"]
        for dataset in runs.TESTS[:2]
        for loss in ("tversky", "own")
    ]
    assert [round(share, 2) for share in found] == [0.57, 0.47, 0.45, 0.36]
    assert round(scores_of("edn-si", "MSOD")["object_recall_small"], 2) == 0.74  # the README
    assert abs(losses.changes("tversky", "", "MSOD", "mae")[0]) < 0.002
    assert losses.changes("tversky", "", "DUTS-TE", "mae")[0] == pytest.approx(0.005, abs=0.0005)


def test_what_the_readme_says_of_its_picture() -> None:
    scores = json.loads((RESULTS / "example.json").read_text())
    texts = [f"({scores['plain'][key]:.4f}, {scores['balanced'][key]:.4f})" for key in ("mae", "si_mae")]
    caption = (ROOT / "README.md").read_text().split("docs/example.png")[1].splitlines()[2]
    assert all(text in caption for text in texts)
    assert scores["plain"]["mae"] < scores["balanced"]["mae"]
    assert scores["balanced"]["si_mae"] < scores["plain"]["si_mae"]


def test_what_the_text_says_of_calibration() -> None:
    raw, calibrated = (
        np.mean(losses.changes("si", end, "MSOD", "mae", baseline="plain")) for end in losses.KINDS
    )
    assert calibrated / raw == pytest.approx(0.2, abs=0.05)
    assert max(losses.changes("si", scores.CALIBRATED, "MSOD", "si_mae", baseline="plain")) < 0


def test_what_the_text_says_of_single_runs() -> None:
    for dataset in runs.TESTS[:2]:
        for end in losses.KINDS:
            plain, balanced = (
                scores_of(f"edn-24-{loss}", dataset, end) for loss in ("plain", "tversky")
            )
            assert balanced["mae"] < plain["mae"]
            assert balanced["si_mae"] < plain["si_mae"]
            assert balanced["object_recall_small"] > plain["object_recall_small"]
        for network in ("ldf", "icon"):
            plain, balanced = (scores_of(f"{network}-{loss}", dataset) for loss in ("plain", "tversky"))
            assert balanced["object_recall_small"] > plain["object_recall_small"]
            assert 0.004 <= round(balanced["mae"] - plain["mae"], 3) <= 0.012
            assert balanced["false_objects"] > plain["false_objects"]


def test_false_objects_of_the_size_invariant_loss() -> None:
    for dataset in runs.TESTS:
        for seed in range(3):
            si, plain = (
                losses.means()[f"edn-{loss}-{seed}"][dataset]["false_objects"]
                for loss in ("si", "plain")
            )
            assert 1.8 < si / plain < 3.2  # about two to three times as many


def test_what_the_text_says_of_the_groups() -> None:
    lines = [line.split("|")[1:-1] for line in tables.group_claims(SAVED).splitlines()[2:]]
    small, several = (
        [float(gain) for line in lines if line[0].strip() == group for gain in line[3].split(",")]
        for group in paper.table("group_claims")["group"]
    )
    assert len(small) == len(several) == 6
    assert min(small) > 0
    assert all(abs(gain) < 0.004 for gain in several[:4])
    assert max(several[4:]) < 0


def found_gain(dataset: str, seed: int, low: float, high: float) -> float:
    """How many more objects of a range of sizes the size-invariant loss finds, as a share."""
    shares = []
    for loss in ("plain", "si"):
        chosen = (pl.col("run") == f"edn-{loss}-{seed}") & (pl.col("dataset") == dataset)
        rows = SAVED.objects.filter(chosen & pl.col("share").is_between(low, high, closed="left"))
        shares.append(float(np.mean(rows["recall_binary"].to_numpy() >= 0.5)))
    return shares[1] - shares[0]


def values(run: str, dataset: str) -> dict[str, float]:
    small = tables._small_found_at(SAVED, run, dataset, 0.05)
    return SAVED.result(run, dataset).summary | {"small": small}


def test_what_the_text_says_of_the_seeds() -> None:
    seeds = SAVED.seeds("edn")
    assert seeds == [0, 1, 2]
    for dataset in ("MSOD", "DUTS-TE"):
        for seed in seeds:
            plain, si = (values(f"edn-{loss}-{seed}", dataset) for loss in ("plain", "si"))
            gain = found_gain(dataset, seed, 0, 0.01)
            assert gain > 0.1
            assert gain > found_gain(dataset, seed, 0.1, 1.1)
            assert si["small"] > plain["small"]
            assert si["si_f_mean"] > plain["si_f_mean"]
            assert si["si_auc"] > plain["si_auc"]
        rows = [line.split("|") for line in tables.numbers(SAVED).splitlines()]
        pairs = [row[5].split("/") for row in rows if row[1].strip() == dataset]
        gains = [float(after) - float(before) for before, after in pairs]
        assert len(gains) == 5
        assert gains == sorted(gains)
    for seed in seeds:
        plain, si = (values(f"edn-{loss}-{seed}", "ECSSD") for loss in ("plain", "si"))
        assert -0.02 < si["si_f_mean"] - plain["si_f_mean"] < 0
        assert -0.02 < si["si_auc"] - plain["si_auc"] < 0
    for line in tables.paired(SAVED).splitlines()[2:]:
        _, dataset, _, mae, si_mae, *_ = line.split("|")
        assert float(mae.split("[")[1].split(",")[0]) > 0
        low, high = (float(end) for end in si_mae.split("[")[1].strip("] ").split(","))
        assert low < 0 < high if dataset.strip() == "MSOD" else low > 0


@pytest.mark.parametrize("network", ["ldf", "icon"])
def test_what_the_text_says_of_other_networks(network: str) -> None:
    for dataset in ("MSOD", "DUTS-TE"):
        plain, si = (values(f"{network}-{loss}-0", dataset) for loss in ("plain", "si"))
        assert si["small"] > plain["small"]
        assert si["si_f_mean"] > plain["si_f_mean"]
        assert si["si_auc"] > plain["si_auc"]
        assert si["mae"] > plain["mae"]
        assert 0.005 <= round(si["si_mae"] - plain["si_mae"], 3) <= 0.021


def test_what_the_text_says_of_the_length() -> None:
    def gains(dataset: str, length: str) -> dict[str, float]:
        plain, si = (values(f"edn{length}-{loss}-0", dataset) for loss in ("plain", "si"))
        return {key: si[key] - plain[key] for key in ("mae", "si_mae", "si_f_mean", "small")}

    for dataset in ("MSOD", "DUTS-TE", "ECSSD"):
        short, long = gains(dataset, ""), gains(dataset, "-long")
        for key in ("mae", "si_mae", "si_f_mean"):
            assert long[key] < short[key]
        assert long["mae"] > 0
        if dataset == "MSOD":
            assert long["mae"] < short["mae"] / 2
        if dataset != "ECSSD":  # which has hardly any small ones
            assert long["small"] > 0.9 * short["small"]


def test_what_the_text_says_of_bce_alone() -> None:
    for dataset in ("MSOD", "DUTS-TE"):
        changes = []
        for start in ("edn", "edn-bce"):
            names = [f"{start}-{loss}-0" for loss in ("plain", "si")]
            results = [values(name, dataset) for name in names]
            found = [tables._found_under(SAVED.result(name, dataset), 0.01) for name in names]
            mae, small = (results[1][key] - results[0][key] for key in ("mae", "small"))
            changes.append((mae, small, found[1] - found[0]))
        (mae, small, found_both), (bce_mae, bce_small, bce_found) = changes
        assert 0 < bce_small < small / 2
        assert 0 < bce_found < found_both / 2
        assert bce_mae > mae / 2


def test_what_the_text_says_of_the_losses() -> None:
    for dataset in ("MSOD", "DUTS-TE"):
        plain, si, printed, released, warm, one, zero = (
            values(f"edn-{name}-0", dataset)
            for name in ("plain", "si", "printed", "released", "warm", "alpha1", "alpha0")
        )
        others = (plain, si, printed, released, warm, one)
        assert zero["si_f_mean"] > max(o["si_f_mean"] for o in others if o is not released)
        assert released["si_f_mean"] > si["si_f_mean"]
        assert zero["small"] < plain["small"]
        assert zero["mae"] > one["mae"] > si["mae"]
        assert printed["small"] - plain["small"] < (si["small"] - plain["small"]) / 2
        assert released["mae"] == max(other["mae"] for other in others)
        assert all(abs(warm[key] - si[key]) < 0.005 for key in ("mae", "si_mae", "f_mean", "si_f_mean"))
        found = [
            tables._found_under(SAVED.result(f"edn-{name}-0", dataset), 0.01)
            for name in ("released", "si")
        ]
        assert abs(found[0] - found[1]) < 0.05
    for dataset in ("MSOD", "DUTS-TE", "ECSSD"):  # the paper's
        rows = paper.table("ablation").filter(pl.col("dataset") == dataset)
        mae = dict(zip(rows["alpha"], rows["mae"], strict=True))
        assert mae["0"] > mae["1"] > mae["ratio"]
