"""What saved results lack, and how to get it: sentences for figures, the page and the terminal."""

from collections.abc import Sequence

from sisod.analysis.object_counts import no_predicted_objects
from sisod.common.exceptions import shorten_list
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result, datasets_of

_NO_CURVE = (
    "the curve was not evaluated, so only the threshold 0.5 is shown; evaluate again with "
    "--metrics all, or with object_ap among the metrics"
)


def has_curve(evaluation: Evaluation) -> bool:
    """Say whether objects were counted at every threshold."""
    return evaluation.counts is not None and "curve_found" in evaluation.counts.columns


def require_counts(results: Sequence[Result], what: str) -> None:
    """Raise if none of the results has predicted objects.

    Args:
        results: saved results.
        what: what cannot be drawn then, for the message.
    """
    if all(result.evaluation.counts is None for result in results):
        raise no_predicted_objects(results[0].evaluation, what)


def missing_curves(results: Sequence[Result], keys: Sequence[str]) -> list[str]:
    """Say which results lack columns of the curve table.

    Args:
        results: saved results.
        keys: of the columns, such as `precision`.

    Returns:
        A sentence for each reason, with the names of the results if it is not true of all.
    """
    reasons: list[tuple[Result, str]] = []
    for result in results:
        advice = "evaluate again with --metrics all, or with {}_mean among them"
        if result.evaluation.protocol.released_code:
            advice = "evaluate again under another protocol; those of released code have no such curve"
        missing = [key for key in keys if key not in ("threshold", *result.evaluation.curves.columns)]
        reasons += [(result, f"{key} was not evaluated; {advice.format(key)}") for key in missing]
    return _sentences(results, reasons)


def missing_objects(results: Sequence[Result], *, curves: bool) -> list[str]:
    """Say which results have no predicted objects.

    Args:
        results: saved results.
        curves: whether to say as well which have them at the threshold 0.5 only.
    """
    reasons = []
    for result in results:
        if result.evaluation.counts is None:
            name = result.evaluation.protocol.name
            reasons.append((result, f"the protocol {name!r} has no predicted objects"))
        elif curves and not has_curve(result.evaluation):
            reasons.append((result, _NO_CURVE))
    return _sentences(results, reasons)


def missing_errors(results: Sequence[Result]) -> list[str]:
    """Say which results have no error breakdown."""
    without = [result for result in results if result.evaluation.counts is None]
    reasons = [(one, str(no_predicted_objects(one.evaluation, "error breakdown"))) for one in without]
    return _sentences(results, reasons)


def _sentences(results: Sequence[Result], reasons: Sequence[tuple[Result, str]]) -> list[str]:
    """Each reason once, after the results that it is true of if it is not true of all."""
    several = len(datasets_of(results)) > 1
    names: dict[str, list[str]] = {}
    for result, reason in reasons:
        name = f"{result.method} on {result.dataset}" if several else result.method
        names.setdefault(reason, []).append(name)
    return [
        reason if len(found) == len(results) else f"{shorten_list(found)}: {reason}"
        for reason, found in names.items()
    ]
