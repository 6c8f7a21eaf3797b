"""Compare methods on the same images: paired bootstrap, sign test, permutation test, verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.bootstrap import (
    Score,
    chosen_keys,
    direction,
    distinct_keys,
    heading,
    interval,
    read_score,
    resample,
    symbol,
    title,
)
from sisod.analysis.same_images import check_same_images
from sisod.analysis.significance import MAX_EXACT, TOLERANCE, holm, permutation_tests, sign_test
from sisod.analysis.verdict import find_verdict, verdict_lines
from sisod.common.arguments import shown
from sisod.common.errors import UsageError, counted, printable
from sisod.common.grid import (
    Format,
    Grid,
    interval_text,
    json_rows,
    latex_text,
    markdown_text,
    number,
    percent,
    render,
)
from sisod.evaluation.notes import DefinedCounts, undefined_notes
from sisod.evaluation.results import Result
from sisod.scoring.metrics import METRICS, Direction

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from sisod.evaluation.result import Evaluation

Values = NDArray[np.float64]
RESAMPLES = 10_000
_FEW_IMAGES = 20  # with fewer, an interval says little


@dataclass(frozen=True, eq=False)
class Comparison:
    """Pairwise comparison of methods on the same images.

    Attributes:
        methods: their names, in the given order.
        table: one row per metric and pair of methods: `metric`, `a`, `b` (names), `value_a`, `value_b`,
            `difference` (a minus b) and its 95 % interval `low`, `high`, `a_leads` and `b_leads` (the
            shares of resamples in which each is better), `a_wins`, `b_wins`, `ties` (numbers of images,
            where both are defined), `a_gain` and `b_gain` (the mean advantage of each on the images
            that it wins), `p` of the sign test (who wins more images), `p_mean` of the permutation test
            (of the difference), `p_holm`, the p of the sign test corrected for the number of pairs
            within the metric, and `verdict`: whether a is "better" or "worse", where the interval
            excludes zero, or "undecided". Of a metric for which neither higher nor lower is better,
            nobody leads or wins: shares and p are NaN, numbers of images 0, the verdict is "".
        intervals: one row per method and metric: `method`, `metric`, `value`, `low`, `high`.
        images: number of images.
        resamples: number of bootstrap resamples, and of permutations.
        seed: of the resampling and of the permutations.
        notes: warnings for the reader: undefined metrics, very few images.
    """

    methods: tuple[str, ...]
    table: "pl.DataFrame"
    intervals: "pl.DataFrame"
    images: int
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()

    def grid(self) -> Grid:
        """Return the table as text; in bold the better value where the interval excludes zero."""
        many = len(self.methods) > 2
        names = ("method", "other") if many else self.methods
        pair = (*names, "value", "other's value") if many else names
        headings = (
            "metric", *pair, "difference", "95 % interval", f"{names[0]} leads",
            f"{names[0]} wins", f"{names[1]} wins", "p, images", "p, mean",
            *(("p, images, Holm",) * many),
        )  # fmt: skip
        rows = list(self.table.iter_rows(named=True))
        n_text = 3 if many else 1
        columns = {"better": n_text, "worse": n_text + 1}  # of the two values
        bold = {(i, columns[row["verdict"]]) for i, row in enumerate(rows) if row["verdict"] in columns}
        n_pairs = math.comb(len(self.methods), 2)
        sections = range(n_pairs, len(rows), n_pairs) if many else ()
        cells = tuple(_cells(row, many=many) for row in rows)
        symbols = {heading(row["metric"]): symbol(row["metric"]) for row in rows}
        return Grid(headings, cells, n_text, frozenset(bold), frozenset(sections), symbols=symbols)

    def verdicts(self) -> list[str]:
        """Return lines of text: the verdict of every pair of methods, and where its two tests disagree.

        A metric is judged if the 95 % interval of the difference excludes zero. Indented lines name
        the metrics by which one method wins more images, but the other has the better value, and those
        by which only one of the two tests is significant.
        """
        return verdict_lines(self.table.iter_rows(named=True))

    def render(self, kind: Format) -> str:
        """Return the table for a document, with the tests and the verdict below, or for a program.

        In LaTeX, the lines below are comments.
        """
        text = render(self.grid(), self.table.iter_rows(named=True), self.content(), kind)
        if kind in ("csv", "json"):
            return text
        lines = [self.caption(), *self.legend(), *self.verdicts()]
        if kind == "latex":
            return "\n".join([text, *(f"% {' '.join(printable(line).splitlines())}" for line in lines)])
        return "\n\n".join([text, *_markdown_items(lines)])

    def content(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "methods": list(self.methods),
            "images": self.images,
            "resamples": self.resamples,
            "seed": self.seed,
            "notes": list(self.notes),
            "verdicts": self.verdicts(),
            "pairs": json_rows(self.table),
            "intervals": json_rows(self.intervals),
        }

    def caption(self) -> str:
        """Return the numbers of images and resamples and the seed, in one line."""
        images = counted(self.images, "image")
        return f"{images}, {self.resamples} bootstrap resamples, seed {self.seed}"

    def legend(self) -> list[str]:
        """Return lines of text on the two tests and the rule of the verdicts."""
        n_metrics = self.table["metric"].n_unique()
        exchanges = "all" if self.images <= MAX_EXACT else f"{self.resamples} random"
        return [
            "p, images: sign test of who wins more images; p, mean: permutation test of the difference, "
            f"{exchanges} exchanges",
            "better or worse: the 95 % interval excludes zero (not corrected for the "
            f"{n_metrics} metric{'' if n_metrics == 1 else 's'} compared)",
        ]

    def plot(self) -> "Figure":
        """Draw every difference with its interval; right of zero the first method is better."""
        from sisod.report.forest import comparison_figure

        return comparison_figure(self)

    def _repr_html_(self) -> str:
        return self.grid().html("; ".join([self.caption(), *self.notes, *self.verdicts()]))


def render_datasets(comparisons: Mapping[str, Comparison], kind: Format) -> str:
    """Return the comparisons of several data sets for a document or a program."""
    if kind in ("md", "latex"):
        escape, head = (markdown_text, "### {}") if kind == "md" else (latex_text, r"\paragraph{{{}}}")
        parts = ((head.format(escape(name)), c.render(kind)) for name, c in comparisons.items())
        return "\n\n".join(text for part in parts for text in part)
    records = [
        {"dataset": name} | row
        for name, comparison in comparisons.items()
        for row in comparison.table.iter_rows(named=True)
    ]
    content = [{"dataset": name} | comparison.content() for name, comparison in comparisons.items()]
    return render(next(iter(comparisons.values())).grid(), records, content, kind)


def compare(
    a: "Evaluation",
    b: "Evaluation",
    *,
    metrics: str | Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare two results on the same images.

    Bootstrap over images: each resample draws whole images with replacement, the same ones for both, so
    that an image that is difficult for both does not count as a difference.

    Args:
        a: the first result.
        b: the second result, of the same images under the same protocol.
        metrics: None for the paper's columns, `found` (the share of objects found), `object_f1`,
            `false_objects` and `bsi_f_binary`, as far as both results have them; `"all"`, `"paper"`,
            `"sod"`, `"dis"`, or a list of keys; `object_` + a column of the object table is its mean
            over all objects.
        resamples: number of bootstrap resamples, and of permutations.
        seed: of the resampling and the permutations; the same seed gives the same numbers.
        names: of the two results.
    """
    if isinstance(names, str) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise UsageError(f"names must be two texts, got {shown(names)}")
    if names[0] == names[1]:
        raise UsageError(f"both results are called {names[0]!r}; give them different names")
    return compare_many({names[0]: a, names[1]: b}, metrics=metrics, resamples=resamples, seed=seed)


