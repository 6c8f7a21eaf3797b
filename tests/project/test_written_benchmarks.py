"""Saved benchmark results: the Markdown agrees with the JSON, and the documents quote it."""

import importlib
import json
import re

import polars as pl
import pytest
from helpers.paths import RESULTS, ROOT
from quotes import TABLES, WHOLE

from sisod.evaluation.executors import GROUP
from sisod.evaluation.shards import LEAST_SHARDS
from sisod.evaluation.tasks import BATCH

pytestmark = [pytest.mark.slow, pytest.mark.needs("torch", "lightning")]  # for the imports
_NEEDS = {
    "speed.compat": "py_sod_metrics",
    "speed.containers": "pycocotools",
    "speed.engine": "py_sod_metrics",
    "speed.onnx_predict": "onnxruntime",
    "speed.scale": "distributed",
}


@pytest.mark.parametrize(
    "name",
    [
        "intervals",
        "published.rankings",
        "real_data.calibration",
        "real_data.conventions",
        *(
            f"speed.{name}"
            for name in (
                "compare",
                "compat",
                "containers",
                "engine",
                "folders",
                "loader",
                "loss_parts",
                "losses",
                "networks",
                "objects",
                "onnx_predict",
                "scale",
            )
        ),
    ],
)
def test_page_is_what_the_json_gives(name: str) -> None:
    if name in _NEEDS:
        pytest.importorskip(_NEEDS[name], reason="an extra is not installed")
    written = RESULTS / name.rpartition(".")[2]
    content = json.loads(written.with_suffix(".json").read_text())
    assert written.with_suffix(".md").read_text() == importlib.import_module(f"benchmarks.{name}").page(
        content
    )


def test_what_the_page_says_about_false_decisions_and_coverage() -> None:
    rows = json.loads((RESULTS / "intervals.json").read_text())["rows"]
    false = [row["false"] for row in rows]
    assert max(false) < 0.07
    assert round(sum(false) / len(false), 3) == 0.035
    assert round(max(row["false_percentile"] for row in rows), 2) == 0.17
    kinds = ("difference", "score")
    coverage = {
        (r["test"], r["key"], kind): r[kind] for r in rows if r["images"] == 15 for kind in kinds
    }
    assert round(sum(coverage.values()) / len(coverage), 2) == 0.95
    low = [key for (_, key, _), share in coverage.items() if share < 0.93]
    assert (len(low), len(coverage), set(low)) == (6, 24, {"mae", "false_objects"})
    assert min(coverage.values()) == 0.85
    percentile = [row[f"{kind}_percentile"] for row in rows if row["images"] == 15 for kind in kinds]
    assert round(min(percentile), 2) == 0.65


def test_figure_of_calibration_is_of_the_saved_run() -> None:
    content = json.loads((RESULTS / "calibration.json").read_text())
    drawn = (ROOT / "docs" / "calibration.svg").read_text()
    fit = content["rows"]["edn-si-0"]["bce"]["fit"]
    for key in ("ece", "si_ece"):
        assert f"ECE: before {fit['before'][key]:.4f}, after {fit['after'][key]:.4f}" in drawn


def test_what_the_page_says_about_calibration() -> None:
    """What the saved scores of calibrated networks say; the table is in benchmarks/results."""
    rows = json.loads((RESULTS / "calibration.json").read_text())["rows"]
    for name, kinds in rows.items():
        raw, bce, mae = (kinds[kind]["scores"] for kind in ("raw", "bce", "mae"))
        assert all(abs(bce[key] - raw[key]) < 0.001 for key in ("auc", "si_auc"))
        assert all(raw[key] - mae[key] > 0.05 for key in ("auc", "si_auc"))
        fit = kinds["bce"]["fit"]
        assert fit["images"] == 500
        assert fit["after"]["ece"] < fit["before"]["ece"]
        rise = fit["after"]["si_ece"] - fit["before"]["si_ece"]
        plain = rows[name.replace("-si-", "-plain-")]["bce"]["fit"]
        assert rise > 0
        assert "plain" in name or rise > plain["after"]["si_ece"] - plain["before"]["si_ece"]
        if "-si-" in name:
            other = rows[name.replace("-si-", "-plain-")]
            for kind in ("bce", "mae"):
                assert kinds[kind]["scores"]["si_mae"] < other[kind]["scores"]["si_mae"]


