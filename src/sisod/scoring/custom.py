"""Metrics of the user's own: a function of p and gt, with a key, a title and a better direction.

They have entries in `METRICS` beside the built-in ones, so everything that reads a result treats both
alike. An entry of a saved result whose function is not known here can be shown, not computed.
"""

import dataclasses
import hashlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from sisod.common.arguments import check_choice, is_number, short_repr
from sisod.common.exceptions import InputError, UsageError
from sisod.common.imports import describe_error, import_attribute
from sisod.scoring.arrays import Map, Mask, Normalize, Values, unit_values
from sisod.scoring.families.family import Direction, Family
from sisod.scoring.metrics import (
    FAMILIES,
    METRIC_SETS,
    METRICS,
    Metric,
    MetricChoice,
    add_metric,
    is_custom,
)
from sisod.scoring.partition import Partition
from sisod.scoring.size_invariant import composite, frame_values, separable_form

Function = Callable[[Values, Mask], float]
Form = Literal["separable", "composite"]
_LONGEST = 60  # characters of a key or a title
# columns of tables beside the metrics, and names with a meaning of their own
_RESERVED = frozenset(
    ("all", *METRIC_SETS, "image", "height", "width", "n_objects", "alpha", "index", "y0", "x0", "y1",
     "x1", "area", "share", "fill", "touches_border", "found", "group", "low", "high", "images",
     "objects", "threshold", "method", "metric", "size_bias", "error", "missed_pixels")
)  # fmt: skip
_PREFIXES = ("si_", "n_", "object_", "rank_")  # of columns that are derived from a key


class CustomMetricError(InputError):
    """Says what a function of the user did instead of returning a number."""


@dataclass(frozen=True)
class CustomMetric:
    """A metric of your own, to be passed among `metrics` or to `register_metric`.

    Attributes:
        function: takes p, the prediction as float64 in [0, 1], stretched as the protocol says, and gt, a
            boolean array of the same shape; returns a number, NaN where the metric is undefined. Both
            arrays are read-only.
        key: name of the metric; by default the function's.
        title: heading in tables and figures; by default the key.
        direction: whether `"up"` or `"down"` is better; values of `"none"` are shown, never as the best.
        si: adds the size-invariant form, under the key `si_` + key. `"separable"` is for a mean over
            pixels: frames weigh alike and the background by alpha (Eq. 7). `"composite"` is for anything
            else: the mean over frames (Eq. 8). The function is then also called with every frame, and
            for `"separable"` with the background as a one-dimensional array.
        imported_as: `module:attribute` by which it was named, if it was.

    Example:
        >>> def largest_error(p, gt):
        ...     return float(np.abs(p - gt).max())
        >>> metric = CustomMetric(largest_error, direction="down", si="composite")
        >>> metric.keys
        ('largest_error', 'si_largest_error')
    """

    function: Function
    key: str = ""
    title: str = ""
    direction: Direction = "none"
    si: Form | None = None
    imported_as: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Fill in the names and validate everything."""
        if not callable(self.function) or isinstance(self.function, type | CustomMetric):
            raise UsageError(f"a metric must be a function of p and gt, got {short_repr(self.function)}")
        object.__setattr__(self, "key", self.key or getattr(self.function, "__name__", ""))
        object.__setattr__(self, "title", self.title or self.key)
        _check_key(self.key)
        title = self.title
        taken = {metric.title for key, metric in METRICS.items() if not is_custom(key)}
        is_line = isinstance(title, str) and title.isprintable() and 0 < len(title) <= _LONGEST
        if not is_line or title in taken:
            raise UsageError(
                f"title must be a string of 1 to {_LONGEST} characters, not that of another metric, "
                f"got {short_repr(title)}"
            )
        check_choice("direction", self.direction, get_args(Direction))
        check_choice("si", self.si, (None, *get_args(Form)))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its values: the metric, and its size-invariant form if it has one."""
        return (self.key,) if self.si is None else (self.key, f"si_{self.key}")

    @property
    def function_name(self) -> str:
        """The function as messages and results name it."""
        if self.imported_as is not None:
            return self.imported_as
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return f"{getattr(self.function, '__module__', None)}:{name}"

    def __call__(self, p: Values, gt: Mask) -> float:
        """Return the metric of these pixels; raise one sentence for anything but a number."""
        try:
            value: Any = self.function(p, gt)
        except (Exception, SystemExit) as error:
            raise CustomMetricError(
                f"{self._subject(p)} raised {describe_error(error)}; it must return NaN where it is "
                "undefined"
            ) from error
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if not is_number(value) or math.isinf(value):
            raise CustomMetricError(
                f"{self._subject(p)} returned {short_repr(value)}; expected a finite number, or NaN "
                "where it is undefined"
            )
        return float(value)

    def digest(self) -> str:
        """Return a hash of the settings and, where Python finds it, the text of the function."""
        try:
            text = inspect.getsource(self.function)
        except (OSError, TypeError):
            text = ""
        content = (self.function_name, self.title, self.direction, self.si, text)
        return hashlib.sha256(repr(content).encode()).hexdigest()[:16]

    def _subject(self, p: Values) -> str:
        return f"the metric {self.key!r} (function {self.function_name}, p of shape {p.shape})"


_REGISTERED: dict[str, CustomMetric] = {}


