"""The table of all metrics, and the names under which they are chosen.

To add a metric, add a row to `FAMILIES`: its keys, its size-invariant form and its position in tables
and plots follow from the row. Users add metrics of their own at run time, see `custom`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import shown, similar_names, unknown_name_message
from sisod.common.errors import UsageError
from sisod.common.grid import latex_text
from sisod.scoring import boundaries, structure
from sisod.scoring import count_metrics as counts
from sisod.scoring import object_metrics as objects
from sisod.scoring.correction_effort import human_correction_effort
from sisod.scoring.object_metrics import first_line, small
from sisod.scoring.spellings import AMBIGUOUS, FORM_SPELLINGS, SHORT_NAMES, SPELLINGS, squeeze
from sisod.scoring.weighted_f import weighted_f

Values = NDArray[np.float64]
Direction = Literal["up", "down", "none"]
# functions, and names module:function, are metrics of the user
MetricChoice = str | Sequence[str | Callable[..., float]] | Callable[..., float] | None


@dataclass(frozen=True)
class Family:
    """One metric: a row of the table.

    Attributes:
        key: its key; of a curve, `key_mean`, `key_max`, `key_adaptive`, `key_binary`.
        title: as printed in papers.
        direction: whether higher or lower is better.
        function: see `kind`.
        kind: input and output of the function: `"error"` takes a histogram and returns sums of pixel
            errors, `"curve"` and `"scalar"` take counts, `"pixels"` takes pixels and frames,
            `"objects"` takes sums of counts of objects over the images of a set. `"balanced"` takes the
            size-invariant values of a curve's binary form, and the number of true and of false objects.
            `"custom"` is a metric of the user, which takes p and gt.
        separable: a mean over pixels (Eq. 7); all others are composite (Eq. 8).
        size_invariant: whether it has a size-invariant form.
        on_request: computed only if it is named, or with `"all"`.
        per_object: the values of its frames are a column of the object table, named by the key.
        detections: exists only under protocols that count detections.
        symbol: in LaTeX's math mode; empty if papers print the title.
        trivial_max: why the maximum over thresholds says nothing about a map; empty if it does.
    """

    key: str
    title: str
    direction: Direction
    function: Callable[..., Values]
    kind: Literal["error", "curve", "scalar", "pixels", "objects", "balanced", "custom"]
    separable: bool = False
    size_invariant: bool = True
    on_request: bool = False
    per_object: bool = False
    detections: bool = False
    symbol: str = ""
    trivial_max: str = ""


def balanced(si_values: Values, n_objects: Values, n_false: Values) -> Values:
    """Mean over true and false objects alike, a false one scoring 0; the SI value without false ones."""
    share = objects.ratio(n_objects, n_objects + n_false)
    return np.where(n_objects == 0, share, si_values * share)


# metrics that need the pixels are computed on request only
_pixels = partial(Family, kind="pixels", size_invariant=False, on_request=True)
# metrics of objects are computed from sums over images, so they have no size-invariant form
_objects = partial(Family, kind="objects", size_invariant=False)
_balanced = partial(Family, direction="up", function=balanced, kind="balanced", size_invariant=False)

# balanced metric -> the family whose size-invariant binary form it starts from
BALANCED = {f"bsi_{family}_binary": family for family in ("iou", "dice", "f")}

# recall and FPR fall with the threshold, specificity rises: their maximum is one end of the curve
_LOWEST = "it is the value at the lowest threshold, where nearly every pixel is predicted"
_HIGHEST = "it is the value at the highest threshold, where hardly a pixel is predicted"
_WORST = "it is the value at the worst threshold, about 0.5, where everything or nothing is predicted"

FAMILIES = (
    Family("mae", "MAE", "down", counts.absolute_error, "error", separable=True),
    Family("mse", "MSE", "down", counts.squared_error, "error", separable=True),
    Family("f", "F", "up", counts.f_measure, "curve", symbol=r"F_\beta"),
    Family("precision", "Precision", "up", counts.precision, "curve"),
    Family("recall", "Recall", "up", counts.recall, "curve", trivial_max=_LOWEST),
    Family("iou", "IoU", "up", counts.iou, "curve"),
    Family("dice", "Dice", "up", counts.dice, "curve"),
    Family("accuracy", "Accuracy", "up", counts.accuracy, "curve", separable=True),
    Family("specificity", "Specificity", "up", counts.specificity, "curve", trivial_max=_HIGHEST),
    Family("fpr", "FPR", "down", counts.fpr, "curve", trivial_max=_LOWEST),
    Family("ber", "BER", "down", counts.ber, "curve", trivial_max=_WORST),
    Family("kappa", "Kappa", "up", counts.kappa, "curve", symbol=r"\kappa"),
    Family("e", "E", "up", counts.e_measure, "curve", symbol=r"E_\xi"),
    Family("auc", "AUC", "up", counts.auc, "scalar"),
    _pixels("s", "S", "up", structure.s_measure, size_invariant=True, symbol=r"S_\alpha"),
    _pixels("wf", "wF", "up", weighted_f, size_invariant=True, symbol=r"F_\beta^w"),
    _pixels("msiou", "MSIoU", "up", structure.multiscale_iou),
    _pixels("biou", "BIoU", "up", boundaries.boundary_iou, size_invariant=True, per_object=True),
    _pixels("mba", "MBA", "up", boundaries.mean_boundary_accuracy),
    _pixels("hce", "HCE", "down", human_correction_effort, symbol=r"\mathrm{HCE}_\gamma"),
    _pixels("nsd", "NSD", "up", boundaries.normalized_surface_distance),
    _objects("n_predicted", "Predicted objects", "none", objects.mean_count("predicted")),
    _objects("n_false", "False objects", "down", objects.mean_count("false")),
    _objects("n_found", "Found objects", "up", objects.mean_count("found")),
    _balanced("bsi_iou_binary", "BSI-IoU binary"),
    _balanced("bsi_dice_binary", "BSI-Dice binary"),
    _balanced("bsi_f_binary", "BSI-F binary"),
    _objects("object_recall", "Object recall", "up", objects.recall),
    _objects("object_precision", "Object precision", "up", objects.precision),
    _objects("object_f1", "Object F1", "up", objects.f1),
    _objects("object_recall_small", "Object recall small", "up", small(objects.recall)),
    _objects("object_precision_small", "Object precision small", "up", small(objects.precision)),
    _objects("object_f1_small", "Object F1 small", "up", small(objects.f1)),
    _objects("false_objects", "False objects per image", "down", objects.false_objects),
    _objects("false_area", "False area", "down", objects.false_area),
    _objects("pq", "PQ", "up", objects.panoptic_quality),
    _objects("sq", "SQ", "up", objects.segmentation_quality),
    _objects("rq", "RQ", "up", objects.recognition_quality),
    _objects("object_f1_max", "Object F1 max", "up", objects.f1_max, on_request=True),
    _objects("object_f1_max_small", "Object F1 max small", "up", small(objects.f1_max), on_request=True),
    _objects("object_ap", "Object AP", "up", objects.average_precision, on_request=True),
    _objects("pd", "Pd", "up", objects.detection_rate, detections=True, symbol="P_d"),
    _objects("fa", "Fa", "down", objects.false_alarm_area, detections=True, symbol="F_a"),
    _objects("niou", "nIoU", "up", objects.niou, detections=True),
    _objects("iou_total", "IoU total", "up", objects.iou_total, detections=True),
)

Form = Literal["", "mean", "max", "adaptive", "binary", "max_image", "max_frame"]
# form -> as papers print it beside a symbol, and what it is
_FORMS: dict[Form, tuple[str, str]] = {
    "": ("", ""),
    "mean": (r"\mathrm{mean}", "mean over the thresholds"),
    "max": (r"\max", "maximum of the data set's mean curve"),
    "adaptive": (r"\mathrm{adp}", "at twice the mean of the map"),
    "binary": (r"\mathrm{bin}", "at p > 0.5"),
    "max_image": (r"\max,\mathrm{image}", "maximum of each image's own curve"),
    "max_frame": (r"\max,\mathrm{frame}", "maximum of each object's own curve"),
}


@dataclass(frozen=True)
class Metric:
    """One public key: a family in one form, ordinary or size-invariant."""

    key: str
    title: str
    direction: Direction
    family: Family
    form: Form
    size_invariant: bool

    @property
    def trivial(self) -> str:
        """Why the value says nothing about a map; empty for all others."""
        return self.family.trivial_max if self.form == "max" else ""

    @property
    def better(self) -> Direction:
        """The direction by which tables mark the best; "none" also where the value is trivial."""
        return "none" if self.trivial else self.direction

    @property
    def symbol(self) -> str:
        """The name as papers print it, in LaTeX."""
        if not self.family.symbol:
            return latex_text(self.title)
        form = _FORMS[self.form][0]
        return "SI-" * self.size_invariant + f"${self.family.symbol}{form and f'^{{{form}}}'}$"

    @property
    def meaning(self) -> str:
        """What it measures, in one line."""
        parts = [first_line(self.family.function).rstrip("."), _FORMS[self.form][1]]
        if self.size_invariant and self.form != "max_frame":
            separable = "mean over the objects' frames and the background"
            parts.append(separable if self.family.separable else "mean over the objects' frames")
        return "; ".join(part for part in parts if part)


def _metric_table() -> dict[str, Metric]:
    table = {}
    for family in FAMILIES:
        for si in (False, True)[: 1 + family.size_invariant]:
            forms: tuple[Form, ...] = ("mean", "max", "adaptive", "binary")
            if family.kind != "curve":
                forms = ("",)
            elif family.key == "f":  # where the maximum is taken matters most for F
                forms = (*forms, "max_image", "max_frame") if si else (*forms, "max_image")
            for form in forms:
                key = "_".join(part for part in ("si" * si, family.key, form) if part)
                title = " ".join(part for part in ("SI-" * si + family.title, *form.split("_")) if part)
                table[key] = Metric(key, title, family.direction, family, form, si)
    return table


_TABLE = _metric_table()
METRICS: Mapping[str, Metric] = MappingProxyType(_TABLE)  # `custom.register_metric` adds to it


def add_metric(metric: Metric) -> None:
    """Add a metric to `METRICS`, or replace it."""
    _TABLE[metric.key] = metric


def is_custom(key: str) -> bool:
    """Tell whether a metric is one of the user."""
    return METRICS[key].family.kind == "custom"


# the columns of Table 1 of the paper
PAPER_KEYS = (
    "mae", "si_mae", "auc", "si_auc", "f_mean", "si_f_mean", "f_max_image", "si_f_max_frame", "e_mean",
)  # fmt: skip
# name of a choice -> its metrics; the tables that a field prints
METRIC_SETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "paper": PAPER_KEYS,
        # salient and camouflaged objects
        "sod": ("s", "wf", "e_mean", "e_max", "e_adaptive", "f_mean", "f_max", "f_adaptive", "mae"),
        # high-resolution dichotomous segmentation
        "dis": ("s", "wf", "f_max", "e_mean", "mae", "hce", "biou", "mba"),
    }
)


def named_set(keys: Collection[str]) -> tuple[str, ...] | None:
    """Return the set that these keys are, in its order; None if they are none.

    Example:
        >>> named_set(["mae", "s"]) is None
        True
    """
    return next((chosen for chosen in METRIC_SETS.values() if set(chosen) == set(keys)), None)


_COMMON_WORDS = {"mean", "binary", "adaptive", "object", "objects", "pixels", "image", "images"}


def alias_pairs() -> Iterator[tuple[str, str]]:
    """Yield every accepted spelling, as `squeeze` returns it, with its key; the keys come first.

    F and E without a form are the mean over thresholds, all other curves the value at p > 0.5.
    """
    for key in METRICS:
        if not is_custom(key):  # the user's are found under their own names only
            yield squeeze(key), key
    yield from SHORT_NAMES.items()
    for family in FAMILIES:
        names = (family.key, *SPELLINGS.get(family.key, ()))
        for si, name in product(("", "si")[: 1 + family.size_invariant], names):
            start = f"{si}_{family.key}" if si else family.key
            if family.kind != "curve":
                yield squeeze(si + name), start
                continue
            yield squeeze(si + name), f"{start}_{'mean' if family.key in ('f', 'e') else 'binary'}"
            for form, spellings in FORM_SPELLINGS.items():
                for text in spellings:
                    yield from (
                        (squeeze(si + order), f"{start}_{form}") for order in (name + text, text + name)
                    )


@lru_cache
def _aliases() -> dict[str, str]:
    return dict(reversed([*alias_pairs()]))  # where two meet, the first one counts: a key


def canonical_key(name: str) -> str:
    """Return the key of a metric that is called otherwise; an unknown name is returned as it is.

    Example:
        >>> [canonical_key(name) for name in ("S-measure", "wfm", "maxF", "SI-MAE", "em", "unheard")]
        ['s', 'wf', 'f_max', 'si_mae', 'e_mean', 'unheard']
    """
    return name if name in METRICS else _aliases().get(squeeze(name), name)


def check_metric(key: object, known: Collection[str], *, what: str = "metric") -> None:
    """Refuse a name that is none of the known keys, and suggest one."""
    if not isinstance(key, str) or key not in known:
        near = _nearest_keys(key, known) if isinstance(key, str) else ()
        raise UsageError(unknown_name_message(what, key, known, near=near, command="sisod metrics"))


def _nearest_keys(name: str, known: Collection[str]) -> Sequence[str]:
    """The keys that are usually meant, else the one with a similar alias.

    If there is none, the one whose title or meaning shares most words, if any.
    """
    usual = [key for key in AMBIGUOUS.get(squeeze(name), ()) if key in known]
    if usual:
        return usual
    aliases = {alias: key for alias, key in _aliases().items() if key in known}
    similar = similar_names(squeeze(name), aliases, cutoff=0.8)
    if similar:
        return [aliases[similar[0]]]
    words = set(re.findall(r"[a-z]{4,}", name.casefold())) - _COMMON_WORDS

    def shared(key: str) -> tuple[int, ...]:
        texts = METRICS[key].title, first_line(METRICS[key].family.function)
        return tuple(len(words.intersection(re.findall(r"[a-z]+", t.casefold()))) for t in texts)

    best = max((key for key in METRICS if key in known), key=shared, default=None)
    return [best] if best is not None and any(shared(best)) else []


def listed_keys(metrics: object, *, known: Collection[str] = ()) -> tuple[str, ...]:
    """Return the keys of a text with commas, or of a sequence of keys; other names become keys.

    Names in `known` are returned as they are.

    Example:
        >>> listed_keys("MAE, si_mae")
        ('mae', 'si_mae')
    """
    if isinstance(metrics, str):
        metrics = metrics.split(",")
    keys = tuple(metrics) if isinstance(metrics, Iterable) else ()
    if not isinstance(metrics, Iterable) or not all(isinstance(key, str) for key in keys):
        sets = ", ".join(f'"{name}"' for name in METRIC_SETS)
        raise UsageError(f'metrics must be {sets}, "all", None or a list of keys, got {shown(metrics)}')
    return tuple(key if key in known else canonical_key(key) for key in keys)


@lru_cache
def _available_keys(*, detections: bool, boxes: bool) -> tuple[dict[str, Family], tuple[str, ...]]:
    """Return all keys of a protocol, and those computed by default; see `find_metrics`."""
    families = {
        key: metric.family
        for key, metric in METRICS.items()
        if not is_custom(key)
        and (detections or not metric.family.detections)
        and (boxes or not needs_boxes(metric))
    }
    return families, tuple(key for key, family in families.items() if not family.on_request)


def needs_boxes(metric: Metric) -> bool:
    """Tell whether a metric cannot be computed on Voronoi regions."""
    return metric.size_invariant and metric.family.kind == "pixels"


def find_metrics(
    metrics: MetricChoice, *, detections: bool = False, boxes: bool = True
) -> tuple[str, ...]:
    """Return the chosen keys: None for the count metrics, `"all"`, a named set, or a list of keys.

    A list may contain `"all"` and names of `METRIC_SETS` too. `detections` says whether the protocol has
    the metrics of detected targets, `boxes` whether its frames are rectangular.

    Example:
        >>> find_metrics(["mae", "si_mae"])
        ('mae', 'si_mae')
    """
    available, by_default = _available_keys(detections=detections, boxes=boxes)
    if metrics is None:
        return by_default
    if isinstance(metrics, list | tuple) and metrics and all(type(key) is str for key in metrics):
        chosen = dict.fromkeys(metrics)
        if chosen.keys() <= available.keys():  # nearly always; the rest costs a tenth of a score
            return tuple(chosen)
    keys = listed_keys(metrics)
    sets = {"all": tuple(available), **METRIC_SETS}
    if len(keys) == 1 and keys[0] in sets:
        return sets[keys[0]]
    keys = tuple(key for name in keys for key in sets.get(name, (name,)))
    for key in keys:
        check_metric(key, METRICS)
        if key not in available and not is_custom(key):
            if needs_boxes(METRICS[key]) and not boxes:
                raise UsageError(
                    f"{key} needs rectangular frames and the protocol has Voronoi regions; choose "
                    "another protocol, or leave it out"
                )
            raise UsageError(
                f"{key} exists only under the protocol 'infrared'; choose that one, or leave it out"
            )
    if not keys:
        raise UsageError("metrics is empty; name at least one, or pass None for all count metrics")
    return tuple(dict.fromkeys(keys))


def arrow(key: str) -> str:
    """Return the arrow of the better direction."""
    return {"up": "↑", "down": "↓", "none": ""}[METRICS[key].better]
