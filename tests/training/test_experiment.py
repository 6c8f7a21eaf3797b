"""The experiment loop: train, predict, score; finished steps are skipped, outdated results replaced."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("lightning", reason="extra torch is not installed")

import torch
from helpers.training_runs import SMALL, write_data

from sisod import networks
from sisod.common.exceptions import InputError
from sisod.data.datasets import open_dataset
from sisod.training import experiment as module
from sisod.training.experiment import (
    Experiment,
    evaluate_network,
    run_experiment,
    score_experiment,
    unscored,
)
from sisod.training.recipe import find_recipe
from sisod.training.train import Machine, TrainingRequest

MACHINE = Machine(devices="1", workers=0)


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    """An experiment on two test sets whose network exists but is not trained."""
    run = tmp_path / "out" / "runs" / "first"
    torch.manual_seed(0)
    networks.create("tiny").save_pretrained(run)
    tests = tuple(open_dataset(write_data(tmp_path / name, 2)) for name in ("easy", "hard"))

    recipe = find_recipe("tiny", ["data.size=32"])
    request, out = TrainingRequest(data=tmp_path / "easy", out=run), tmp_path / "out"
    return Experiment("first", recipe, request, tests, {"default": ("mae", "si_mae")}, out)


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_an_experiment_is_run_once(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data", 8)
    experiment = Experiment(
        "first",
        find_recipe("tiny", [*SMALL, "train.epochs=1"]),
        TrainingRequest(data=data, out=tmp_path / "out/runs/first"),
        (open_dataset(data),),
        {"default": ("mae",), "official": "paper"},
        out=tmp_path / "out",
        results="results/{protocol}/{dataset}/{name}",
    )
    results = run_experiment(experiment, MACHINE, jobs=1)
    assert list(results) == [("data", "default"), ("data", "official")]
    assert list(results["data", "default"].summary) == ["mae"]
    assert (tmp_path / "out/results/official/data/first/summary.json").exists()
    assert len(list((tmp_path / "out/maps/data/first").glob("*.png"))) == 8
    before = times(tmp_path / "out")
    again = run_experiment(experiment, MACHINE, jobs=1)
    assert {key: result.summary for key, result in again.items()} == {
        key: result.summary for key, result in results.items()
    }
    assert times(tmp_path / "out") == before
    other = replace(experiment, recipe=find_recipe("tiny", [*SMALL, "train.epochs=2"]))
    with pytest.raises(InputError, match=r"is another run: settings.train.epochs was 1 and is now 2"):
        run_experiment(other, MACHINE)


def test_scores_in_memory_are_those_of_the_maps(experiment: Experiment, tmp_path: Path) -> None:
    kept = score_experiment(experiment, jobs=1)
    in_memory = score_experiment(replace(experiment, out=tmp_path / "memory", maps=None))
    assert not (tmp_path / "memory/maps").exists()
    for key, result in kept.items():
        assert in_memory[key].summary == pytest.approx(result.summary, abs=1e-3)  # batches of 1 and 2
    network = networks.from_pretrained(experiment.training.out)
    protocols = {"default": None, "official": "paper"}
    both = evaluate_network(network, experiment.tests[0], size=32, metrics=protocols, title="scoring")
    assert [result.protocol.name for result in both.values()] == ["default", "official"]
    assert both["default"].summary["mae"] == in_memory["easy", "default"].summary["mae"]


def test_results_of_an_earlier_training_or_other_images_are_replaced(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [dataset.name for dataset in unscored(experiment)] == ["easy", "hard"]
    before = score_experiment(experiment, jobs=1)["hard", "default"].summary
    assert unscored(experiment) == []
    larger = replace(experiment.tests[0], samples=experiment.tests[0].samples * 2)
    waiting = unscored(replace(experiment, tests=(larger, experiment.tests[1])))
    assert [dataset.name for dataset in waiting] == ["easy"]

    def trained(*_: object, **__: object) -> dict[str, object]:
        networks.create("tiny").save_pretrained(experiment.training.out)  # other random weights
        return {}

    monkeypatch.setattr(module, "train", trained)  # the run there is not finished
    after = run_experiment(experiment, MACHINE, jobs=1)["hard", "default"].summary
    assert after != before


def test_an_unreadable_test_set_does_not_stop_the_others(experiment: Experiment) -> None:
    mask = experiment.tests[0].samples[1].mask
    content = mask.read_bytes()
    mask.write_bytes(content[:-30])
    with pytest.raises(InputError, match=r"^easy is not scored: .*is cut short; replace the file"):
        score_experiment(experiment, jobs=1)
    assert [dataset.name for dataset in unscored(experiment)] == ["easy"]
    mask.write_bytes(content)
    assert len(score_experiment(experiment, jobs=1)) == 2


def test_all_but_the_first_process_only_train(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "train", lambda *_, **__: {})
    monkeypatch.setenv("RANK", "1")
    assert run_experiment(experiment, Machine(devices="2")) == {}
    assert not (tmp_path / "out/results").exists()
