"""The evaluation conventions, as data. The name is stored with every result."""

import re
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import check_choice, check_flag, check_int, check_known, short_repr
from sisod.common.exceptions import UsageError
from sisod.scoring.arrays import Mask, Normalize
from sisod.scoring.partition import (
    Alpha,
    Kind,
    Partition,
    check_partition_settings,
    cut_labels,
    cut_mask,
)

RELEASED_CODES = (False, "SI-SOD", "SI_Metric")


@dataclass(frozen=True)
class Protocol:
    """One choice for everything that the definitions of the metrics leave open.

    Attributes:
        name: stored with every result; a protocol of your own needs a name of its own.
        kind: of the frames, `"boxes"` or `"voronoi"`.
        connectivity: of the components, 8 or 4.
        min_area: smaller components get no frame; a float is a share of the image, an int is pixels.
        keep_ties: if no component is large enough, keep every largest one, not only the first.
        alpha: weight of the background: `"ratio"`, `"union"` or a number.
        normalize: `"minmax"` stretches every prediction to [0, 1]; `"none"` does not.
        gt_level: the least 8-bit value that is salient.
        first_threshold: first threshold of size-invariant curves; 1 leaves out t = 0, at which every
            pixel of a frame is predicted.
        detections: also count the targets that a predicted object is near to, by centroids (`pd`, `fa`).
        released_code: score as one of the paper's two released codes does, `"SI-SOD"` (`official`) or
            `"SI_Metric"` (`official-metric`), on its own grid and by its own rules; the fields above
            then only describe these rules approximately.
    """

    name: str
    kind: Kind = "boxes"
    connectivity: Literal[4, 8] = 8
    min_area: float = 0.0002
    keep_ties: bool = False
    alpha: Alpha = "ratio"
    normalize: Normalize = "minmax"
    gt_level: int = 128
    first_threshold: Literal[0, 1] = 1
    detections: bool = False
    released_code: Literal[False, "SI-SOD", "SI_Metric"] = False

    def __post_init__(self) -> None:
        """Validate the settings."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):  # a NumPy scalar, which JSON cannot store
                object.__setattr__(self, field.name, value.item())
        if not isinstance(self.name, str) or not self.name.strip():
            raise UsageError(f"name must be a string that is not empty, got {short_repr(self.name)}")
        check_partition_settings(
            kind=self.kind, connectivity=self.connectivity, min_area=self.min_area, alpha=self.alpha
        )
        check_choice("normalize", self.normalize, get_args(Normalize))
        check_int("gt_level", self.gt_level, least=1, most=255)
        check_choice("first_threshold", self.first_threshold, (0, 1))
        check_flag("keep_ties", self.keep_ties)
        check_flag("detections", self.detections)
        check_choice("released_code", self.released_code, RELEASED_CODES)

    def partition(self, mask: Mask, labels: NDArray[np.integer] | None = None) -> Partition:
        """Cut a checked mask by this protocol; with `labels`, its objects are given."""
        if self.released_code:
            raise UsageError(
                f"the protocol {self.name!r} cuts frames on a grid of its own, not on the image; "
                "choose another protocol to see frames"
            )
        names = ("kind", "min_area", "alpha", "keep_ties")
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        if labels is not None:
            return cut_labels(labels, **settings)
        return cut_mask(mask, connectivity=self.connectivity, **settings)


_OFFICIAL = Protocol(
    "official",
    connectivity=4,
    min_area=25,
    alpha="union",
    normalize="none",
    first_threshold=0,
    released_code="SI-SOD",
)
PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("default"),
        # the paper's equations as printed, misprints corrected
        Protocol("paper", min_area=0, first_threshold=0),
        # PySODMetrics' SI-MAE and SI-F
        Protocol(
            "pysodmetrics",
            connectivity=4,
            min_area=50,
            keep_ties=True,
            alpha="union",
            gt_level=129,
        ),
        # small infrared targets: every component counts, and maps are not stretched
        Protocol("infrared", min_area=0, normalize="none", detections=True),
        # CC-Metrics, whose CC-Dice is si_dice_binary
        Protocol("cc", kind="voronoi", min_area=0, normalize="none"),
        # the two codes that the paper's authors released: training and scoring, and scoring alone
        _OFFICIAL,
        replace(_OFFICIAL, name="official-metric", min_area=50, released_code="SI_Metric"),
    )
}


# that can be changed, in the order of a name
SETTINGS = ("min_area", "connectivity", "normalize", "gt_level")


def find_protocol(protocol: str | Protocol) -> Protocol:
    """Return the protocol of a name; check that a custom protocol does not have a known name.

    Settings that are changed follow the name, as in the names that results store.

    Example:
        >>> find_protocol("paper").min_area
        0
        >>> find_protocol("paper+min_area=12+connectivity=4").min_area
        12
    """
    if isinstance(protocol, Protocol):
        if _base(protocol) is not protocol and find_protocol(protocol.name) != protocol:
            raise ValueError(
                f"this protocol differs from the known {protocol.name!r} but has its name; "
                "give it a name of its own"
            )
        return protocol
    name, *changes = protocol.split("+") if isinstance(protocol, str) else [protocol]
    check_known("protocol", name, PROTOCOLS)
    if not changes:
        return PROTOCOLS[name]
    settings: dict[str, Any] = {}
    for change in changes:
        setting, _, text = change.partition("=")
        if setting not in SETTINGS or setting in settings:
            raise UsageError(
                f"protocol {short_repr(protocol)}: after the name, expected each of "
                f"{', '.join(SETTINGS)} at most once, as in +min_area=0, got {short_repr(f'+{change}')}"
            )
        settings[setting] = read_setting(setting, text)
    return change_protocol(PROTOCOLS[name], **settings)


def change_protocol(protocol: Protocol, **settings: Any) -> Protocol:
    """Return a protocol with other settings, whose name says what differs from the known protocol.

    Settings that are None stay as they are.

    Example:
        >>> change_protocol(PROTOCOLS["default"], connectivity=4, min_area=0).name
        'default+min_area=0+connectivity=4'
        >>> change_protocol(PROTOCOLS["default"], connectivity=8).name
        'default'
    """
    changes = {name: value for name, value in settings.items() if value is not None}
    if changes.get("min_area") == 0:
        changes["min_area"] = 0  # no pixels and no share of the image are the same, and have one name
    if changes and protocol.released_code:
        raise UsageError(
            f"{next(iter(changes))} cannot be changed under {protocol.name!r}, which follows the "
            "paper's released code; choose another protocol"
        )
    base, changed = _base(protocol), replace(protocol, **changes)
    differences = [
        f"+{name}={getattr(changed, name)}"
        for name in SETTINGS
        # by their texts: one pixel is not the whole image, although 1 equals 1.0
        if str(getattr(changed, name)) != str(getattr(base, name))
    ]
    return replace(changed, name=base.name + "".join(differences))


def read_setting(name: str, text: str) -> Any:
    """Return the value of a setting that is given as a string.

    Example:
        >>> read_setting("min_area", "12"), read_setting("min_area", "0.001")
        (12, 0.001)
    """
    value: Any = text
    if re.fullmatch("[0-9]{1,15}", text):
        value = int(text)
    elif re.fullmatch(r"[0-9]*\.?[0-9]+(e-?[0-9]+)?", text):
        value = float(text)
    replace(PROTOCOLS["default"], **{name: value})  # raises if it is not valid
    return value


def _base(protocol: Protocol) -> Protocol:
    """Return the known protocol that a name begins with, or the protocol itself."""
    return PROTOCOLS.get(protocol.name.partition("+")[0], protocol)
