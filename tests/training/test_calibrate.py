"""`sisod calibrate`: which images it sees, what it stores and what it refuses; calibrated maps."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("lightning", reason="extra torch is not installed")

import torch
from helpers.calibration_runs import N_IMAGES, N_TRAINED, write_run
from helpers.command_line import error_message, refusal, run
from helpers.container_files import write_tar
from helpers.folder_contents import content
from helpers.messages import check_one_sentence
from helpers.training_runs import SMALL, same_weights, train_tiny, write_data

from benchmarks.calibrated import calibrate
from sisod import networks
from sisod.common.exceptions import InputError
from sisod.data.datasets import Sample, open_dataset
from sisod.data.images import resize
from sisod.networks.predict import predict_logits
from sisod.networks.saved import load_network
from sisod.networks.specs import Calibration
from sisod.training.calibration import calibrate_run, fit_images, unseen_images
from sisod.training.data import TrainingSet, name_order, read_image, read_truth, select_samples
from sisod.training.experiment import Experiment, run_experiment, score_experiment
from sisod.training.recipe import find_recipe
from sisod.training.train import Machine, TrainingRequest

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run`, trained on 8 of the 32 images of `data`."""
    root = tmp_path_factory.mktemp("trained")
    write_run(root)
    return root


@pytest.fixture
def world(trained: Path, tmp_path: Path) -> Path:
    """A copy that a test may change; its run names the data set of the original."""
    shutil.copytree(trained / "run", tmp_path / "run")
    return tmp_path


def names(samples: tuple[Sample, ...]) -> set[str]:
    return {sample.name for sample in samples}


# ------------------------------------------------------------------------------- which images are used


