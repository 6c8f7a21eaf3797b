"""What saved results lack, and how to get it: sentences for figures, the page and the terminal."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from sisod.analysis.error_breakdown import has_errors, why_no_errors
from sisod.common.exceptions import pluralize, shorten_list
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result, datasets_of
from sisod.report.objects import has_curve
from sisod.scoring.metrics import METRICS


def missing_curves(results: Sequence[Result], keys: Sequence[str]) -> list[str]:
    """Say which results lack columns of the curve table, such as `precision`."""

    def reasons(result: Result) -> Iterable[str]:
        advice = "evaluate again with --metrics all, or with {}_mean among them"
        if result.evaluation.protocol.released_code:
            advice = "evaluate again under another protocol; those of released code have no such curve"
        columns = ("threshold", *result.evaluation.curves.columns)
        return [f"{key} was not evaluated; {advice.format(key)}" for key in keys if key not in columns]

    return _sentences(results, reasons)


def missing_objects(results: Sequence[Result], *, curves: bool) -> list[str]:
    """Say which results have no predicted objects; with `curves`, also which have no curve of them."""

    def reasons(result: Result) -> Iterable[str]:
        if result.evaluation.counts is None:
            return [f"the protocol {result.evaluation.protocol.name!r} has no predicted objects"]
        if curves and not has_curve(result.evaluation):
            return [
                "the curve was not evaluated, so only the threshold 0.5 is shown; evaluate again with "
                "--metrics all, or with object_ap among the metrics"
            ]
        return []

    return _sentences(results, reasons)


def missing_errors(results: Sequence[Result]) -> list[str]:
    """Say which results have no error breakdown."""

    def reasons(result: Result) -> Iterable[str]:
        return [] if has_errors(result.evaluation) else [why_no_errors(result.evaluation)]

    return _sentences(results, reasons)


def _sentences(results: Sequence[Result], reasons: Callable[[Result], Iterable[str]]) -> list[str]:
    """Each reason once, after the results that it is true of if it is not true of all."""
    several = len(datasets_of(results)) > 1
    names: dict[str, list[str]] = {}
    for result in results:
        name = f"{result.method} on {result.dataset}" if several else result.method
        for reason in reasons(result):
            names.setdefault(reason, []).append(name)
    return [
        reason if len(found) == len(results) else f"{shorten_list(found)}: {reason}"
        for reason, found in names.items()
    ]


def dataset_notes(evaluations: Mapping[str, Evaluation]) -> list[str]:
    """Say what makes the results of a data set undefined, incomplete or special."""
    first = next(iter(evaluations.values()))
    notes = []
    if first.images.height == 1:
        notes.append("one image: there are no intervals, and no difference can be decided")
    if first.objects.height == 0:
        notes.append("no image has an object: most metrics are undefined")
    elif int(first.images["n_objects"].to_numpy().max()) < 2:
        notes.append(
            "no image has more than one object: the data set cannot show how objects of one image "
            "are weighted"
        )
    for method, evaluation in evaluations.items():
        undefined = [
            METRICS[key].title
            for key, value in evaluation.summary.items()
            if math.isnan(value) and METRICS[key].family.kind != "objects"  # they have their own section
        ]
        if undefined:
            more = f" and {len(undefined) - 6} more" if len(undefined) > 6 else ""
            notes.append(f"{method}: undefined on every image: {', '.join(undefined[:6])}{more}")
        inputs = evaluation.run.get("inputs", {})
        if missing := len(inputs.get("missing", [])):
            verb = "was" if missing == 1 else "were"
            notes.append(
                f"{method}: {pluralize(missing, 'image')} had no prediction and {verb} left out"
            )
        if calibration := inputs.get("calibration"):
            notes.append(
                f"{method}: calibrated maps, temperature {calibration['temperature']:g}, "
                f"shift {calibration['shift']:+g}"
            )
    return notes
