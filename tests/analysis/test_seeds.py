"""Methods named NAME@SEED: one method in comparisons and tables; by hand and by simulation."""

import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from helpers.command_line import run
from helpers.evaluate_runs import finished
from helpers.simulated_results import simulated

import sisod
from sisod.analysis.comparison import compare, compare_many
from sisod.analysis.scores import mean_score, read_score
from sisod.analysis.seeds import group_seeds
from sisod.analysis.significance import seed_test


def test_names() -> None:
    assert group_seeds(["B", "A@1", "C@x", "A@0", "C@y"]) == {
        "B": ["B"], "A": ["A@1", "A@0"], "C@x": ["C@x"], "C@y": ["C@y"],
    }  # fmt: skip
    assert group_seeds(["A", "A@0", "A@1"]) == {"A": ["A"], "A@0": ["A@0"], "A@1": ["A@1"]}
    assert group_seeds(["@0", "@1", "u@v@2", "u@v@3"]) == {
        "@0": ["@0"], "@1": ["@1"], "u@v": ["u@v@2", "u@v@3"],
    }  # fmt: skip


def runs(name: str, means: list[float], noise: np.ndarray) -> dict[str, sisod.Evaluation]:
    return {f"{name}@{seed}": simulated(noise + mean) for seed, mean in enumerate(means)}


def test_values_are_means_over_seeds() -> None:
    noise = np.random.default_rng(0).uniform(0, 0.1, 20)
    results = runs("A", [0.1, 0.2, 0.3], noise) | runs("B", [0.4, 0.5], noise)
    found = compare_many(results, metrics="mae", resamples=200)
    assert found.methods == ("A", "B")
    assert found.seeds == {"A": 3, "B": 2}
    line = found.table.row(0, named=True)
    assert line["value_a"] == pytest.approx(0.2 + noise.mean())
    assert line["value_b"] == pytest.approx(0.45 + noise.mean())
    assert (line["a_wins"], line["b_wins"], line["ties"]) == (20, 0, 0)
    assert "of images and of seeds (3 of A, 2 of B)" in found.caption()


def test_p_of_seeds_is_students() -> None:
    """Images do not differ, so that only the seeds vary."""
    a, b = [0.1, 0.12, 0.17], [0.15, 0.21]
    scores = [
        mean_score([read_score(simulated(np.full(30, value)), "mae") for value in values], copies)
        for values, copies in ((a, 2), (b, 3))
    ]
    assert seed_test(*scores) == pytest.approx(scipy.stats.ttest_ind(a, b).pvalue, abs=1e-4)
    assert seed_test(scores[0], scores[0]) == pytest.approx(1, abs=1e-3)
    line = compare_many(runs("A", a, np.zeros(30)) | runs("B", b, np.zeros(30)), resamples=2000)
    row = line.table.filter(metric="mae").row(0, named=True)
    interval = scipy.stats.ttest_ind(a, b).confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high), rel=0.02)
    # exchanges of images alone would decide
    assert compare(simulated(np.full(30, 0.13)), simulated(np.full(30, 0.18))).table["p_mean"][0] < 0.001
    assert (row["verdict"], row["p_mean"] > 0.05) == ("undecided", True)


def test_other_methods_and_single_runs() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.uniform(0, 0.2, 30), rng.uniform(0, 0.2, 30)
    single = {"C": simulated(a), "D": simulated(b)}
    alone = compare_many(single, metrics="mae", resamples=300).table.row(0, named=True)
    among = compare_many({**runs("A", [0.1, 0.2], a), **single}, metrics="mae", resamples=300).table
    beside = among.filter(a="C", b="D").row(0, named=True)
    for key in ("value_a", "low", "high", "p", "p_mean"):
        assert beside[key] == pytest.approx(alone[key]), key


def test_a_run_on_which_a_metric_is_undefined_does_not_count() -> None:
    values = np.linspace(0, 0.2, 10)
    undefined = simulated(np.full(10, math.nan))
    found = compare_many(
        {"A@0": simulated(values), "A@1": undefined, "B": simulated(values)}, metrics="mae", resamples=50
    ).table.row(0, named=True)
    assert found["value_a"] == pytest.approx(0.1)
    assert found["difference"] == pytest.approx(0)


@pytest.mark.slow
@pytest.mark.parametrize(("n_a", "n_b"), [(3, 3), (3, 1)])
def test_equal_methods_with_seeds_are_rarely_told_apart(n_a: int, n_b: int) -> None:
    """Seeds vary more than images: the permutation test of images would decide half of the trials."""
    rng = np.random.default_rng(n_b)
    trials, false, covered = 150, 0, 0
    for trial in range(trials):
        hard = rng.gamma(1.0, 0.05, 60)
        results = {}
        for name, count in (("A", n_a), ("B", n_b)):
            method = hard * rng.lognormal(0, 0.3, 60)
            for seed in range(count):
                values = 0.3 + method + rng.normal(0, 0.02) + rng.normal(0, 0.01, 60)
                results[f"{name}@{seed}" if count > 1 else name] = simulated(values)
        row = compare_many(results, metrics="mae", resamples=200, seed=trial).table.row(0, named=True)
        false += row["verdict"] != "undecided"
        covered += row["low"] <= 0 <= row["high"]
    assert false <= 0.09 * trials  # 5 %, and two standard errors
    assert covered >= 0.91 * trials


@pytest.mark.usefixtures("four_images")
def test_commands_group_seeds() -> None:
    finished("--metrics", "mae,object_f1", preds=("EDN@0=A", "EDN@1=B", "ICON=B"))
    shown = run("compare", "out/MSOD", "--resamples", "50")
    assert shown.exit_code == 0, shown.stderr
    assert "EDN against ICON: " in shown.stdout
    assert "of images and of seeds (2 of EDN)" in shown.stdout
    table = run("table", "out/MSOD", "--metrics", "mae").stdout
    assert "EDN (2 seeds)" in table
    a, b = (sisod.Evaluation.load(Path("out/MSOD") / f"EDN@{s}").summary["mae"] for s in (0, 1))
    assert f"{(a + b) / 2:.4f} ± {abs(a - b) / math.sqrt(2):.4f}" in table
    rows = run("table", "out/MSOD", "--metrics", "mae", "--format", "csv").stdout.splitlines()
    assert rows[0] == "dataset,method,seeds,mae,mae_std"
    assert [row.split(",")[1:3] for row in rows[1:]] == [["EDN", "2"], ["ICON", "1"]]
    assert r"$\pm$" in run("table", "out/MSOD", "--metrics", "mae", "--format", "latex").stdout
