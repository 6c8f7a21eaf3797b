"""The example scripts about results run, on synthetic scenes and on given folders."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from helpers.evaluate_runs import finished
from helpers.paths import EXAMPLES


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_score_a_folder(four_images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = example("score_a_folder")["main"]
    found = main([])
    a, b = found["A"], found["B"]
    assert a["mae"][0] < b["mae"][0]  # A finds only large objects, B finds all of them coarsely
    assert a["si_mae"][0] > b["si_mae"][0]
    assert all(low <= value <= high for value, low, high in a.values())
    assert "si_f_mean" in capsys.readouterr().out
    given = str(four_images / "A")
    assert list(main([given, str(four_images / "MSOD/mask")])) == [given]
    assert "95 % interval" in capsys.readouterr().out


@pytest.mark.usefixtures("four_images")
def test_find_missed_objects(capsys: pytest.CaptureFixture[str]) -> None:
    functions = example("find_missed_objects")
    result = functions["main"]([])
    lost = functions["missed"](result)
    assert 0 < lost.height < result.objects.height
    assert lost["share"].is_sorted()
    assert lost["share"].max() < 0.015  # A finds no smaller object
    printed = capsys.readouterr().out
    assert printed.startswith(f"{lost.height} of {result.objects.height} objects missed")
    finished()
    assert functions["main"](["out/MSOD/A"]).images.height == 4
    assert "% found" in capsys.readouterr().out
