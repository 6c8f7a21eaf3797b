"""A training run -> its network, calibrated on images of its data set that it was not trained on."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from sisod.common import run_folder
from sisod.common.arguments import check_int
from sisod.common.exceptions import InputError, InputWarning, shorten_list
from sisod.common.output import json_bytes, lock, readable_errors, resolve_link, write_atomically
from sisod.common.streams import progress_bar
from sisod.common.version import __version__
from sisod.data.datasets import Dataset, Sample, join_datasets, open_dataset
from sisod.data.pairs import find_photographs
from sisod.data.storage import is_local_root
from sisod.networks.checkpoints import WEIGHTS_FILE, unfinished_message
from sisod.networks.network import Network
from sisod.networks.predict import (
    DEFAULT_SIZE,
    check_memory,
    find_device,
    predict_logits,
    weights_digest,
)
from sisod.networks.saved import load_network
from sisod.training.calibration.fit import (
    LEAST_IMAGES,
    FittedCalibration,
    Named,
    Objective,
    check_number_of_images,
    fit_images,
)
from sisod.training.data import (
    check_samples,
    file_digest,
    image_digest,
    name_order,
    read_image,
    read_truth,
    to_input,
)
from sisod.training.trainer import KIND as TRAINING
from sisod.training.trainer import read_images, save_network

CALIBRATION_FILE = "calibration.json"
KIND = "calibration"
DEFAULT_LIMIT = 500


def calibrate_run(
    run: str | Path,
    *,
    data: str | Path | None = None,
    masks: str | Path | None = None,
    objective: Objective = "bce",
    limit: int | None = DEFAULT_LIMIT,
    tests: Sequence[str | Path] = (),
    batch: int = 8,
    device: str = "auto",
    factory: str | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
) -> FittedCalibration:
    """Fit temperature and shift of a run's network on images that it was not trained on; store them.

    Args:
        run: folder of `sisod train`.
        data: the data set of the training; by default where the training found it.
        masks: folder of masks, if `data` is a folder of images.
        objective: `"bce"` or `"mae"`.
        limit: most images to fit on, chosen by their names alone; None for all.
        tests: folders or containers of images that are not used, nor copies of their files.
        batch: images per batch.
        device: as for `predict_folder`.
        factory: as for `networks.from_pretrained`.
        out: folder for a calibrated copy of the network; by default it is stored in the run.
        overwrite: replace an earlier calibration.

    Returns:
        The calibration and its effect on images that it was not fitted on.

    Raises:
        InputError: `run` is no finished run or is calibrated already; its data set is no longer where
            it was; fewer than 20 images are left; or the fit fails, see `fit_images`.
    """
    run = Path(run)
    batch = check_int("batch", batch, least=1)
    if run_folder.read_run(run).get("kind") != TRAINING:
        raise InputError(f"{str(run)!r} is not a run of 'sisod train'; expected its folder")
    if not run_folder.read_run(run).get("finished") or not (run / WEIGHTS_FILE).is_file():
        raise InputError(unfinished_message(run))
    network = load_network(run, factory=factory)
    if out is None and network.calibration is not None and not overwrite:
        raise InputError(
            f"{str(run)!r} is calibrated already ({network.calibration}); use --overwrite to calibrate "
            "it again, or --out for a copy"
        )
    config = {"objective": objective, "weights": weights_digest(network)}
    with _open_folder(run, None if out is None else Path(out), config, overwrite=overwrite) as folder:
        samples = calibration_samples(run, _open_data(run, data, masks), limit=limit, tests=tests)
        size = (network.input_size or DEFAULT_SIZE)[0]
        check_memory(batch, (size, size), advice="lower --batch")
        network.to(find_device(device)).eval()
        fitted = fit_images(_predicted(network, samples, size=size, batch=batch), objective)
        network.calibration = fitted.calibration
        record = {"sisod": __version__, **fitted.to_json(), "size": size, "weights": config["weights"]}
        write_atomically(folder / CALIBRATION_FILE, json_bytes(record))
        # the file of weights is replaced last; it alone decides what `predict` applies
        save_network(network.to("cpu"), folder)
    return fitted


@contextmanager
def _open_folder(
    run: Path, out: Path | None, config: dict[str, Any], *, overwrite: bool
) -> Iterator[Path]:
    """Yield the folder to write to: that of the run, or the one of a copy that appears at the end."""
    if out is None:
        folder = resolve_link(run)
        with readable_errors(folder / "x", "free some space and try again"), lock(folder):
            yield folder
        return
    with run_folder.open_run(out, kind=KIND, config=config, overwrite=overwrite, inputs=(run,)) as copy:
        copy.begin()
        yield copy.path
        copy.finish()


def _open_data(run: Path, data: str | Path | None, masks: str | Path | None) -> Dataset:
    """Open the data set of a training, where it was or where it is now."""
    if data is not None:
        return open_dataset(data, masks=masks)
    stored = read_images(run)
    folders = [(stored.images, stored.masks), *stored.others]
    if not all(is_local_root(Path(root)) for pair in folders for root in pair):
        raise InputError(
            f"the data set of the training is no longer at {stored.images!r}; name it with --data"
        )
    return join_datasets([open_dataset(images, masks=masks) for images, masks in folders])


def calibration_samples(
    run: Path,
    dataset: Dataset,
    *,
    limit: int | None = DEFAULT_LIMIT,
    tests: Sequence[str | Path] = (),
) -> tuple[Sample, ...]:
    """Return the images to calibrate on: usable, neither trained on nor in `tests`, at most `limit`.

    They are taken by a hash of their names, so the choice depends neither on their order nor on a seed.
    An image is in `tests` if a file there has the same bytes, under any name, also in a container.
    """
    if limit is not None:
        check_int("limit", limit, least=LEAST_IMAGES)
    tested = {file_digest(root, file.path) for root in tests for file in find_photographs(root).values()}
    candidates = unseen_images(run, dataset)
    unseen = [one for one in candidates if not tested or image_digest(one) not in tested]
    n_images, n_tested = len(dataset.samples), len(candidates) - len(unseen)
    advice = (
        f"{n_images - len(candidates)} of the {n_images} images were trained on"
        + (f" and {n_tested} others are test images" if n_tested else "")
        + "; train with --limit, or with --set train.calibrate=0.1, so that more are left"
    )
    check_number_of_images(len(unseen), advice)
    in_order = sorted(unseen, key=lambda sample: (name_order(sample.name), sample.name))
    checked = check_samples(in_order[:limit], skip_bad=True)
    if bad := checked.problems:
        warnings.warn(f"{len(bad)} images are left out: {bad[0]}", InputWarning, stacklevel=2)
    check_number_of_images(len(checked.samples), advice)
    return checked.samples


def unseen_images(run: Path, dataset: Dataset) -> tuple[Sample, ...]:
    """Return the images of the training data set that a run was not trained on.

    Args:
        run: folder of `sisod train`.
        dataset: of the training, where it is now.

    Raises:
        InputError: an image that was trained on is not in the data set, in which images are known by
            their names.
    """
    trained = set(read_images(run).trained)
    lost = sorted(trained - {sample.name for sample in dataset.samples})
    if lost:
        raise InputError(
            f"{len(lost)} of the {len(trained)} images that {str(run)!r} was trained on are not in "
            f"{str(dataset.image_dir)!r} ({shorten_list(lost)}); give the data set of the training "
            "with --data"
        )
    return tuple(sample for sample in dataset.samples if sample.name not in trained)


def _predicted(network: Network, samples: Sequence[Sample], *, size: int, batch: int) -> Iterator[Named]:
    """Yield name, logits and mask of every image."""
    with progress_bar("calibrating", len(samples)) as advance:
        for begin in range(0, len(samples), batch):
            chunk = samples[begin : begin + batch]
            masks = [read_truth(sample) for sample in chunk]
            images = torch.stack([to_input(read_image(sample), size) for sample in chunk])
            logits = predict_logits(network, images, [mask.shape for mask in masks])
            for sample, values, mask in zip(chunk, logits, masks, strict=True):
                yield sample.name, values.float().cpu().numpy(), mask
            advance(len(chunk))
