"""The demo: MAE prefers the method that misses small objects, SI-MAE the other one."""

from pathlib import Path

import cv2
import pytest
from helpers.command_line import run
from quotes import ROOT, TABLES, WHOLE, bench_text, demo_text, quoted, whole_text

from sisod.data.scenes import make_scenes
from sisod.reproduction.demo import preferred, run_demo


def test_mae_and_si_mae_disagree(tmp_path: Path) -> None:
    for seed in range(3):
        results = run_demo(tmp_path, count=6, seed=seed).results
        assert [preferred(results, key) for key in ("mae", "f_mean")] == ["A", "A"]
        assert [preferred(results, key) for key in ("si_mae", "si_f_mean", "si_auc")] == ["B"] * 3


@pytest.mark.slow
def test_demo_writes_maps_and_figure(tmp_path: Path) -> None:
    result = run("demo", "--quick", "--out", tmp_path)
    assert result.exit_code == 0
    assert "Method A is preferred by MAE" in result.stdout
    assert "Now a small network learns such scenes" not in result.stdout
    svg = (tmp_path / "figure2.svg").read_text()
    assert "MAE prefers A, SI-MAE prefers B" in svg
    scene = make_scenes(1, seed=0)[0]
    written = cv2.imread(str(tmp_path / "mask" / "scene000.png"), cv2.IMREAD_GRAYSCALE)
    assert written is not None
    assert (written == scene.mask).all()
    assert len(list((tmp_path / "A").iterdir())) == 24


@pytest.mark.slow
def test_figure_in_the_documents_is_the_demos(tmp_path: Path) -> None:
    docs = ROOT / "docs" / "figure2.svg"
    assert docs.read_text() == run_demo(tmp_path).figure.read_text()


@pytest.mark.slow
def test_readme_quotes_the_demo(tmp_path: Path) -> None:
    assert quoted((ROOT / "README.md").read_text(), "demo") == demo_text(tmp_path)


@pytest.mark.parametrize(("document", "marker", "benchmark"), TABLES)
def test_documents_quote_the_benchmarks(document: str, marker: str, benchmark: str) -> None:
    assert quoted((ROOT / document).read_text(), marker) == bench_text(benchmark)


@pytest.mark.parametrize(("document", "marker", "benchmark"), WHOLE)
def test_documents_quote_the_trained_demo(document: str, marker: str, benchmark: str) -> None:
    assert quoted((ROOT / document).read_text(), marker) == whole_text(benchmark)
