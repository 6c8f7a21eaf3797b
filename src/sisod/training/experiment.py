"""One experiment: train a recipe with a loss, predict the test sets, score the predictions.

`sisod reproduce`, `ablate` and `demo` are tables of experiments. Finished steps are skipped, so the same
call continues an experiment that was interrupted.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from sisod.common.exceptions import InputError
from sisod.common.run_folder import OtherRunError, discard, read_run
from sisod.common.streams import progress_bar
from sisod.data.datasets import Dataset
from sisod.evaluation.driver import evaluate_request
from sisod.evaluation.evaluator import Evaluator
from sisod.evaluation.notes import run_notes
from sisod.evaluation.result import Evaluation
from sisod.evaluation.tasks import Folders, Options, make_request
from sisod.networks.map_folder import Bits, to_grey
from sisod.networks.network import Network
from sisod.networks.predict import predict_batch, predict_folder
from sisod.networks.saved import load_network
from sisod.scoring.metrics import MetricChoice
from sisod.training.data import read_image, read_truth, to_input
from sisod.training.recipe import Recipe
from sisod.training.train import Machine, TrainingRequest, train

Results = dict[tuple[str, str], Evaluation]  # data set, protocol -> result
Warn = Callable[[str], object]
_BITS: Bits = 16  # of maps: in 8, the best threshold of a saturated network cannot be seen


@dataclass(frozen=True)
class Experiment:
    """What decides the scores of a trained network, and where they are kept.

    Attributes:
        name: of the experiment.
        recipe: settings included. Test images are predicted at its `data.size`.
        training: data, loss, limit and run folder, as for `train`; an unfinished run is resumed.
        tests: data sets to score on.
        metrics: protocol -> its metrics, as for `sisod.score`.
        out: folder of the following, whose `{name}`, `{dataset}` and `{protocol}` are filled in.
        results: folders as `sisod evaluate` writes them.
        maps: folders as `sisod predict` writes them; None scores in memory and keeps no maps.
        criterion: a loss of your own instead of the recipe's, as for `train`.
    """

    name: str
    recipe: Recipe
    training: TrainingRequest
    tests: tuple[Dataset, ...]
    metrics: Mapping[str, MetricChoice]
    out: Path
    results: str = "results/{dataset}/{name}"
    maps: str | None = "maps/{dataset}/{name}"
    criterion: nn.Module | None = None

    def path(self, template: str, dataset: Dataset, protocol: str = "") -> Path:
        """Return the path of results or maps."""
        return self.out / template.format(name=self.name, dataset=dataset.name, protocol=protocol)


def run_experiment(
    experiment: Experiment, machine: Machine | None = None, *, jobs: int | None = None
) -> Results:
    """Train, predict and score what is not finished; return the result on every test set.

    Args:
        experiment: what to run.
        machine: as for `train`; of several processes all but the first return nothing.
        jobs: processes that score; by default one for each core.
    """
    machine = machine or Machine()
    train_experiment(experiment, machine)
    return score_experiment(experiment, jobs=jobs) if machine.is_first_process else {}


def train_experiment(experiment: Experiment, machine: Machine) -> dict[str, Any]:
    """Train or resume the network; return its record. Results of an earlier one are removed."""
    request = replace(experiment.training, resume=True)
    if machine.is_first_process and not read_run(request.out).get("finished"):
        for dataset in experiment.tests:
            for protocol in experiment.metrics:
                discard(experiment.path(experiment.results, dataset, protocol))
    return train(experiment.recipe, request, machine, criterion=experiment.criterion)


def score_experiment(
    experiment: Experiment, *, jobs: int | None = None, warn: Warn = warnings.warn
) -> Results:
    """Predict and score the test sets that are not finished; the network must have been trained.

    Args:
        experiment: what to score.
        jobs: processes that score; by default one for each core.
        warn: called with notes about the maps, such as those that were resized.

    Raises:
        InputError: a test set has an unreadable file; the others are scored first.
    """
    problems = []
    if waiting := unscored(experiment):
        factory = experiment.recipe.network.factory or None
        network = load_network(experiment.training.out, factory=factory)
        for dataset in waiting:
            try:
                _score(experiment, network, dataset, jobs, warn)
            except InputError as error:
                problems.append(f"{dataset.name} is not scored: {error}")
    if problems:
        raise InputError("; ".join(problems))
    return {
        (dataset.name, protocol): Evaluation.load(experiment.path(experiment.results, dataset, protocol))
        for dataset in experiment.tests
        for protocol in experiment.metrics
    }


def unscored(experiment: Experiment) -> list[Dataset]:
    """Return the test sets without results, or with results of another number of images."""
    return [
        dataset
        for dataset in experiment.tests
        if any(
            read_run(experiment.path(experiment.results, dataset, name)).get("images")
            != len(dataset.samples)
            for name in experiment.metrics
        )
    ]


def _score(
    experiment: Experiment, network: Network, dataset: Dataset, jobs: int | None, warn: Warn
) -> None:
    """Predict and score one test set, replacing results of other images."""
    size, metrics = experiment.recipe.data.size, experiment.metrics
    title = f"{experiment.name} on {dataset.name}"
    folders = {name: experiment.path(experiment.results, dataset, name) for name in metrics}
    if experiment.maps is None:
        results = evaluate_network(network, dataset, size=size, metrics=metrics, title=title)
        for name, folder in folders.items():
            results[name].save(folder, overwrite=True)
        return
    maps = experiment.path(experiment.maps, dataset)
    try:
        predict_folder(network, dataset.image_dir, maps, size=size, bits=_BITS, resume=True)
    except OtherRunError:  # maps of other weights
        predict_folder(network, dataset.image_dir, maps, size=size, bits=_BITS, overwrite=True)
    for name, folder in folders.items():
        roots = Folders(str(maps), str(dataset.mask_dir), gt_suffix=dataset.mask_suffix)
        request = make_request(roots, protocol=name, metrics=metrics[name])
        options = Options(jobs=jobs, overwrite=True, title=f"{title}, {name}")
        result = evaluate_request(request, options, folder)
        for note in run_notes(result.run, request):
            warn(f"{title}: {note}")


def evaluate_network(
    network: Network, dataset: Dataset, *, size: int, metrics: Mapping[str, MetricChoice], title: str
) -> dict[str, Evaluation]:
    """Score a network in memory, one result for each protocol, from maps at the masks' size.

    Args:
        network: predicts on the device that it is on.
        dataset: images and masks.
        size: side of the square input.
        metrics: protocol -> its metrics, as for `sisod.score`.
        title: of the progress bar.
    """
    evaluators = {name: Evaluator(protocol=name, metrics=keys) for name, keys in metrics.items()}
    with progress_bar(f"scoring {title}", len(dataset.samples)) as advance:
        for sample in dataset.samples:
            mask = read_truth(sample)
            image = to_input(read_image(sample), size)
            [pred] = predict_batch(network, image[None], [mask.shape])
            for evaluator in evaluators.values():
                evaluator.update(to_grey(pred, _BITS), mask, name=sample.name)
            advance(1)
    return {name: evaluator.result() for name, evaluator in evaluators.items()}
