"""A training run -> its network, calibrated on images of its data set that it was not trained on."""

import hashlib
import json
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from sisod.common import folders
from sisod.common.arguments import check_whole
from sisod.common.errors import InputError, InputWarning, shorten_list
from sisod.common.output import followed, lock, readable_errors, write_atomically
from sisod.common.progress import progress_bar
from sisod.common.version import __version__
from sisod.data.datasets import Dataset, Sample, open_dataset, visible_photographs
from sisod.data.images import read_content, resize
from sisod.data.storage import is_local_root
from sisod.networks.checkpoints import write_state
from sisod.networks.memory import check_memory, memory_errors
from sisod.networks.network import WEIGHTS_FILE, Network
from sisod.networks.predict import (
    DEFAULT_SIZE,
    RECIPE_FILE,
    find_device,
    load_network,
    predict_logits,
    trained_size,
    weights_digest,
)
from sisod.networks.saved import unfinished_message
from sisod.training.calibration.fit import Objective
from sisod.training.calibration.report import (
    FittedCalibration,
    Named,
    check_limit,
    check_number_of_images,
    fit_images,
)
from sisod.training.data import (
    check_samples,
    choose_by_name,
    read_image,
    read_truth,
    select_samples,
)
from sisod.training.run_folder import IMAGES_FILE, read_record