def compare_many(
    evaluations: "Mapping[str, Evaluation]",
    *,
    metrics: str | Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare every pair of several results; see `compare`. Holm's method corrects the sign tests."""
    import polars as pl

    if len(evaluations) < 2:
        raise UsageError(f"expected two or more results to compare, got {len(evaluations)}")
    orders = check_same_images(evaluations)
    results = [Result("", method, evaluation) for method, evaluation in evaluations.items()]
    keys = distinct_keys(chosen_keys(metrics, results))
    names = next(iter(evaluations.values())).images["image"].to_list()
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__))  # any order: the same numbers
    scores = {
        name: [read_score(evaluation, key, orders[name][by_name]) for key in keys]
        for name, evaluation in evaluations.items()
    }
    drawn = resample([score for row in scores.values() for score in row], resamples, seed)
    values = dict(zip(scores, np.split(drawn, len(scores), axis=1), strict=True))
    p_means = permutation_tests(scores, resamples, seed)
    rows = []
    for i, key in enumerate(keys):
        methods = {name: (scores[name][i], values[name][:, i]) for name in scores}
        rows += _pair_rows(key, methods, {pair: float(p[i]) for pair, p in p_means.items()})
    intervals = [
        {"method": name} | _interval_row(score, values[name][:, i])
        for name, row in scores.items()
        for i, score in enumerate(row)
    ]
    n_images = next(iter(evaluations.values())).images.height
    return Comparison(
        methods=tuple(evaluations),
        table=pl.DataFrame(rows),
        intervals=pl.DataFrame(intervals),
        images=n_images,
        resamples=resamples,
        seed=seed,
        notes=_notes(n_images, scores, evaluations),
    )