def test_trained_demo_is_what_its_rows_give() -> None:
    trained_demo = importlib.import_module("benchmarks.trained_demo")
    found = trained_demo.saved()
    assert (RESULTS / "trained_demo.md").read_text() == trained_demo.as_printed(found)


def test_sentence_of_the_engine_is_what_the_json_gives() -> None:
    pytest.importorskip("py_sod_metrics", reason="an extra is not installed")
    engine = importlib.import_module("benchmarks.speed.engine")
    content = json.loads((RESULTS / "engine.json").read_text())
    assert (RESULTS / "engine_short.md").read_text() == engine.in_short(content) + "\n"
    (first, *_) = content["rows"]
    assert first["peer"] / first["ours"][0] > 200  # the README: a two-hundredth of PySODMetrics
    assert f", {first['peer'] / first['ours'][0]:.0f} times as long" in engine.in_short(content)


def test_scale_is_worked_out_from_the_folders_of_today() -> None:
    pytest.importorskip("distributed", reason="extra cluster is not installed")
    scale = importlib.import_module("benchmarks.speed.scale")
    folders = json.loads((RESULTS / "folders.json").read_text())
    measured = json.loads((RESULTS / "scale.json").read_text())["measured"]
    assert measured["core seconds per image"] == folders["seconds"]["evaluate 1"] / folders["files"]
    assert measured["bytes per batch of rows"] == scale.rows_bytes()
    assert measured["bytes per answer of a shard"] == scale.shard_bytes()
    seconds = folders["seconds"]
    # docs/performance.md: almost half
    assert 0.4 < seconds["decode 1"] / seconds["evaluate 1"] < 0.5


def test_what_the_page_says_about_scale() -> None:
    """The sentences of docs/performance.md about the scheduler and the other bottlenecks."""
    pytest.importorskip("distributed", reason="extra cluster is not installed")
    scale = importlib.import_module("benchmarks.speed.scale")
    measured = json.loads((RESULTS / "scale.json").read_text())["measured"]
    files, shards = (scale.worked_out(measured, by_shards=by_shards) for by_shards in (False, True))
    assert files["busy cores"] < scale.CORES < shards["busy cores"] / 5
    assert shards["scheduler hours"] < shards["core hours"] / scale.CORES / 5
    assert shards["sent"] < 0.6 * files["sent"]
    assert shards["client hours"] > shards["core hours"] / scale.CORES
    assert shards["core seconds"] < 1.1 * files["core seconds"]


def test_every_marker_of_a_document_is_checked() -> None:
    written = {
        (str(path.relative_to(ROOT)), marker)
        for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        for marker in re.findall(r"<!-- (\w[\w/]*) -->", path.read_text())
    }
    known = {(document, marker) for document, marker, _ in (*TABLES, *WHOLE)}
    assert written == known | {("README.md", "demo")}


def test_numbers_of_the_prose() -> None:
    texts = {name: _unwrapped(name) for name in ("analysis", "reproduce", "real-data", "performance")}
    plan = importlib.import_module("sisod.reproduction.demo_training").Plan()
    assert f"{plan.n_train} textured scenes of {plan.side} x {plan.side} pixels" in texts["reproduce"]
    assert f"and {plan.n_test} others to test on" in texts["reproduce"]
    assert f"for {plan.n_train // 8 * plan.epochs} steps of eight images" in texts["reproduce"]
    compared = json.loads((RESULTS / "compare.json").read_text())
    assert f"{compared['resamples']:,} resamples of {compared['images']:,} images" in texts["analysis"]
    small = pl.scan_parquet(RESULTS / "real_data" / "objects.parquet")
    small = small.filter((pl.col("run") == "edn-plain-0") & (pl.col("dataset") == "MSOD"))
    assert 0.85 < small.select((pl.col("share") < 0.1).mean()).collect().item() < 0.9
    assert "almost nine objects in ten of MSOD fall into the first" in texts["analysis"]
    assert f"A batch is {BATCH} images, a task up to {GROUP} batches" in texts["performance"]
    assert f"from {LEAST_SHARDS} shards on" in texts["performance"]
    runs = importlib.import_module("benchmarks.real_data.runs")
    side, count = runs.SIDE, runs.N_TRAINING
    recipe = importlib.import_module("sisod.training.recipe").find_recipe("edn-lite", [])
    epochs = recipe.train.epochs
    assert f"{count} images of DUTS-TR, {side} x {side}, {epochs} epochs" in texts["real-data"]


def _unwrapped(name: str) -> str:
    return " ".join((ROOT / "docs" / f"{name}.md").read_text().split())
