"""The programs in benchmarks run in their smallest size; times are not checked, for machines differ."""

import importlib
from pathlib import Path

import pytest
from helpers.paths import RESULTS

from benchmarks import timing

# program -> packages that it needs
PROGRAMS = {
    "intervals": (),
    "speed.compare": (),
    "speed.compat": ("py_sod_metrics",),
    "speed.containers": ("pycocotools",),
    "speed.engine": ("py_sod_metrics",),
    "speed.folders": (),
    "speed.loader": ("lightning",),
    "speed.loss_parts": ("torch",),
    "speed.losses": ("torch",),
    "speed.networks": ("torch",),
    "speed.objects": (),
    "speed.onnx_predict": ("torch", "onnx", "onnxscript", "onnxruntime"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pycocotools
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.needs(*packages)) for name, packages in PROGRAMS.items()],
)
def test_program_prints_a_table_and_writes_nothing_when_quick(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _modification_times()
    importlib.import_module(f"benchmarks.{name}").main(["--quick"])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(rows) > 3
    assert "nan" not in "".join(rows)
    assert _modification_times() == before


def test_contenders_take_turns() -> None:
    calls: list[str] = []
    contenders = {"a": [lambda: calls.append("a")], "b": [lambda: calls.append("b")]}
    medians = timing.interleaved_medians(contenders, repetitions=3)
    assert (list(medians), [len(times) for times in medians.values()]) == (["a", "b"], [1, 1])
    assert "".join(calls) == "abbaabba"  # who goes first rotates


def _modification_times() -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in RESULTS.iterdir()}


def test_results_are_written_as_json_and_as_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "RESULTS", tmp_path)
    timing.write_results("loader", {"size": 96, "parts": [1]}, "| a |\n")
    assert (tmp_path / "loader.json").read_text() == '{\n  "size": 96,\n  "parts": [\n    1\n  ]\n}\n'
    assert (tmp_path / "loader.md").read_text() == "| a |\n"