def bootstrap_intervals(
    evaluation: "Evaluation",
    metrics: str | Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> "pl.DataFrame":
    """Return the 95 % interval of every score of one result: `metric`, `value`, `low`, `high`.

    By default of every score that can be resampled: image-level metrics, metrics of objects, means over
    objects, `f_max` and `si_f_max` (not the other maxima of mean curves, whose curves are not saved for
    each image).
    """
    import polars as pl

    keys = chosen_keys("all" if metrics is None else metrics, [Result("", "", evaluation)])
    scores = [read_score(evaluation, key) for key in keys]
    drawn = resample(scores, resamples, seed)
    return pl.DataFrame([_interval_row(score, drawn[:, i]) for i, score in enumerate(scores)])


def _pair_rows(
    key: str,
    methods: Mapping[str, tuple[Score, Values]],
    p_means: Mapping[tuple[str, str], float],
) -> list[dict[str, Any]]:
    rows = [
        _pair_row(key, a, methods[a], b, methods[b]) | {"p_mean": _judged(key, p_means[a, b])}
        for a, b in combinations(methods, 2)
    ]
    corrected = holm([row["p"] for row in rows]).tolist()
    return [
        row | {"p_holm": p, "verdict": find_verdict(key, row["low"], row["high"])}
        for row, p in zip(rows, corrected, strict=True)
    ]


def _judged(key: str, p: float) -> float:
    """The p of a metric; NaN if neither more nor less is better."""
    return math.nan if direction(key) == "none" else p


def _pair_row(
    key: str, a: str, scores_a: tuple[Score, Values], b: str, scores_b: tuple[Score, Values]
) -> dict[str, Any]:
    (score_a, drawn_a), (score_b, drawn_b) = scores_a, scores_b
    low, high = interval(drawn_a - drawn_b)
    drawn_gains, gains = (
        _gains(drawn_a - drawn_b, key),
        _gains(score_a.per_image - score_b.per_image, key),
    )
    leads_a, leads_b, level = _count_wins(drawn_gains)
    wins_a, wins_b, ties = _count_wins(gains)
    defined = leads_a + leads_b + level
    return {
        "metric": key,
        "a": a,
        "b": b,
        "value_a": score_a.value,
        "value_b": score_b.value,
        "difference": score_a.value - score_b.value,
        "low": low,
        "high": high,
        "a_leads": leads_a / defined if defined else math.nan,
        "b_leads": leads_b / defined if defined else math.nan,
        "a_wins": wins_a,
        "b_wins": wins_b,
        "ties": ties,
        "a_gain": float(gains[gains > TOLERANCE].mean()) if wins_a else math.nan,
        "b_gain": float(-gains[gains < -TOLERANCE].mean()) if wins_b else math.nan,
        "p": sign_test(wins_a, wins_b) if wins_a + wins_b + ties else math.nan,
    }


def _gains(differences: Values, key: str) -> Values:
    """Advantages of a, where both are defined; none if neither more nor less is better."""
    defined = differences[~np.isnan(differences)]
    gains: dict[Direction, Values] = {"up": defined, "down": -defined, "none": defined[:0]}
    return gains[direction(key)]


def _count_wins(gains: Values) -> tuple[int, int, int]:
    """Counts of a better, b better, ties."""
    wins, losses = int((gains > TOLERANCE).sum()), int((gains < -TOLERANCE).sum())
    return wins, losses, len(gains) - wins - losses


def _interval_row(score: Score, drawn: Values) -> dict[str, Any]:
    low, high = interval(drawn)
    return {"metric": score.key, "value": score.value, "low": low, "high": high}


def _notes(
    n_images: int, scores: Mapping[str, Sequence[Score]], evaluations: "Mapping[str, Evaluation]"
) -> tuple[str, ...]:
    notes = []
    if n_images < _FEW_IMAGES:
        count = "1 image is" if n_images == 1 else f"{n_images} images are"
        notes.append(f"{count} too few for intervals to be trusted")
    for name, row in scores.items():
        undefined = [title(score.key) for score in row if math.isnan(score.value)]
        if undefined:
            notes.append(f"{printable(name)}: undefined on every image: {', '.join(undefined)}")
    # how often a score over all objects is defined is not stored
    keys = [score.key for score in next(iter(scores.values())) if score.key in METRICS]
    counts = [
        DefinedCounts("", name, {key: n for key, n in e.defined.items() if n}, n_images)
        for name, e in evaluations.items()
    ]
    return (*notes, *undefined_notes(counts, keys))


def _cells(row: Mapping[str, Any], *, many: bool) -> tuple[str, ...]:
    wins = [str(row[key]) for key in ("a_wins", "b_wins")]
    if direction(row["metric"]) == "none":
        wins = ["-", "-"]
    return (
        heading(row["metric"]),
        *((row["a"], row["b"]) if many else ()),
        number(row["value_a"]),
        number(row["value_b"]),
        number(row["difference"], sign=True),
        interval_text(row["low"], row["high"], sign=True),
        percent(row["a_leads"]),
        *wins,
        _p_text(row["p"]),
        _p_text(row["p_mean"]),
        *((_p_text(row["p_holm"]),) if many else ()),
    )


def _markdown_items(lines: Sequence[str]) -> list[str]:
    """Paragraphs of lines; the indented ones are items of a list below the line before."""
    paragraphs: list[str] = []
    for line in lines:
        text = markdown_text(line)
        if line.startswith(" "):
            paragraphs[-1] += f"\n- {text}" if "\n- " in paragraphs[-1] else f"\n\n- {text}"
        else:
            paragraphs.append(text)
    return paragraphs


def _p_text(p: float) -> str:
    return "-" if math.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}"
