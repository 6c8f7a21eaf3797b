"""Run folders as checkpoints: their size, and those whose training is not finished."""

import pytest
from helpers.command_line import run

from sisod import networks
from sisod.common.exceptions import InputError
from sisod.common.run_folder import open_run

pytest.importorskip("torch", reason="extra torch is not installed")

from sisod.networks.saved import load_network


@pytest.mark.usefixtures("inside_tmp_path")
def test_an_export_has_the_size_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxscript", reason="extra onnx is not installed")
    from sisod.networks import export

    network = networks.create("tiny")
    network.save_pretrained("run")
    sizes: list[tuple[int, int]] = []
    monkeypatch.setattr(export, "export_onnx", lambda *_, size, **__: sizes.append(size))
    assert run("export", "run", "a.onnx").stdout == "Tiny, any batch of 384 x 384: a.onnx\n"
    network.input_size = (96, 96)  # as training does
    network.save_pretrained("run")
    for checkpoint in ("run", "run/model.safetensors"):
        result = run("export", checkpoint, "a.onnx")
        assert result.stdout == "Tiny, any batch of 96 x 96: a.onnx\n", result.stderr
    assert run("export", "run", "a.onnx", "--height", "64").exit_code == 0
    assert sizes == [(384, 384), (96, 96), (96, 96), (64, 96)]


@pytest.mark.parametrize("folder", ["runs/a", "runs/.a.sisod-partial"])
@pytest.mark.usefixtures("inside_tmp_path")
def test_a_run_that_is_not_finished(folder: str) -> None:
    """Also one that is to replace another, and is beside it."""
    with open_run(folder, kind="training", resume=False, in_place=True) as begun:
        begun.begin()
    for load in (networks.from_pretrained, load_network):
        with pytest.raises(InputError, match=r"^'runs/a' has no network yet, .*--out runs/a --resume"):
            load("runs/a")
    networks.create("tiny").save_pretrained("runs/a")  # as if it had been killed at its very end
    assert load_network("runs/a").facts.name == "tiny"
