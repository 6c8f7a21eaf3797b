"""Tests of a difference between two methods, and their verdict in words."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sisod.analysis.bootstrap import block_size, influence, seed_variance, share_columns
from sisod.analysis.scores import Score, direction, title
from sisod.common.exceptions import printable
from sisod.common.grid import number
from sisod.scoring.arrays import Values

Verdict = Literal["better", "worse", "undecided", ""]
Row = Mapping[str, Any]  # of `Comparison.table`
LEVEL = 0.05  # of every test: a p up to it is significant, and decides
TOLERANCE = 1e-12  # smaller differences are the rounding of sums: a tie
MAX_EXACT = 12  # images up to which all exchanges are enumerated: 2^12 of them


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p of an exact sign test; ties are not counted.

    Example:
        Five of five: 2 / 2^5.

        >>> sign_test(5, 0)
        0.0625
    """
    count, fewer = wins + losses, min(wins, losses)
    ways = total = 1
    for k in range(fewer):
        ways = ways * (count - k) // (k + 1)
        total += ways
    return min(1.0, 2 * total / (1 << count))  # integers: exact for any number of images


def permutation_tests(
    scores: Mapping[str, Sequence[Score]], permutations: int, seed: int
) -> dict[tuple[str, str], Values]:
    """Return, for each pair of methods, the two-sided p of the difference of each of their scores.

    If two methods are equally good, it does not matter which map of an image is whose. Each permutation
    exchanges the two methods on some images, each with probability 1/2, and computes the difference
    over the data set again; p is the share of permutations whose difference is at least as large as
    the observed one. For a mean over images, this flips the signs of the images' differences. Up to
    12 images, all exchanges are enumerated and p is exact; otherwise the observed difference counts as
    one more permutation, so p is never 0. A permutation on which a score is undefined does not count.

    Args:
        scores: method -> its scores, the same ones for every method, of the same images in the same
            order.
        permutations: number of random exchanges.
        seed: of the exchanges, which are the same for all pairs and scores.
    """
    methods = list(scores)
    table, columns = share_columns([score for row in scores.values() for score in row])
    totals = table.sum(axis=0)
    n_images, n_keys = len(table), len(scores[methods[0]])
    pairs = list(combinations(range(len(methods)), 2))

    def differences(pair: tuple[int, int], key: int, moved: Values) -> Values:
        """The difference of a score after an exchange of images whose rows have the sums `moved`."""
        a, b = (columns[method * n_keys + key] for method in pair)
        gained = moved[:, b] - moved[:, a]
        value_a, value_b = (scores[methods[method]][key].function for method in pair)
        return value_a(totals[a] + gained) - value_b(totals[b] - gained)

    nothing = np.zeros((1, len(totals)))
    observed = np.array(
        [[abs(differences(pair, key, nothing)[0]) for key in range(n_keys)] for pair in pairs]
    )
    least = observed - TOLERANCE * np.maximum(1, observed)
    n_extreme, n_defined = np.zeros(observed.shape), np.zeros(observed.shape)
    for exchanged in _exchanges(n_images, permutations, seed, block_size(table)):
        moved = exchanged @ table
        for i, pair in enumerate(pairs):
            for key in range(n_keys):
                sizes = np.abs(differences(pair, key, moved))
                n_extreme[i, key] += np.count_nonzero(sizes >= least[i, key])  # NaN is not
                n_defined[i, key] += np.count_nonzero(~np.isnan(sizes))
    with np.errstate(invalid="ignore"):  # a score that is defined for no exchange
        own = 0 if n_images <= MAX_EXACT else 1  # the observed one is among all exchanges
        p = (own + n_extreme) / (own + n_defined)
    p[np.isnan(observed)] = math.nan
    return {(methods[a], methods[b]): p[i] for i, (a, b) in enumerate(pairs)}


