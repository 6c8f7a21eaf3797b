"""What looks wrong with predictions and ground truths, in a sample of pairs, before they are scored."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.exceptions import InputError, shorten_list
from sisod.common.streams import progress_bar
from sisod.data.pairs import Pair, pair_files
from sisod.data.storage import resolved_root
from sisod.data.truths import BINARY_MASK, TruthFormat, read_prediction, read_truth
from sisod.scoring.arrays import has_grey_area, looks_binary, unit_values
from sisod.scoring.engine import score
from sisod.scoring.scores import INVERTED_AUC

Values = NDArray[np.float32]
_SAMPLE = 100  # pairs
_MOST = 0.75  # share of the pairs that have to look wrong
_NEARLY_ALL = 0.9
_LEAST_AUC = 0.65  # of maps that belong to their masks, on average
_LEAST_GAIN = 0.002  # of the correlation, by a shift: less is the taste of a network
_LEVELS = (1, 64, 128, 192)  # thresholds of grey masks whose effect is shown


@dataclass(frozen=True)
class Finding:
    """Something that looks wrong.

    Attributes:
        problem: what it is called.
        evidence: a sentence with numbers.
        remedy: what to do.
        wrong: whether numbers would be wrong; otherwise it is worth knowing.
    """

    problem: str
    evidence: str
    remedy: str
    wrong: bool = True


# kind -> share of the pairs from which it is told, evidence, remedy, whether numbers would be wrong
_RULES = {
    "unusable": (0, "pairs cannot be used", "repair or replace these files", True),
    "0/1": (0, "maps are integers with maximum 1", "multiply them by 255", True),
    "transposed": (_MOST, "maps have height and width exchanged", "transpose them", True),
    "resized": (
        0,
        "maps have another size than their mask",
        "save them at the size of the ground truth; evaluate resizes them otherwise",
        False,
    ),
    "thresholded": (
        _MOST,
        "maps have two values",
        "save probabilities: AUC and curves of two values say little",
        False,
    ),
    "stretched": (
        1,
        "maps reach from 0 to 1, each stretched by itself",
        "save probabilities as they are: where there is no object, a stretched map shows noise",
        False,
    ),
    "constant": (0, "maps have one value", "look at these files", False),
    "full": (0, "maps are above one half everywhere", "look at these files", False),
    "empty mask": (0, "masks have no salient pixel", "look at these files", False),
    "full mask": (0, "masks are salient everywhere", "look at these files", False),
}


def check_pairs(
    pred_root: str | Path,
    gt_root: str | Path,
    *,
    pred_suffix: str = "",
    gt_suffix: str = "",
    meaning: TruthFormat = BINARY_MASK,
    level: int = 128,
    most: int = _SAMPLE,
) -> tuple[list[Finding], int]:
    """Return what looks wrong with predictions and ground truths, and how many pairs were looked at.

    Args:
        pred_root: of the predictions, as for `sisod.evaluate`.
        gt_root: of the ground truths.
        pred_suffix: end of every prediction's name that is not part of the image's.
        gt_suffix: the same of ground truths.
        meaning: of the values of ground truths.
        level: 8-bit value from which a pixel of a grey mask is salient.
        most: number of pairs to look at, evenly spaced in the order of their names.
    """
    suffixes = {"pred_suffix": pred_suffix, "gt_suffix": gt_suffix}
    try:
        pairing = pair_files(pred_root, gt_root, **suffixes, allow_missing=True)
    except InputError as error:
        return [Finding("names", str(error), "make names equal, up to suffix and extension")], 0
    findings = []
    if missing := pairing.missing:
        n_truths = len(pairing.pairs) + len(missing)
        evidence = f"{len(missing)} of {n_truths} ground truths have no prediction"
        remedy = "--pred-suffix or --gt-suffix if names end differently; --allow-missing leaves them out"
        findings.append(Finding("names", f"{evidence} ({shorten_list([*missing])})", remedy))
    if extra := pairing.extra:
        evidence = f"{len(extra)} predictions have no ground truth ({shorten_list([*extra])})"
        findings.append(Finding("extra files", evidence, "they are not scored", wrong=False))
    if resolved_root(str(pred_root)) == resolved_root(str(gt_root)) and pred_suffix == gt_suffix:
        evidence = f"both are in {str(pred_root)!r}"
        findings.append(Finding("same files", evidence, "give the predictions first"))
    chosen = np.unique(np.linspace(0, len(pairing.pairs) - 1, most).astype(int)).tolist()
    rows: list[dict[str, Any]] = []
    with progress_bar("looking at pairs", len(chosen)) as advance:
        for index in chosen:
            pair = pairing.pairs[index]
            try:
                rows.append({"name": pair.name} | _look((pred_root, gt_root), pair, meaning, level))
            except InputError as error:
                rows.append({"name": str(error), "unusable": True})
            advance(1)
    return findings + _findings(rows, level), len(chosen)


def _look(
    roots: tuple[str | Path, str | Path], pair: Pair, meaning: TruthFormat, level: int
) -> dict[str, Any]:
    """What is seen in one pair: of which kinds it is, and values."""
    pred_root, gt_root = roots
    truth = read_truth(gt_root, pair.gt.path, meaning)
    gt = truth.mask(level=level)
    pred = read_prediction(pred_root, pair.pred.path, gt_root=gt_root, meaning=meaning)
    values = unit_values(pred, normalize="none").astype(np.float32)
    is_turned = pred.shape != gt.shape and pred.shape == gt.shape[::-1]
    is_grey, n_values = has_grey_area(truth.array), len(np.unique(pred))
    row: dict[str, Any] = {
        "0/1": looks_binary(pred),
        "transposed": is_turned,
        "resized": pred.shape != gt.shape and not is_turned,
        "thresholded": n_values == 2,
        "stretched": n_values > 2 and values.min() == 0 and values.max() == 1,
        "constant": n_values == 1,
        "full": values.min() > 0.5,
        "empty mask": not gt.any(),
        "full mask": gt.all(),
        "grey": is_grey,
        "swapped": is_grey and not has_grey_area(pred),
        "judged": gt.any() and not gt.all() and n_values > 1 and not is_turned,
    }
    if is_grey:
        row |= {f"from {other}": truth.mask(level=other).mean() for other in _LEVELS}
    if row["judged"]:
        if pred.shape != gt.shape:
            values = np.asarray(cv2.resize(values, gt.shape[::-1], interpolation=cv2.INTER_LINEAR))
        auc = score(values, gt, metrics=["auc"])["auc"]
        fits = {name: _correlation(move(values), gt) for name, move in _MOVES.items()}
        best = max(fits, key=lambda name: fits[name])
        row |= {"auc": auc, "inverted": auc < INVERTED_AUC, best: True}
        row[f"gain {best}"] = fits[best] - fits["as it is"]
    return row


def _shift(y: int, x: int) -> Callable[[Values], Values]:
    return lambda values: np.roll(values, (-y, -x), axis=(0, 1))


def _transpose(values: Values) -> Values:
    return values.T if values.shape[0] == values.shape[1] else values


# what may have been done to a map -> how to undo it
_MOVES: dict[str, Callable[[Values], Values]] = {
    "as it is": _shift(0, 0),
    **{f"shifted by {y:+d}, {x:+d}": _shift(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if y or x},
    "transposed": _transpose,
    "mirrored": np.fliplr,
    "upside down": np.flipud,
}


def _correlation(values: Values, gt: NDArray[np.bool_]) -> float:
    """Pearson's correlation of a map and a mask, without the frame that a shift wraps around."""
    p, g = values[1:-1, 1:-1].ravel(), gt[1:-1, 1:-1].ravel()
    inside = p[g]
    spread = float(p.std())
    if not 0 < len(inside) < len(p) or not spread:
        return 0.0
    share = len(inside) / len(p)
    return float(inside.mean() - p.mean()) * math.sqrt(share / (1 - share)) / spread


