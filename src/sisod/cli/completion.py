"""Values that the shell completes: names of protocols, metrics, networks, recipes and figures.

Nothing here imports PyTorch or matplotlib: a completion must be quick.
"""

from collections.abc import Iterable
from contextlib import suppress


def protocols(incomplete: str) -> list[str]:
    """Return the protocols that begin like this."""
    from sisod.scoring.protocols import PROTOCOLS

    return _beginning(incomplete, PROTOCOLS)


def metrics(incomplete: str) -> list[str]:
    """Return the metrics that begin like the last of a list with commas.

    Example:
        >>> metrics("mae,si_ma")
        ['mae,si_mae']
    """
    from sisod.scoring.metrics import METRIC_SETS, METRICS

    listed, comma, last = incomplete.rpartition(",")
    names = METRICS if comma else (*METRIC_SETS, "all", *METRICS)
    return [f"{listed}{comma}{name}" for name in _beginning(last, names)]


def scores(incomplete: str) -> list[str]:
    """Return the scores of figures that begin like this."""
    from sisod.scoring.metrics import METRICS

    return _beginning(incomplete, ("found", *METRICS))


def networks(incomplete: str) -> list[str]:
    """Return the networks that begin like this."""
    from sisod.networks.registry import names

    return _beginning(incomplete, names())


def recipes(incomplete: str) -> list[str]:
    """Return the recipes that begin like this; without PyTorch there are none."""
    with suppress(ImportError):
        from sisod.training.recipe import names

        return _beginning(incomplete, names())
    return []


def figures(incomplete: str) -> list[str]:
    """Return the figures that begin like this."""
    from sisod.report.gallery import figure_names

    return _beginning(incomplete, figure_names())


def _beginning(start: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(start)]
