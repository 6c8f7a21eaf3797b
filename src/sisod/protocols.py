"""The named conventions, as data. The name is stored with every result."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sisod.arrays import Normalize
from sisod.errors import UsageError
from sisod.frames import Alpha, Kind, Partition, cut_mask


@dataclass(frozen=True)
class Protocol:
    """What the field leaves open, settled.

    Attributes:
        name: stored with every result; a protocol of your own needs a name of its own.
        kind: frames are `"boxes"` or `"voronoi"` regions.
        connectivity: of components, 8 or 4.
        min_area: smaller components get no frame; a float is a share of the image, an int pixels.
        keep_ties: if no component is large enough, keep every largest one, not only the first.
        alpha: weight of the background: `"ratio"`, `"union"` or a number.
        normalize: `"minmax"` stretches every prediction to [0, 1]; `"none"` does not.
        gt_level: the least 8-bit value that is salient.
        first_threshold: where size-invariant curves begin; 1 leaves out t = 0, at which a frame is
            wholly positive.
        released_code: score as the paper's released code does (`sisod.official`), on a grid of its own
            and by rules of its own; the fields above then only tell what comes nearest to it.
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
    released_code: bool = False

    def partition(self, mask: NDArray[np.bool_]) -> Partition:
        """Cut a checked mask as this protocol says."""
        if self.released_code:
            raise UsageError(
                f"the protocol {self.name!r} cuts frames on a grid of its own, not on the image; "
                "choose another protocol to see frames"
            )
        return cut_mask(
            mask,
            kind=self.kind,
            connectivity=self.connectivity,
            min_area=self.min_area,
            alpha=self.alpha,
            keep_ties=self.keep_ties,
        )


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("default"),
        # the equations as printed, misprints corrected
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
        # what the paper's released code computes
        Protocol(
            "official",
            connectivity=4,
            min_area=25,
            alpha="union",
            normalize="none",
            first_threshold=0,
            released_code=True,
        ),
    )
}


_MOST_LISTED = 20  # names in a message


def find_protocol(protocol: str | Protocol) -> Protocol:
    """Return the protocol of that name, or check that one's own does not carry a known name.

    Example:
        >>> find_protocol("paper").min_area
        0
    """
    if isinstance(protocol, Protocol):
        if PROTOCOLS.get(protocol.name, protocol) != protocol:
            raise ValueError(
                f"this protocol differs from the known {protocol.name!r} but has its name; "
                "give it a name of its own"
            )
        return protocol
    if protocol not in PROTOCOLS:
        raise UsageError(unknown("protocol", protocol, PROTOCOLS))
    return PROTOCOLS[protocol]


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Say that a name is not known, which is nearest, and which there are.

    Example:
        >>> unknown("protocol", "papr", ["default", "paper"])
        "unknown protocol 'papr'; did you mean 'paper'? available: default, paper"
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=5)
    near.sort(key=lambda other: sorted(other) != sorted(name))  # two letters swapped come first
    hint = f" did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(names) if len(names) <= _MOST_LISTED else f"{len(names)}, see docs/metrics.md"
    return f"unknown {what} {name!r};{hint} available: {listed}"