def _findings(rows: Sequence[Mapping[str, Any]], level: int) -> list[Finding]:
    """What was seen often enough, with numbers and remedies."""
    found: list[Finding] = []
    judged = [row for row in rows if row.get("judged")]  # by their values

    def names(kind: str) -> list[str]:
        return [row["name"] for row in rows if row.get(kind)]

    def mean(key: str) -> float:
        values = [row[key] for row in rows if key in row]
        return float(np.mean(values)) if values else math.nan

    def add(kind: str, least: float, evidence: str, remedy: str, *, wrong: bool, of: int) -> None:
        """Add a finding if this share of the pairs, or of those that can be judged, is of its kind."""
        if (seen := names(kind)) and len(seen) >= least * of:
            text = f"{len(seen)} of {of} {evidence} ({shorten_list(seen)})"
            found.append(Finding(kind, text, remedy, wrong))

    evidence = "ground truths have grey areas, and their predictions have none"
    remedy = "give the predictions first, the ground truths last"
    add("swapped", _NEARLY_ALL, evidence, remedy, wrong=True, of=len(rows))
    is_swapped = bool(found)
    if not is_swapped:
        shares = ", ".join(f"{100 * mean(f'from {n}'):.2f} % from {n} on" for n in _LEVELS)
        evidence = f"masks have grey areas, whose salient share is {shares}; now {level}"
        remedy = "--gt-level sets from which value on a pixel is salient"
        add("grey", 0, evidence, remedy, wrong=False, of=len(rows))
    auc = mean("auc")
    evidence = f"maps are darker on objects than beside them (mean AUC {auc:.3f})"
    add("inverted", _MOST, evidence, "save 1 - p, or 255 minus the value", wrong=True, of=len(judged))
    for kind in _MOVES:
        if kind != "as it is" and (gain := mean(f"gain {kind}")) >= _LEAST_GAIN:
            evidence = f"maps fit better if this is undone (correlation {gain:+.3f})"
            remedy = "check how maps were resized, cropped, padded or saved"
            add(kind, _MOST, evidence, remedy, wrong=True, of=len(judged))
    if auc < _LEAST_AUC and not any(one.wrong for one in found):
        evidence = f"map values do not correlate with the masks (mean AUC {auc:.3f})"
        remedy = "check that equal names are the same images: is it another data set?"
        add("judged", 0, evidence, remedy, wrong=True, of=len(rows))
        found[-1] = replace(found[-1], problem="another data set")
    told = {one.problem for one in found} | ({"thresholded"} if is_swapped else set())
    for kind, (least, evidence, remedy, wrong) in _RULES.items():
        if kind not in told:
            add(kind, least, evidence, remedy, wrong=wrong, of=len(rows))
    return found
