"""The examples that bring a model: each runs from its own file, with what it makes on the spot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import EXAMPLES

pytest.importorskip("torch", reason="extra torch is not installed")
pytest.importorskip("lightning", reason="extra torch is not installed")


@pytest.mark.parametrize(
    ("name", "package", "expected"),
    [
        ("train_your_unet", "torch", "after 20 steps; 32 maps\n"),
        ("finetune_segformer", "transformers", "after 12 steps; 32 maps\n"),
        ("predict_with_onnx", "onnxruntime", "8 maps; MAE "),
    ],
)
@pytest.mark.slow
def test_an_example_runs(name: str, package: str, expected: str, tmp_path: Path) -> None:
    pytest.importorskip(package, reason=f"{package} is not installed")
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    assert "Warning" not in done.stderr  # Transformers shows the progress of writing
    assert len(list((tmp_path / "out" / "maps").glob("*.png"))) in (8, 32)