CALIBRATION_FILE = "calibration.json"
KIND = "calibration"
DEFAULT_LIMIT = 500
_CONFIG_FILE = "config.json"


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
    """
    run = Path(run)
    batch = check_whole("batch", batch, least=1)
    network = load_run(run, factory)
    if out is None and network.calibration is not None and not overwrite:
        raise InputError(
            f"{str(run)!r} is calibrated already ({network.calibration}); use --overwrite to calibrate "
            "it again, or --out for a copy"
        )
    if out is not None:
        check_copy(Path(out), run, overwrite=overwrite)
    dataset = open_run_data(run, data, masks)
    samples = calibration_samples(run, dataset, limit=limit, tests=tests)
    size = trained_size(run) or DEFAULT_SIZE
    fitted = fit_network(network, samples, objective, size=size, batch=batch, device=device)
    network.calibration = fitted.calibration
    record = {
        "sisod": __version__,
        **fitted.to_json(),
        "size": size,
        "weights": weights_digest(network),
    }
    _store(network, record, run, None if out is None else Path(out), overwrite=overwrite)
    return fitted


def is_calibrated_copy(folder: Path, run: Path, objective: Objective) -> bool:
    """Tell whether a folder holds the network of a run, as it is now, calibrated to an objective."""
    try:
        record = json.loads((folder / CALIBRATION_FILE).read_text(encoding="utf-8"))
        stored = record["objective"], record["weights"]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return stored == (objective, weights_digest(load_run(run))) and (folder / WEIGHTS_FILE).is_file()


def load_run(run: Path, factory: str | None = None) -> Network:
    """Return the network of a finished run; refuse a folder that is none."""
    record = read_record(run)
    if record is None:
        raise InputError(
            f"{str(run)!r} is not a run of 'sisod train'; expected its folder, or two folders, of maps "
            "and of ground truths"
        )
    if not record.get("finished") or not (run / WEIGHTS_FILE).is_file():
        raise InputError(unfinished_message(run))
    return load_network(run, factory=factory)


def open_run_data(run: Path, data: str | Path | None, masks: str | Path | None) -> Dataset:
    """Open the data set of a training, where it was or where it is now."""
    if data is not None:
        return open_dataset(data, masks=masks)
    images = _read_images(run)
    image_dir = Path(images["images"] if images else _asked(run)["data"])
    mask_dir = Path(images["masks"]) if images else None
    if not is_local_root(image_dir) or (mask_dir is not None and not is_local_root(mask_dir)):
        raise InputError(
            f"the data set of the training is no longer at {str(image_dir)!r}; name it with --data"
        )
    if mask_dir is not None:
        return open_dataset(image_dir, masks=mask_dir)
    return open_dataset(image_dir.parent, prefer=())


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
    check_limit(limit)
    candidates = unseen_images(run, dataset)
    unseen = _without(candidates, tests) if tests else candidates
    n_images, n_tested = len(dataset.samples), len(candidates) - len(unseen)
    tested = f" and {n_tested} others are test images" if n_tested else ""
    advice = (
        f"{n_images - len(candidates)} of the {n_images} images were trained on{tested}; train with "
        "--limit, or with --set train.calibrate=0.1, so that more are left"
    )
    check_number_of_images(len(unseen), advice)
    usable, problems = check_samples(choose_by_name(unseen, limit), skip_bad=True)
    if problems:
        warnings.warn(f"{len(problems)} images are left out: {problems[0]}", InputWarning, stacklevel=2)
    check_number_of_images(len(usable), advice)
    return usable


def _without(samples: Sequence[Sample], tests: Sequence[str | Path]) -> list[Sample]:
    """Return the samples whose image is no copy of an image in `tests`."""
    tested = {_digest(root, file.path) for root in tests for file in visible_photographs(root).values()}
    return [
        sample for sample in samples if _digest(sample.image.parent, sample.image.name) not in tested
    ]


def _digest(root: str | Path, path: str) -> bytes:
    return hashlib.sha256(read_content(root, path)).digest()


def unseen_images(run: Path, dataset: Dataset) -> tuple[Sample, ...]:
    """Return the images of the training data set that a run was not trained on.

    Images are known by their names: every image that was trained on must be in the data set. A run of
    an older version recorded only how many there were; if the data set is in the same folder, they are
    selected again, with a warning.
    """
    images = _read_images(run)
    if images is not None:
        trained = set(images["trained"])
        lost = sorted(trained - {sample.name for sample in dataset.samples})
        if lost:
            raise InputError(
                f"{len(lost)} of the {len(trained)} images that {str(run)!r} was trained on are not in "
                f"{str(dataset.image_dir)!r} ({shorten_list(lost)}); give the data set of the training "
                "with --data"
            )
    else:
        trained = _selected_again(run, dataset)
    return tuple(sample for sample in dataset.samples if sample.name not in trained)


def _selected_again(run: Path, dataset: Dataset) -> set[str]:
    """Return the names of the images that an older version trained on, from their number."""
    asked, record = _asked(run), folders.read_run(run)
    if str(dataset.image_dir.resolve()) != asked["data"]:
        raise InputError(
            f"{str(run)!r} was trained by an older version, which recorded no names of images, on "
            f"{asked['data']!r}; give that folder, got {str(dataset.image_dir)!r}"
        )
    n_selected = int(asked["images"]) + len(record.get("skipped", []))
    if n_selected > len(dataset.samples):
        raise InputError(
            f"{str(run)!r} was trained on {n_selected} images, but {str(dataset.image_dir)!r} has "
            f"{len(dataset.samples)}, so which ones is not known; restore the data set, or train again"
        )
    warnings.warn(
        f"{str(run)!r} did not record which {n_selected} images it was trained on; they are selected "
        f"again from {asked['data']!r}, which is right if no image was added or removed since",
        InputWarning,
        stacklevel=2,
    )
    share = asked["settings"]["train"]["calibrate"]
    selected = select_samples(dataset.samples, limit=n_selected, calibrate=share)
    return {sample.name for sample in selected}


def fit_network(
    network: Network,
    samples: Sequence[Sample],
    objective: Objective,
    *,
    size: int,
    batch: int = 8,
    device: str = "auto",
) -> FittedCalibration:
    """Fit a calibration to the logits of a network, at the size of the masks."""
    torch_device = find_device(device)
    check_memory(network, batch=batch, height=size, width=size, advice="lower --batch")
    network.to(torch_device).eval()
    with memory_errors(f"a batch of {batch} images of {size} x {size}"):
        return fit_images(_predicted(network, samples, size=size, batch=batch), objective)


def _predicted(network: Network, samples: Sequence[Sample], *, size: int, batch: int) -> Iterator[Named]:
    """Yield name, logits and mask of every image."""
    with progress_bar("calibrating", len(samples)) as advance:
        for begin in range(0, len(samples), batch):
            chunk = samples[begin : begin + batch]
            masks = [read_truth(sample) for sample in chunk]
            images = torch.stack(
                [
                    torch.from_numpy(resize(read_image(sample), size).transpose(2, 0, 1).copy())
                    for sample in chunk
                ]
            )
            logits = predict_logits(network, images, [mask.shape for mask in masks])
            for sample, values, mask in zip(chunk, logits, masks, strict=True):
                yield sample.name, values.float().cpu().numpy(), mask
            advance(len(chunk))


def check_copy(out: Path, run: Path, *, overwrite: bool) -> None:
    """Refuse an output folder that may not be written, before anything slow starts."""
    folders.check_free(followed(out), kind=KIND, overwrite=overwrite, inputs=(run,))


def _store(
    network: Network, record: dict[str, Any], run: Path, out: Path | None, *, overwrite: bool
) -> None:
    """Write the calibrated network and its record.

    The file of weights is replaced last and atomically; it alone decides what `predict` applies.
    """
    network.to("cpu")
    text = (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()
    with ExitStack() as stack:
        if out is None:
            folder = followed(run)
            stack.enter_context(readable_errors(folder / "x", "free some space and try again"))
            stack.enter_context(lock(folder))
        else:
            writing = folders.write_folder(out, kind=KIND, overwrite=overwrite, inputs=(run,))
            folder = stack.enter_context(writing)
            if (run / RECIPE_FILE).is_file():  # says the size for `predict`
                shutil.copyfile(run / RECIPE_FILE, folder / RECIPE_FILE)
        write_atomically(folder / CALIBRATION_FILE, text)
        config = json.dumps(network.config(), indent=2, sort_keys=True).encode()
        write_atomically(folder / _CONFIG_FILE, config)
        write_state(folder / WEIGHTS_FILE, network.state_dict(), network.config())


def _asked(run: Path) -> dict[str, Any]:
    record = read_record(run)
    assert record is not None  # noqa: S101  (checked by `load_run`)
    asked: dict[str, Any] = record["asked"]
    return asked


def _read_images(run: Path) -> dict[str, Any] | None:
    """Return the content of images.json; None if an older version wrote the run."""
    path = run / IMAGES_FILE
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        names = [content["images"], content["masks"], *content["trained"]]
        if not all(isinstance(name, str) for name in names):
            raise TypeError
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise InputError(
            f"{str(path)!r} is damaged, so the images that were trained on are not known; restore it, "
            "or train again"
        ) from None
    return {"images": names[0], "masks": names[1], "trained": names[2:]}
