"""The verdict of a comparison in words: where a method is better, and what disagrees with that."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from sisod.analysis.object_counts import is_summed
from sisod.analysis.scores import OBJECT_SCORES, direction, title
from sisod.analysis.significance import LEVEL
from sisod.common.exceptions import printable
from sisod.common.grid import number
from sisod.scoring.metrics import METRICS

Verdict = Literal["better", "worse", "undecided", ""]
Row = Mapping[str, Any]  # of `Comparison.table`


def find_verdict(key: str, difference: float, p: float) -> Verdict:
    """Return whether the first of two methods is better by a score, from the permutation test.

    "better" or "worse" if p is at most 0.05, else "undecided"; "" if p is NaN, or neither more nor less
    is better.

    Example:
        >>> find_verdict("mae", -0.02, 0.01), find_verdict("mae", -0.02, 0.2)
        ('better', 'undecided')
    """
    if direction(key) == "none" or math.isnan(p):
        return ""
    if p > LEVEL:
        return "undecided"
    return "better" if (difference > 0) == (direction(key) == "up") else "worse"


def verdict_lines(rows: Iterable[Row]) -> list[str]:
    """Return the verdict of every pair of methods, each followed by the disagreements of its tests.

    The last lines of a pair say where its verdict and the interval of the difference disagree.
    """
    by_pair: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_pair.setdefault((row["a"], row["b"]), []).append(row)
    lines = []
    for group in by_pair.values():
        lines.append(_verdict_line(group))
        opposite = {row["metric"]: text for row in group if (text := disagreement(row))}
        others = [row for row in group if row["metric"] not in opposite]
        notes = (*opposite.values(), *one_test_lines(others), *_interval_lines(group))
        lines += [f"  {text}" for text in notes]
    return lines


def _verdict_line(rows: Sequence[Row]) -> str:
    """The verdict of one pair: `EDN against ICON: better on SI-MAE and F mean; undecided on MAE`."""
    judged = [row for row in rows if row["verdict"]]
    everything = "both metrics" if len(judged) == 2 else f"all {len(judged)} metrics"
    parts = []
    for verdict in ("better", "worse", "undecided"):
        names = [title(row["metric"]) for row in judged if row["verdict"] == verdict]
        if names:
            is_all = len(names) == len(judged) > 1
            parts.append(f"{verdict} on {everything if is_all else listed(names)}")
    pair = f"{printable(rows[0]['a'])} against {printable(rows[0]['b'])}"
    return f"{pair}: {'; '.join(parts) or 'no metric can be judged'}"


def disagreement(row: Row) -> str:
    """Say that one method wins more images and the other has the better value, and why; "" if not so.

    Nothing is said unless both tests decide.
    """
    a_wins = row["a_wins"] > row["b_wins"]
    if not (row["p"] <= LEVEL and row["verdict"] == ("worse" if a_wins else "better")):
        return ""
    leader, other = ("a", "b") if a_wins else ("b", "a")
    reason = _reason(row["metric"], row[f"{leader}_gain"], row[f"{other}_gain"])
    return (
        f"{title(row['metric'])}: {printable(row[leader])} is better on {_share_text([row], leader)}, "
        f"but its {_value_name(row['metric'])} is worse: {reason}"
    )


def one_test_lines(rows: Iterable[Row]) -> list[str]:
    """Say where exactly one of the two tests is significant; a line for each test and leading method."""
    groups: dict[tuple[str, bool], list[Row]] = {}
    for row in rows:
        by_images, by_mean = row["p"] <= LEVEL, row["p_mean"] <= LEVEL
        if math.isnan(row["p"] + row["p_mean"]) or by_images == by_mean:
            continue
        gain = row["difference"] if direction(row["metric"]) == "up" else -row["difference"]
        a_leads = row["a_wins"] > row["b_wins"] if by_images else gain > 0
        groups.setdefault(("a" if a_leads else "b", by_images), []).append(row)
    lines = []
    for (leader, by_images), members in groups.items():
        names = {_value_name(row["metric"]) for row in members}
        value = names.pop() if len(names) == 1 else "value"
        images = _share_text(members, leader)
        if by_images:
            text = f"is better on {images}, but the difference in the {value} is not significant"
        else:
            only = f"only {images}, not significant by the sign test"
            text = f"has the better {value}, but is better on {only}"
        start = f"{listed([title(row['metric']) for row in members])}: {printable(members[0][leader])}"
        lines.append(f"{start} {text}")
    return lines


def _share_text(rows: Sequence[Row], leader: str) -> str:
    """`60 to 63 % of the images (up to 5 % tie)`: where the leader wins, and where nobody does."""
    counts = [(row[f"{leader}_wins"], row["ties"], row["a_wins"] + row["b_wins"]) for row in rows]
    wins = sorted(round(100 * won / (decided + ties)) for won, ties, decided in counts)
    most_ties = max(round(100 * ties / (decided + ties)) for _, ties, decided in counts)
    share = f"{wins[0]}" if wins[0] == wins[-1] else f"{wins[0]} to {wins[-1]}"
    tied = f" ({'up to ' if len(rows) > 1 else ''}{most_ties} % tie)" if most_ties else ""
    return f"{share} % of the images{tied}"


def _interval_lines(rows: Iterable[Row]) -> list[str]:
    """Say where the verdict and the interval of the difference disagree."""
    names: dict[bool, list[str]] = {}
    for row in rows:
        decided = row["verdict"] in ("better", "worse")
        excluded = row["low"] > 0 or row["high"] < 0  # NaN: no interval
        if row["verdict"] and not math.isnan(row["low"]) and decided != excluded:
            names.setdefault(decided, []).append(title(row["metric"]))
    texts = {
        True: "the permutation test decides, although the 95 % interval contains zero",
        False: "the permutation test does not decide, although the 95 % interval excludes zero",
    }
    return [f"{listed(metrics)}: {texts[decided]}" for decided, metrics in names.items()]


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


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    Example:
        >>> listed(["MAE", "SI-MAE", "AUC"])
        'MAE, SI-MAE and AUC'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
