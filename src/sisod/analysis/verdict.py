"""The verdict of a comparison in words: where a method is better, and where two tests disagree."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from sisod.analysis.bootstrap import OBJECT_SCORES, direction, title
from sisod.analysis.object_counts import is_summed
from sisod.analysis.significance import TOLERANCE
from sisod.common.errors import printable
from sisod.common.grid import number
from sisod.scoring.metrics import METRICS

Verdict = Literal["better", "worse", "undecided", ""]
Row = Mapping[str, Any]  # of `Comparison.table`
_LEVEL = 0.05  # of both tests


def find_verdict(key: str, low: float, high: float) -> Verdict:
    """Return whether the first of two methods is better by a score, from the interval of a difference.

    "better" or "worse" if the interval excludes zero, else "undecided"; "" if there is no interval, or
    neither more nor less is better.

    Example:
        >>> find_verdict("mae", -0.02, -0.01), find_verdict("mae", -0.02, 0.01)
        ('better', 'undecided')
    """
    if direction(key) == "none" or math.isnan(low):
        return ""
    if low <= TOLERANCE and high >= -TOLERANCE:
        return "undecided"
    return "better" if (low > 0) == (direction(key) == "up") else "worse"


def verdict_lines(rows: Iterable[Row]) -> list[str]:
    """Return the verdict of every pair of methods, each followed by the disagreements of its tests."""
    by_pair: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_pair.setdefault((row["a"], row["b"]), []).append(row)
    lines = []
    for group in by_pair.values():
        lines.append(_verdict_line(group))
        opposite = {row["metric"]: text for row in group if (text := disagreement(row))}
        others = [row for row in group if row["metric"] not in opposite]
        lines += [f"  {text}" for text in (*opposite.values(), *one_test_lines(others))]
    return lines


def _verdict_line(rows: Sequence[Row]) -> str:
    """The verdict of one pair: `EDN against ICON: better on SI-MAE and F mean; undecided on MAE`."""
    keys = {
        verdict: [title(row["metric"]) for row in rows if row["verdict"] == verdict]
        for verdict in ("better", "worse", "undecided")
    }
    n_judged = sum(map(len, keys.values()))
    everything = "both metrics" if n_judged == 2 else f"all {n_judged} metrics"
    parts = [
        f"{verdict} on " + (listed(names) if len(names) < n_judged or n_judged == 1 else everything)
        for verdict, names in keys.items()
        if names
    ]
    return f"{_against(rows[0])}: {'; '.join(parts) or 'no metric can be judged'}"


def disagreement(row: Row) -> str:
    """Say that one method wins more images and the other has the better value, and why; "" if not so.

    Nothing is said if the sign test does not decide who wins more images.
    """
    wins, losses = row["a_wins"], row["b_wins"]
    gain = row["difference"] if direction(row["metric"]) == "up" else -row["difference"]
    if not (row["p"] < _LEVEL and (gain < -TOLERANCE if wins > losses else gain > TOLERANCE)):
        return ""
    a_wins = wins > losses
    name = printable(row["a" if a_wins else "b"])
    share = max(wins, losses) / (wins + losses + row["ties"])
    mean = _value_name(row["metric"])
    worse = "worse" if row["verdict"] != "undecided" else "worse, but undecided"
    won, lost = (row["a_gain"], row["b_gain"]) if a_wins else (row["b_gain"], row["a_gain"])
    return (
        f"{title(row['metric'])}: {name} is better on {100 * share:.0f} % of the images, but its "
        f"{mean} is {worse}: {_reason(row['metric'], won, lost)}"
    )


def one_test_lines(rows: Iterable[Row]) -> list[str]:
    """Say where exactly one of the two tests is significant; a line for each test and leading method."""
    groups: dict[tuple[str, bool], list[Row]] = {}
    for row in rows:
        if math.isnan(row["p"] + row["p_mean"]) or (row["p"] < _LEVEL) == (row["p_mean"] < _LEVEL):
            continue
        by_images = row["p"] < _LEVEL
        gain = row["difference"] if direction(row["metric"]) == "up" else -row["difference"]
        a_leads = row["a_wins"] > row["b_wins"] if by_images else gain > 0
        groups.setdefault(("a" if a_leads else "b", by_images), []).append(row)
    return [
        _one_test_line(members, leader, by_images=by_images)
        for (leader, by_images), members in groups.items()
    ]


def _one_test_line(rows: Sequence[Row], leader: str, *, by_images: bool) -> str:
    """`MAE and AUC: EDN is better on 60 to 63 % of the images, but the difference of the means ...`."""
    shares = [row[f"{leader}_wins"] / (row["a_wins"] + row["b_wins"] + row["ties"]) for row in rows]
    low, high = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    images = f"{low if low == high else f'{low} to {high}'} % of the images"
    start = f"{listed([title(row['metric']) for row in rows])}: {printable(rows[0][leader])}"
    names = {_value_name(row["metric"]) for row in rows}
    value = names.pop() if len(names) == 1 else "value"
    reasons = {_one_test_reason(row, leader, by_images=by_images) for row in rows}
    reason = reasons.pop() if len(reasons) == 1 else ""  # only what holds for every metric of the line
    if by_images:
        text = f"is better on {images}, but the difference in the {value} is not significant"
    else:
        text = f"has the better {value}, but is better on {images} only (sign test not significant)"
    return f"{start} {text}{reason and f': {reason}'}"


def _one_test_reason(row: Row, leader: str, *, by_images: bool) -> str:
    """Why the tests differ; "" if the mean gain of each method does not explain it."""
    key, other = row["metric"], "b" if leader == "a" else "a"
    won, lost = row[f"{leader}_gain"], row[f"{other}_gain"]
    if _value_name(key) != "mean":
        return _reason(key, won, lost)
    if by_images:
        return "its wins are small, its losses large" if lost > won else ""
    return "its losses are small, and a few large wins can decide" if won > lost else ""


def _reason(key: str, won: float, lost: float) -> str:
    if key in OBJECT_SCORES or is_summed(key):
        return "images with many objects count more"
    if METRICS[key].form == "max":
        return "it is the maximum of the mean curve, not the mean of the images' own maxima"
    if not lost > won:  # then the means are of different images
        return "one of the two is undefined on some images"
    return (
        f"it loses more where it is worse ({number(lost)} on average) than it gains where it is better "
        f"({number(won)})"
    )


def _value_name(key: str) -> str:
    is_mean = key not in OBJECT_SCORES and not is_summed(key) and METRICS[key].form != "max"
    return "mean" if is_mean else "value over the data set"


def _against(row: Row) -> str:
    return f"{printable(row['a'])} against {printable(row['b'])}"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    Example:
        >>> listed(["MAE", "SI-MAE", "AUC"])
        'MAE, SI-MAE and AUC'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