def register_metric(metric: CustomMetric | Function) -> tuple[str, ...]:
    """Add a metric of your own to `METRICS`, so that `metrics` can name its key.

    Args:
        metric: the metric; a function alone is a `CustomMetric` without a direction. A metric of your
            own with the same key is replaced; a built-in metric cannot be.

    Returns:
        Its keys.
    """
    if not isinstance(metric, CustomMetric):
        metric = CustomMetric(metric)
    _REGISTERED[metric.key] = metric
    family = Family(
        metric.key,
        metric.title,
        metric.direction,
        metric.function,
        "custom",
        separable=metric.si == "separable",
        size_invariant=metric.si is not None,
        on_request=True,
        per_object=metric.si is not None,
    )
    titles = metric.title, f"SI-{metric.title}"
    for key, title, si in zip(metric.keys, titles, (False, True), strict=False):
        add_metric(Metric(key, title, metric.direction, family, "", size_invariant=si))
    return metric.keys


def resolve_choice(metrics: MetricChoice) -> MetricChoice:
    """Return the same choice with keys only: functions and names `module:function` are registered."""
    if callable(metrics):
        metrics = [metrics]
    items = metrics.split(",") if isinstance(metrics, str) else metrics
    if not isinstance(items, Sequence):
        return metrics
    keys: list[Any] = []
    for item in items:
        if callable(item):
            keys += register_metric(item)
        elif isinstance(item, str) and ":" in item:
            keys += register_metric(import_metric(item))
        else:
            keys.append(item)
    return keys


def find_custom(keys: Sequence[str]) -> tuple[CustomMetric, ...]:
    """Return the metrics of the user among the keys, once each."""
    metrics = {}
    for key in filter(is_custom, keys):
        metric = _REGISTERED[METRICS[key].family.key]
        if metric.function is _not_known:
            raise UsageError(
                f"{key} is known from a saved result only, not its function; pass the function, or "
                "name it as module:function"
            )
        if key not in metric.keys:
            raise UsageError(
                f"the metric {metric.key!r} has no size-invariant form; give it one with si="
            )
        metrics[metric.key] = metric
    return tuple(metrics.values())


def custom_values(
    metrics: Sequence[CustomMetric], pred: Map, gt: Mask, partition: Partition, normalize: Normalize
) -> tuple[dict[str, float], dict[str, Values]]:
    """Return the values of an image by key, and those of its frames where there is an SI form."""
    p, truth = unit_values(pred, normalize=normalize), gt.view()
    for array in (p, truth):  # shared by all metrics
        array.flags.writeable = False
    values, of_frames = {}, {}
    for metric in metrics:
        values[metric.key] = metric(p, truth)
        if metric.si is None:
            continue
        frames = of_frames[metric.key] = frame_values(metric, p, truth, partition)
        if metric.si == "separable":
            values[f"si_{metric.key}"] = separable_form(metric, frames, p, truth, partition)
        else:
            values[f"si_{metric.key}"] = float(composite(frames))
    return values, of_frames


def import_metric(name: str) -> CustomMetric:
    """Import a metric by its name, `module:function`; this runs the code of the module.

    A module that is not installed is looked for in the current folder.
    """
    name = name.strip()
    attribute = import_attribute(name, "metric")
    if isinstance(attribute, CustomMetric):
        return dataclasses.replace(attribute, imported_as=name)
    return CustomMetric(attribute, key=name.rpartition(":")[2].rpartition(".")[2], imported_as=name)


def custom_record(metrics: Sequence[CustomMetric]) -> dict[str, Any]:
    """Return what a result must store of the user's metrics, so that others can show them."""
    return {
        metric.key: {
            "title": metric.title,
            "direction": metric.direction,
            "si": metric.si,
            "function": metric.function_name,
        }
        for metric in metrics
    }


def add_stored(record: Mapping[str, Mapping[str, Any]]) -> None:
    """Add the user's metrics of a saved result to `METRICS`, unless this process defines them itself."""
    for key, stored in record.items():
        settings = {name: stored[name] for name in ("title", "direction", "si")}
        metric = CustomMetric(_not_known, key=key, **settings)
        known = _REGISTERED.setdefault(key, metric)
        if known is metric:
            register_metric(metric)
        elif known.function is _not_known and known != metric:
            raise UsageError(
                f"the metric {key!r} has other settings than in a result that was loaded before; say "
                "which hold with sisod.register_metric"
            )


def _not_known(p: Values, gt: Mask) -> float:  # noqa: ARG001
    # in the place of the function of a metric of a saved result; `find_custom` never returns it
    return math.nan


def _check_key(key: Any) -> None:
    is_name = isinstance(key, str) and key.isidentifier() and len(key) <= _LONGEST
    taken = {other for other in METRICS if not is_custom(other)} | {row.key for row in FAMILIES}
    if (
        not is_name
        or key.startswith(_PREFIXES)
        or key.casefold() in _RESERVED | taken
        or f"object_{key}" in taken
    ):
        raise UsageError(
            f"the key of a metric must be a name of letters, digits and _ that sisod does not use, and "
            f"not begin with one of {', '.join(_PREFIXES)}, got {short_repr(key)}; give one with "
            "sisod.CustomMetric(function, key=...)"
        )
