"""The ablation: four losses with several seeds, resumable, and the table of their means."""

import json
from pathlib import Path

import polars as pl
import pytest
from helpers.command_line import run

pytest.importorskip("lightning", reason="extra torch is not installed")

from helpers.training_runs import SMALL, write_data

import sisod
from sisod.training.ablate import ablation_tables, summarise

VARIANTS = ["plain", "alpha0", "alpha1", "ratio"]


def arguments(data: Path, out: Path, *more: str) -> list[str]:
    settings = [part for setting in (*SMALL, "train.epochs=1") for part in ("--set", setting)]
    start = ["ablate", "tiny", "--data", str(data), "--out", str(out), "--test", str(data)]
    return [*start, "--seeds", "2", "--workers", "0", "--limit", "8", *settings, *more]


@pytest.mark.slow
def test_ablation_trains_scores_and_goes_on(tmp_path: Path) -> None:
    data, out = write_data(tmp_path / "synthetic", 10), tmp_path / "ablation"
    done = run(*arguments(data, out))
    assert done.exit_code == 0, done.output
    for text in ("tiny on synthetic, 2 seeds", "plain", "alpha = 0", "alpha = back / fore", "±"):
        assert text in done.output
    content = json.loads((out / "ablation.json").read_text())
    assert [(row["variant"], row["seed"]) for row in content["rows"]] == [
        (variant, seed) for seed in (0, 1) for variant in VARIANTS
    ]
    table = pl.read_parquet(out / "ablation.parquet")
    assert table.shape[0] == 8
    for row in content["rows"]:
        record = json.loads((out / "runs" / f"{row['variant']}@{row['seed']}" / "run.json").read_text())
        assert record["config"]["seed"] == row["seed"]
        assert (record["config"]["loss"] == "plain") == (row["variant"] == "plain")
        saved = sisod.Evaluation.load(out / row["result"])  # the report's input
        assert saved.summary["si_mae"] == row["scores"]["si_mae"]
        assert saved.images.shape[0] == 10
    alphas = [
        json.loads((out / "runs" / f"{variant}@0" / "run.json").read_text())["config"]["settings"][
            "loss"
        ]
        for variant in VARIANTS[1:]
    ]
    assert [loss["alpha"] for loss in alphas] == [0.0, 1.0, "ratio"]
    assert len({round(row["scores"]["mae"], 9) for row in content["rows"]}) == 8
    again = run(*arguments(data, out))
    assert again.exit_code == 1
    assert "exists already; use --resume to go on with it" in again.output
    # one result is lost: only this one is computed again, and the tables are the same
    before = (out / "ablation.json").read_bytes()
    kept = (out / "runs" / "plain@0" / "model.safetensors").stat().st_mtime_ns
    for path in (out / "results" / "synthetic" / "alpha0@1").iterdir():
        path.unlink()
    resumed = run(*arguments(data, out, "--resume"))
    assert resumed.exit_code == 0, resumed.output
    assert (out / "ablation.json").read_bytes() == before
    assert (out / "runs" / "plain@0" / "model.safetensors").stat().st_mtime_ns == kept
    assert resumed.output == done.output


def test_means_deviations_and_the_best_by_hand() -> None:
    keys = ("mae", "si_mae", "auc", "f_mean", "si_f_mean", "f_max_image", "si_f_max_frame", "e_mean")
    values = {"plain": (0.1, 0.3), "alpha0": (0.3, 0.5), "alpha1": (0.2, 0.2), "ratio": (0.1, 0.1)}
    rows = [
        {"variant": variant, "seed": seed, "dataset": "synthetic", **dict.fromkeys(keys, value)}
        for variant, pair in values.items()
        for seed, value in enumerate(pair)
    ]
    means = summarise(rows)["synthetic"]
    assert means["plain"]["mae"] == pytest.approx((0.2, 0.2 / 2**0.5))
    assert means["alpha1"]["mae"] == pytest.approx((0.2, 0.0))
    [(title, grid)] = ablation_tables(rows, "tiny").items()
    assert title == "tiny on synthetic, 2 seeds"
    assert grid.rows[3][:2] == ("alpha = back / fore", "0.1000 ± 0.0000")
    # ratio has the least of both errors, alpha0 the highest of the other scores
    assert grid.bold == {(3, 1), (3, 2), *((1, column) for column in range(3, 9))}


def test_an_ablation_needs_tests_of_different_names(tmp_path: Path) -> None:
    data = write_data(tmp_path / "synthetic", 8)
    twice = run(*arguments(data, tmp_path / "out", "--test", str(data)))
    assert twice.exit_code == 2
    assert "two data sets of --test have the same name" in twice.output


def test_parts_without_a_background_are_refused(tmp_path: Path) -> None:
    done = run(*arguments(tmp_path, tmp_path / "ablation", "--set", "loss.parts=cells"))
    assert (done.exit_code, "use --set loss.parts=boxes" in done.output) == (2, True)
    assert not (tmp_path / "ablation").exists()