def seed_test(a: Score, b: Score) -> float:
    """Return the two-sided p of a difference of means over seeds; 0 if there are no seeds.

    Student's test with the variance over images and over seeds: exchanges of images alone would take a
    lucky seed for a better method.
    """
    differences = influence(a) - influence(b)
    n_images = int((~np.isnan(a.per_image) | ~np.isnan(b.per_image)).sum())
    square = float(np.nansum(np.square(differences)))
    added, freedom = seed_variance((a, b), square, n_images) if n_images > 1 else (0.0, 1.0)
    if not added:
        return 0.0
    t = abs(a.value - b.value) / math.sqrt((square + added) * (n_images - 1) / n_images)
    # with x = sqrt(freedom) tan(angle), the density is in proportion to cos(angle)^(freedom - 1)
    angles = np.linspace(0, math.pi / 2, 20_001)
    density = np.cos(angles) ** (freedom - 1)
    return float(density[angles >= math.atan(t / math.sqrt(freedom))].sum() / density.sum())


def _exchanges(n_images: int, permutations: int, seed: int, rows: int) -> Iterator[Values]:
    """Choices of images, one row each: all 2^n if the images are few, else random ones, in blocks.

    The blocks do not change the numbers.
    """
    if n_images <= MAX_EXACT:
        yield ((np.arange(1 << n_images)[:, None] >> np.arange(n_images)) & 1).astype(np.float64)
        return
    rng = np.random.default_rng([seed, 1])  # other numbers than those of the bootstrap
    words = -(-n_images // 64)
    for start in range(0, permutations, rows):
        bits = rng.integers(0, 1 << 64, size=(min(rows, permutations - start), words), dtype=np.uint64)
        yield np.unpackbits(bits.astype("<u8").view(np.uint8), axis=1)[:, :n_images].astype(np.float64)


def holm(p_values: ArrayLike) -> Values:
    """Return p values corrected by Holm's method; NaN stays NaN and does not count.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    corrected = np.full(len(p), math.nan)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    stepped = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return corrected


def pair_row(
    a: Score, b: Score, drawn: Values, interval: Sequence[float], p_mean: float
) -> dict[str, Any]:
    """Return the columns of `Comparison.table` from `value_a` to `p_mean`.

    `drawn` are the differences of all resamples.
    """
    leads = _gains(drawn, a.key)
    leads_a, leads_b, _ = _count_wins(leads)
    gains = _gains(a.per_image - b.per_image, a.key)
    wins_a, wins_b, ties = _count_wins(gains)
    return {
        "value_a": a.value,
        "value_b": b.value,
        "difference": a.value - b.value,
        "low": interval[0],
        "high": interval[1],
        "a_leads": leads_a / len(leads) if len(leads) else math.nan,
        "b_leads": leads_b / len(leads) if len(leads) else math.nan,
        "a_wins": wins_a,
        "b_wins": wins_b,
        "ties": ties,
        "a_gain": float(gains[gains > TOLERANCE].mean()) if wins_a else math.nan,
        "b_gain": float(-gains[gains < -TOLERANCE].mean()) if wins_b else math.nan,
        "p": sign_test(wins_a, wins_b) if len(gains) else math.nan,
        "p_mean": p_mean,
    }


def _gains(differences: Values, key: str) -> Values:
    """Advantages of a, where both are defined; none if neither more nor less is better."""
    defined: Values = differences[~np.isnan(differences)]
    if direction(key) == "none":
        return defined[:0]
    return defined if direction(key) == "up" else -defined


def _count_wins(gains: Values) -> tuple[int, int, int]:
    """Counts of a better, b better, ties."""
    wins, losses = int((gains > TOLERANCE).sum()), int((gains < -TOLERANCE).sum())
    return wins, losses, len(gains) - wins - losses


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
    """Return the verdict of every pair of methods; indented, what its sign test or interval contradicts.

    `EDN against ICON: better on SI-MAE and F mean; undecided on MAE`
    """
    by_pair: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_pair.setdefault((printable(row["a"]), printable(row["b"])), []).append(row)
    lines = []
    for (a, b), group in by_pair.items():
        judged = [row for row in group if row["verdict"]]
        everything = "both metrics" if len(judged) == 2 else f"all {len(judged)} metrics"
        parts = []
        for verdict in ("better", "worse", "undecided", "equal"):
            names = [title(row["metric"]) for row in judged if _judged(row) == verdict]
            if names:
                is_all = len(names) == len(judged) > 1
                parts.append(f"{verdict} on {everything if is_all else listed(names)}")
        lines.append(f"{a} against {b}: {'; '.join(parts) or 'no metric can be judged'}")
        contradictions: dict[str, list[str]] = {}
        for row in judged:
            for text in (_of_images(row, a, b), _of_interval(row)):
                contradictions.setdefault(text, []).append(title(row["metric"]))
        contradictions.pop("", None)
        lines += [f"  {listed(names)}: {text}" for text, names in contradictions.items()]
    return lines


def best_lines(rows: Iterable[Row]) -> list[str]:
    """Return which of several methods is best by each metric, and which ones cannot be told from it.

    `MAE and AUC: EDN is better than all others`
    `F mean: EDN is best, but ICON cannot be told from it`
    """
    by_metric: dict[str, list[Row]] = {}
    for row in rows:
        if row["verdict"]:
            by_metric.setdefault(row["metric"], []).append(row)
    lines: dict[str, list[str]] = {}
    for key, group in by_metric.items():
        values = {row[side]: row[f"value_{side}"] for row in group for side in "ab"}
        best = (max if direction(key) == "up" else min)(values, key=lambda name: values[name])
        near = []
        for row in group:
            if best in (row["a"], row["b"]) and row["verdict"] == "undecided":
                other = printable(row["b"] if row["a"] == best else row["a"])
                near.append(f"{other} (equal)" if _judged(row) == "equal" else other)
        text = f"{printable(best)} is better than all others"
        if near:
            text = f"{printable(best)} is best, but {listed(near)} cannot be told from it"
        lines.setdefault(text, []).append(title(key))
    return [f"{listed(names)}: {text}" for text, names in lines.items()] or ["no metric can be judged"]


def _judged(row: Row) -> str:
    """The verdict; "equal" if there is no difference."""
    return "equal" if abs(row["difference"]) <= TOLERANCE else str(row["verdict"])


def _of_images(row: Row, a: str, b: str) -> str:
    """What the sign test says, if it is something else than the verdict."""
    more = a if row["a_wins"] > row["b_wins"] else b
    by_images = row["p"] <= LEVEL
    if math.isnan(row["p"]):
        return ""
    if row["verdict"] == "undecided":
        more_images = f"{more} is better on more images (sign test)"
        return f"{more_images}, but the difference is not significant" if by_images else ""
    better = a if row["verdict"] == "better" else b
    if not by_images:
        return f"{better} has the better value, but not on more images (sign test)"
    if more == better:
        return ""
    won, lost = (row["a_gain"], row["b_gain"]) if more == a else (row["b_gain"], row["a_gain"])
    return (
        f"{more} is better on more images (sign test), but has the worse value: it gains {number(won)} "
        f"on average where it is better, and loses {number(lost)} where it is worse"
    )


def _of_interval(row: Row) -> str:
    """Where zero lies, if the verdict is something else than that."""
    decided = row["verdict"] != "undecided"
    excluded = row["low"] > 0 or row["high"] < 0
    if math.isnan(row["low"]) or decided == excluded:
        return ""
    if decided:
        return "the permutation test decides, although the 95 % interval contains zero"
    return "the permutation test does not decide, although the 95 % interval excludes zero"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    Example:
        >>> listed(["MAE", "SI-MAE", "AUC"])
        'MAE, SI-MAE and AUC'
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
