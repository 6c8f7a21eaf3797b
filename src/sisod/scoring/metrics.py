"""The table of all metrics, and the names under which they are chosen.

Every metric is a row of `FAMILIES`: its keys, its size-invariant form and its position in tables and
plots follow from the row. Users add metrics of their own at run time, see `custom`.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from types import MappingProxyType
from typing import Literal

from sisod.common.arguments import short_repr, similar_names, unknown_name_message
from sisod.common.exceptions import UsageError
from sisod.common.grid import latex_text
from sisod.scoring.families import boundaries, structure
from sisod.scoring.families.counts import COUNT_FAMILIES
from sisod.scoring.families.family import Direction, Family
from sisod.scoring.families.objects import OBJECT_FAMILIES
from sisod.scoring.families.weighted_f import weighted_f

_WEIGHTED = ("weightedf", "weightedfm", "weightedfmeasure")
# family -> other names of it, in lower case and without _, - and spaces
SPELLINGS = {
    "mae": ("m", "meanabsoluteerror"),
    "mse": ("meansquarederror",),
    "f": ("fm", "mf", "fmeasure", "fbeta", "fscore"),
    "precision": ("prec", "ppv"),
    "recall": ("tpr", "sensitivity"),
    "iou": ("jaccard",),
    "dice": ("dsc", "f1", "f1score"),
    "accuracy": ("acc",),
    "specificity": ("tnr",),
    "fpr": ("falsepositiverate",),
    "ber": ("balancederrorrate",),
    "kappa": ("cohenkappa",),
    "e": ("em", "emeasure", "exi", "ephi"),
    "auc": ("auroc", "rocauc", "aucroc"),
    "s": ("sm", "smeasure", "salpha", "structuremeasure"),
    "wf": ("wfm", "wfmeasure", "wfbeta", "fw", "fbw", "fbetaw", *_WEIGHTED),
    "msiou": ("multiscaleiou",),
    "biou": ("boundaryiou",),
    "mba": ("meanboundaryaccuracy",),
    "hce": ("humancorrectioneffort",),
    "nsd": ("normalizedsurfacedistance", "normalisedsurfacedistance", "surfacedice"),
    "object_recall": ("found", "objectsfound"),
    "pq": ("panopticquality",),
}
SHORT_FORMS = {"mean": "avg", "adaptive": "adp", "binary": "bin"}

# letters of symbols -> their names, under which they are known above; some write the w of F as an omega
_GREEK = str.maketrans(
    {"\N{GREEK SMALL LETTER ALPHA}": "alpha", "β": "beta", "ξ": "xi", "φ": "phi", "ω": "w"}
)


def squeeze(name: str) -> str:
    """Return a name as aliases are compared: in lower case and Latin letters, without _, -, ^, spaces.

    Example:
        >>> squeeze("S-measure"), squeeze("F_β^w")
        ('smeasure', 'fbetaw')
    """
    plain = unicodedata.normalize("NFKC", name).casefold().translate(_GREEK)
    return re.sub(r"[\s_^-]+", "", plain)


# functions, and names module:function, are metrics of the user
MetricChoice = str | Sequence[str | Callable[..., float]] | Callable[..., float] | None

_pixels = partial(Family, kind="pixels", size_invariant=False, on_request=True)
FAMILIES = (
    *COUNT_FAMILIES,
    _pixels("s", "S", "up", structure.s_measure, size_invariant=True, symbol=r"S_\alpha"),
    _pixels("wf", "wF", "up", weighted_f, size_invariant=True, symbol=r"F_\beta^w"),
    _pixels("msiou", "MSIoU", "up", structure.multiscale_iou),
    _pixels("biou", "BIoU", "up", boundaries.boundary_iou, size_invariant=True, per_object=True),
    _pixels("mba", "MBA", "up", boundaries.mean_boundary_accuracy),
    _pixels("hce", "HCE", "down", boundaries.human_correction_effort, symbol=r"\mathrm{HCE}_\gamma"),
    _pixels("nsd", "NSD", "up", boundaries.normalized_surface_distance),
    *OBJECT_FAMILIES,
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
    """One public key: a family in one form, plain or size-invariant."""

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
    def needs_boxes(self) -> bool:
        """Whether it cannot be computed on Voronoi regions."""
        return self.size_invariant and self.family.kind == "pixels"

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
        parts = [self.family.meaning, _FORMS[self.form][1]]
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


def alias_pairs() -> Iterator[tuple[str, str]]:
    """Yield every accepted spelling, as `squeeze` returns it, with its key; the keys come first.

    F and E without a form are the mean over thresholds, all other curves the value at p > 0.5.
    """
    built_in = [metric for key, metric in METRICS.items() if not is_custom(key)]  # the user's have none
    yield from ((squeeze(metric.key), metric.key) for metric in built_in)
    for metric in built_in:
        family = metric.family.key
        forms = {metric.form, SHORT_FORMS.get(metric.form, metric.form)}
        if metric.form == ("mean" if family in ("f", "e") else "binary"):
            forms.add("")
        for name, form in product((family, *SPELLINGS.get(family, ())), forms):
            for text in (name + form, form + name):
                yield squeeze("si" * metric.size_invariant + text), metric.key


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
    """Raise if a name is none of the known keys; suggest the key with the most similar alias."""
    if isinstance(key, str) and key in known:
        return
    near = []
    if isinstance(key, str):
        aliases = {alias: full for alias, full in _aliases().items() if full in known}
        near = [aliases[alias] for alias in similar_names(squeeze(key), aliases)[:1]]
    raise UsageError(unknown_name_message(what, key, known, near=near, command="sisod metrics"))


def listed_keys(metrics: object, *, known: Collection[str] = ()) -> tuple[str, ...]:
    """Return the keys of a string with commas, or of a sequence of keys; other names become keys.

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
        raise UsageError(
            f'metrics must be {sets}, "all", None or a list of keys, got {short_repr(metrics)}'
        )
    return tuple(key if key in known else canonical_key(key) for key in keys)