def test_calibration_never_sees_an_image_of_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file that the training and the calibration read is recorded: no file is in both lists."""
    read: list[str] = []
    item = TrainingSet.__getitem__

    def recorded(self: TrainingSet, key: tuple[int, int]) -> object:
        read.append(self.samples[key[1]].name)
        return item(self, key)

    monkeypatch.setattr(TrainingSet, "__getitem__", recorded)
    folder, _ = write_run(tmp_path)
    trained_on, calibrated_on = {*read}, set[str]()
    assert len(trained_on) == N_TRAINED

    def read_and_record(sample: Sample) -> object:
        calibrated_on.add(sample.name)
        return read_image(sample)

    monkeypatch.setattr("sisod.training.calibration.runs.read_image", read_and_record)
    fitted = calibrate_run(folder)
    assert len(calibrated_on) == N_IMAGES - N_TRAINED
    assert not calibrated_on & trained_on
    assert {*fitted.images} == calibrated_on
    record = json.loads((folder / "calibration.json").read_text())
    assert {*record["images"]} == calibrated_on
    assert {*json.loads((folder / "images.json").read_text())["trained"]} == trained_on


@pytest.mark.parametrize("kind", ["copies", "archive"])
def test_copies_of_test_images_are_left_out(kind: str, trained: Path, tmp_path: Path) -> None:
    data = open_dataset(trained / "data")
    unseen = unseen_images(trained / "run", data)
    pairs = [(sample.image.read_bytes(), sample.mask.read_bytes()) for sample in unseen[:3]]
    if kind == "archive":
        test = tmp_path / "test.tar"
        members = {f"other-{n}.jpg": image for n, (image, _) in enumerate(pairs)}
        write_tar(test, members | {f"other-{n}.mask.png": mask for n, (_, mask) in enumerate(pairs)})
    else:
        test = tmp_path / "test"
        for folder, index in (("image", 0), ("mask", 1)):
            (test / folder).mkdir(parents=True)
            for n, pair in enumerate(pairs):
                (test / folder / f"other-{n}.png").write_bytes(pair[index])
    done = run("calibrate", trained / "run", "--test", test, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    record = json.loads((tmp_path / "out/calibration.json").read_text())
    assert {*record["images"]} == names(unseen[3:])


def test_a_share_is_kept_aside_by_names_alone() -> None:
    samples = [Sample(f"im{i}", Path(f"im{i}.jpg"), Path(f"im{i}.png")) for i in range(2000)]
    trained = select_samples(samples, limit=None, calibrate=0.1)
    aside = {*samples} - {*trained}
    assert 160 < len(aside) < 240
    assert {*select_samples(samples[::-1], limit=None, calibrate=0.1)} == {*trained}
    fewer = [sample for sample in samples if sample.name != "im7"]  # the others do not change sides
    assert {*select_samples(fewer, limit=None, calibrate=0.1)} == {*trained} - {samples[7]}
    assert {*select_samples(samples, limit=300, calibrate=0.1)} <= {*trained}
    assert {*trained} >= {*select_samples(samples, limit=None, calibrate=0.2)}
    assert select_samples(samples, limit=None, calibrate=0.0) == tuple(samples)
    assert {s.name for s in aside} == {s.name for s in samples if name_order(s.name) < 0.1}


def test_a_run_that_kept_a_share_aside_is_calibrated_on_it(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data", 40)
    record = train_tiny(data, tmp_path / "run", "train.calibrate=0.7", "train.epochs=1", "train.batch=4")
    fitted = calibrate_run(tmp_path / "run")
    aside = {sample.name for sample in open_dataset(data).samples if name_order(sample.name) < 0.7}
    assert {*fitted.images} == aside
    assert record["images"] == 40 - len(aside)
    assert "calibrate = 0.7" in (tmp_path / "run/recipe.toml").read_text()


# -------------------------------------------------------------------------------- what a run stores


def test_the_two_numbers_are_stored_with_the_network(world: Path) -> None:
    before = content(world / "run")
    result = run("calibrate", world / "run", "--limit", 20)
    assert result.exit_code == 0, result.stderr
    record = json.loads((world / "run/calibration.json").read_text())
    stored = Calibration(record["temperature"], record["shift"])
    assert result.stdout.endswith(f"{stored}: stored with the network in {world / 'run'}\n")
    assert "SI-ECE" in result.stdout
    for loaded in (load_network(world / "run"), networks.from_pretrained(world / "run")):
        assert loaded.calibration == stored
    assert json.loads((world / "run/config.json").read_text())["calibration"] == stored.to_json()
    changed = {name for name, data in content(world / "run").items() if before.get(name) != data}
    assert {Path(name).name for name in changed} == {
        "calibration.json", "config.json", "model.safetensors"
    }  # fmt: skip
    assert len(record["images"]) == 20
    assert record["after"]["bce"] < record["before"]["bce"]  # one epoch: far from calibrated
    assert len(record["reliability"]["after"]["objects"]["weights"]) == 15


def test_calibrating_again_gives_the_same_bytes(world: Path, trained: Path) -> None:
    for out in ("a", "b"):
        run("calibrate", trained / "run", "--out", world / out)
    assert (world / "a/calibration.json").read_bytes() == (world / "b/calibration.json").read_bytes()
    assert load_network(trained / "run").calibration is None
    same_weights(world / "a", trained / "run")
    assert "is calibrated already" not in run("calibrate", world / "run").stderr
    again = refusal("calibrate", world / "run")
    assert "run' is calibrated already (temperature " in again
    assert "; use --overwrite to calibrate it again, or --out for a copy" in again
    assert run("calibrate", world / "run", "--overwrite").exit_code == 0  # on the raw logits
    first, second = (json.loads((world / f / "calibration.json").read_text()) for f in ("a", "run"))
    assert first == second
    assert run("calibrate", trained / "run", "--out", world / "a").exit_code == 1
    assert run("calibrate", trained / "run", "--out", world / "a", "--overwrite").exit_code == 0


def test_the_fit_is_that_of_the_logits_at_the_size_of_the_masks(world: Path, trained: Path) -> None:
    fitted = calibrate_run(world / "run", batch=5)
    network = load_network(trained / "run")
    images = []
    by_name = {sample.name: sample for sample in open_dataset(trained / "data").samples}
    for name in fitted.images:
        mask = read_truth(by_name[name])
        x = torch.from_numpy(resize(read_image(by_name[name]), 32).transpose(2, 0, 1)[None].copy())
        [logits] = predict_logits(network, x, [mask.shape])
        images.append((name, logits.numpy(), mask))
    expected = fit_images(images)
    assert fitted.calibration.shift == pytest.approx(expected.calibration.shift, abs=2e-3)
    assert fitted.before.bce == pytest.approx(expected.before.bce, abs=1e-6)


def test_the_figure(trained: Path, tmp_path: Path) -> None:
    arguments = ("--objective", "mae", "--out", tmp_path / "out", "--plot", tmp_path / "a.svg")
    result = run("calibrate", trained / "run", *arguments)
    assert result.exit_code == 0, result.stderr
    drawn = (tmp_path / "a.svg").read_text()
    for text in ("predicted probability", "pixels, every image alike", "objects, every frame alike"):
        assert text in drawn
    record = json.loads((tmp_path / "out/calibration.json").read_text())
    assert f"after {record['after']['ece']:.4f}" in drawn
    assert record["objective"] == "mae"


# ------------------------------------------------------------------------------------------- refusals


def test_runs_that_are_refused(world: Path, trained: Path) -> None:
    def refused(*words: str | Path | int) -> str:
        message = error_message(run("calibrate", *words), exit_codes=(1, 2))
        check_one_sentence(f"error: {message}")
        return message

    assert refused(world / "run", "--masks", world).startswith("--masks needs --data")
    assert "expected a name ending in .pdf" in refused(world / "run", "--plot", "p.txt")
    assert "maps' is not a run of 'sisod train'; expected its folder" in refused(world / "maps")
    assert refused(world / "run", "--limit", 19) == "limit must be at least 20, got 19"
    other = write_data(world / "other", 4)
    lost = refused(world / "run", "--data", other)
    assert "8 images that" in lost
    assert lost.endswith("; give the data set of the training with --data")
    record = json.loads((world / "run/images.json").read_text())
    record["trained"] = [sample.name for sample in open_dataset(trained / "data").samples]
    (world / "run/images.json").write_text(json.dumps(record))
    assert refused(world / "run").startswith(
        "0 images are too few to calibrate on; expected at least 20"
    )
    (world / "run/images.json").write_text("{")
    assert "images.json' is not a JSON file" in refused(world / "run")
    (world / "run/model.safetensors").unlink()
    assert "run' has no network yet, because its training is not finished" in refused(world / "run")


# ----------------------------------------------------------------------------------------- experiments


def test_raw_and_calibrated_rows_of_one_run(tmp_path: Path) -> None:
    data, test = write_data(tmp_path / "data", 32), write_data(tmp_path / "test", 3)
    raw = Experiment(
        "raw",
        find_recipe("tiny", [*SMALL, "train.epochs=1"]),
        TrainingRequest(data=data, out=tmp_path / "out/runs/first", limit=8),
        (open_dataset(test),),
        {"default": ("mae", "auc")},
        out=tmp_path / "out",
    )
    before = run_experiment(raw, Machine(devices="1", workers=0), jobs=1)["test", "default"].summary
    for _ in range(2):  # the copy is written once
        calibrated = calibrate(raw, "calibrated")
        after = score_experiment(calibrated, jobs=1)["test", "default"]
        assert after.summary["mae"] < before["mae"]
    copy = networks.from_pretrained(tmp_path / "out/calibrated/calibrated")
    assert copy.calibration is not None
    assert after.run["inputs"]["calibration"] == copy.calibration.to_json()
    assert networks.from_pretrained(raw.training.out).calibration is None
    with pytest.raises(InputError, match=r"^0 images are too few to calibrate on"):
        calibrate(replace(raw, tests=(open_dataset(data),)), "nothing")


def test_a_stopped_run_is_still_whole(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of weights decides, and it is replaced last."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sisod.training.calibration.runs.save_network", stop)
    assert run("calibrate", world / "run").exit_code == 130
    assert load_network(world / "run").calibration is None
    assert networks.from_pretrained(world / "run").calibration is None
