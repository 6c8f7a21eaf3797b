"""The programs in benchmarks/speed run; the times that they print are not checked: machines differ."""

from pathlib import Path

import pytest
from helpers.benchmark_programs import run_quick
from helpers.paths import ROOT

from benchmarks import timing
from benchmarks.speed import before_after

_ROWS = (
    "partition, count metrics and SI forms; PySODMetrics",
    "the same, S and weighted F; PySODMetrics",
    "partition, count metrics and SI forms; OpenCV decodes",
    "the same, S and weighted F; OpenCV decodes",
    "the same, S, weighted F and their SI forms; OpenCV decodes",
    "growth with pixels",
    "S, weighted F, SI forms: growth with pixels",
    "growth with frames",
)


@pytest.mark.needs("py_sod_metrics")
@pytest.mark.slow
def test_engine_benchmark_prints_every_row_and_writes_nothing_when_quick() -> None:
    lines = run_quick("engine")
    assert lines[0] == "| what | ours | peer | ratio | target | met |"
    table = lines[2 : 2 + len(_ROWS)]
    for line, what in zip(table, _ROWS, strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[0].startswith(what)
        assert len(cells) == 6
        assert cells[-1] in ("yes", "no")
    assert sum(line.startswith("| 0.1 Mpx ") for line in lines) == 1
    assert sum(line.startswith("| 1000 ") for line in lines) == 1


@pytest.mark.slow
def test_before_after_benchmark_measures_two_checkouts(capsys: pytest.CaptureFixture[str]) -> None:
    before_after.main([str(ROOT), "--quick"])
    rows = _cells(capsys.readouterr().out.splitlines())
    assert [cells[0] for cells in rows] == ["what", "---", *before_after.CONTENDERS]
    assert all(0.2 < float(cells[3]) < 5 for cells in rows[2:])  # the same code twice


@pytest.mark.needs("pycocotools")
@pytest.mark.slow
def test_containers_benchmark_prints_every_row_and_writes_nothing_when_quick() -> None:
    rows = _cells(run_quick("containers"))
    kinds = ("tar", "tar shards", "parquet", "parquet shards")
    assert [cells[0] for cells in rows[2:]] == [
        *(f"list and read, {kind}" for kind in kinds),
        *(
            f"evaluate, {kind}, {jobs}"
            for jobs in ("one process", "two processes")
            for kind in kinds[::2]
        ),
        "COCO run lengths to label maps; pycocotools, to masks",
    ]


@pytest.mark.slow
def test_objects_benchmark_prints_every_row_and_writes_nothing_when_quick() -> None:
    rows = _cells(run_quick("objects"))
    assert rows[0] == ["what", "ours", "peer", "ratio", "target", "met"]
    assert [cells[0] for cells in rows[2:]] == [
        "default metrics; without predicted objects",
        "the curve of 32 thresholds, added to the default metrics",
        "default metrics, 5,025 predicted objects",
    ]


@pytest.mark.needs("torch")
@pytest.mark.slow
def test_networks_benchmark_prints_both_tables_and_writes_nothing_when_quick() -> None:
    rows = _cells(run_quick("networks", threads=1))  # on a shared machine two would wait for each other
    assert rows[0] == ["network", "mode", "batch", "time per image", "memory per image", "peak memory"]
    measured = [tuple(cells[:3]) for cells in rows if cells[0] in ("tiny", "ldf")]
    modes = ("inference", "training")
    assert measured == [(name, mode, "1") for name in ("tiny", "ldf") for mode in modes]


def test_compare_benchmark_prints_every_row_and_writes_nothing_when_quick() -> None:
    rows = _cells(run_quick("compare"))
    assert rows[0] == ["what", "processor time"]
    assert [cells[0] for cells in rows[2:]] == [
        "the paper's nine metrics and the objects found",
        "maxima of mean curves too",
        "everything",
    ]


@pytest.mark.needs("py_sod_metrics")
@pytest.mark.slow
def test_compat_benchmark_prints_every_row_and_writes_nothing_when_quick() -> None:
    rows = _cells(run_quick("compat"))
    assert rows[0][0] == "metrics"
    assert [cells[0] for cells in rows[2:]] == [
        "S, weighted F, E, F and MAE",
        "`FmeasureV2` with ten handlers",
        "`SizeInvarianceMAE`, `SizeInvarianceFmeasureV2` with ten handlers",
        "all of these",
        "`HumanCorrectionEffortMeasure`",
        "`ContextMeasure`",
        "`MSIoU` at all thresholds",
    ]
    assert all(float(cells[3]) > 0 for cells in rows[2:])


@pytest.mark.needs("torch")
@pytest.mark.slow
def test_losses_benchmark_prints_every_table_and_writes_nothing_when_quick() -> None:
    lines = run_quick("losses")
    assert lines[0] == "| what | ours | peer | ratio | target | met |"
    assert lines[2].startswith(
        "| 12 x 5 maps of 96 x 96, BCE + Dice, boxes given, mean over 1 to 50 frames"
    )
    begins = [line.split("|")[1].strip() for line in lines if line.startswith("|")]
    for name in ("50", "edn", "poolnet", "icon", "gatenet", "ldf", "DUTS-TE", "XPIE"):
        assert name in begins
    edn = next(line for line in lines if line.startswith("| edn |"))
    assert "| 340 s | 543.8 s | 1.60 |" in edn
    assert any("one EDN step" in line for line in lines)


@pytest.mark.needs("torch")
@pytest.mark.slow
def test_loss_parts_benchmark_prints_both_tables_and_writes_nothing_when_quick() -> None:
    rows = _cells(run_quick("loss_parts"))
    assert rows[0] == ["what", "ours", "peer", "ratio", "target", "met"]
    for cells, name in zip(
        rows[2:6], ("cells", "cells, whole 0.5", "blobs", "blobs, whole"), strict=True
    ):
        assert f"12 x 5 maps of 64 x 64, BCE + Dice, {name}" in cells[0]
    assert rows[6][0].startswith("one EDN step with cells, whole 0.5")
    assert rows[7][0] == "finding the cells of an image of 5 objects, in a worker"
    assert [cells[0] for cells in rows[8:]] == ["objects", "---", "2", "5"]


@pytest.mark.needs("lightning")
@pytest.mark.slow
def test_loader_benchmark_prints_its_rows_and_writes_nothing_when_quick() -> None:
    begins = [cells[0] for cells in _cells(run_quick("loader"))]
    assert begins[2:] == [
        "one sample at 96 x 96: read, augmented, frames found",
        "of it reading",
        "of it augmenting",
        "of it finding frames",
        "share of EDN's time spent waiting",
    ]


@pytest.mark.needs("torch", "onnx", "onnxscript", "onnxruntime")
@pytest.mark.slow
def test_onnx_predict_benchmark_prints_both_times_and_writes_nothing_when_quick() -> None:
    rows = _cells(run_quick("onnx_predict"))
    assert rows[0] == ["what", "ours", "peer", "ratio", "target", "met"]
    assert [cells[0] for cells in rows[2:]] == [
        "tiny at 64 x 64, wall-clock time of an image; bare session",
        "tiny at 64 x 64, processor time of an image; bare session",
    ]


def test_results_are_written_as_json_and_as_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "RESULTS", tmp_path)
    timing.write_results("loader", {"size": 96, "parts": [1]}, "| a |\n")
    assert (tmp_path / "loader.json").read_text() == '{\n  "size": 96,\n  "parts": [\n    1\n  ]\n}\n'
    assert (tmp_path / "loader.md").read_text() == "| a |\n"


def _cells(lines: list[str]) -> list[list[str]]:
    """Return the cells of every row of a printed table."""
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