@lru_cache
def _available_families(*, detections: bool, boxes: bool) -> dict[str, Family]:
    """Return all keys of a protocol but those of the user; see `find_metrics`."""
    return {
        key: metric.family
        for key, metric in METRICS.items()
        if not is_custom(key)
        and (detections or not metric.family.detections)
        and (boxes or not metric.needs_boxes)
    }


def find_metrics(
    metrics: MetricChoice, *, detections: bool = False, boxes: bool = True
) -> tuple[str, ...]:
    """Return the chosen keys: None for the count metrics, `"all"`, a named set, or a list of keys.

    Args:
        metrics: the choice; a list may contain `"all"` and names of `METRIC_SETS` too.
        detections: whether the protocol has the metrics of detected targets.
        boxes: whether its frames are rectangular.

    Returns:
        Every key once, in the order in which it was named.

    Example:
        >>> find_metrics(["mae", "si_mae"])
        ('mae', 'si_mae')
    """
    available = _available_families(detections=detections, boxes=boxes)
    if metrics is None:
        return tuple(key for key, family in available.items() if not family.on_request)
    sets = {"all": tuple(available), **METRIC_SETS}
    keys = dict.fromkeys(key for name in listed_keys(metrics) for key in sets.get(name, (name,)))
    for key in keys:
        check_metric(key, METRICS)
        if key not in available and not is_custom(key):
            raise UsageError(
                f"{key} needs rectangular frames and the protocol has Voronoi regions; choose "
                "another protocol, or leave it out"
                if METRICS[key].needs_boxes and not boxes
                else f"{key} exists only under the protocol 'infrared'; choose that one, or leave it out"
            )
    if not keys:
        raise UsageError("metrics is empty; name at least one, or pass None for all count metrics")
    return tuple(keys)


def arrow(key: str) -> str:
    """Return the arrow of the better direction."""
    return {"up": "↑", "down": "↓", "none": ""}[METRICS[key].better]
