"""Compare methods on the same images: paired bootstrap, sign test, permutation test, verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from sisod.analysis.bootstrap import RESAMPLES, interval_table, intervals
from sisod.analysis.scores import (
    check_same_images,
    chosen_keys,
    direction,
    distinct_keys,
    heading,
    mean_score,
    read_score,
    symbol,
)
from sisod.analysis.seeds import group_seeds
from sisod.analysis.significance import (
    LEVEL,
    MAX_EXACT,
    best_lines,
    find_verdict,
    holm,
    pair_row,
    permutation_tests,
    seed_test,
    verdict_lines,
)
from sisod.common import DRAWINGS
from sisod.common.exceptions import UsageError, pluralize, printable
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
from sisod.evaluation.notes import undefined_notes
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

_FEW_IMAGES = 15  # with fewer, intervals may cover less than 93 %
_SEEDS_LEGEND = (
    "values are means over seeds; p, mean is the larger one of the permutation test and of Student's "
    "test with the variance over images and seeds"
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Pairwise comparison of methods on the same images.

    Attributes:
        methods: their names, in the given order.
        seeds: method -> number of its runs, for methods that were given as NAME@SEED.
        table: one row per metric and pair of methods: `metric`, `a`, `b` (names), `value_a`, `value_b`,
            `difference` (a minus b) and its 95 % interval `low`, `high`, `a_leads` and `b_leads` (the
            shares of resamples in which each is better), `a_wins`, `b_wins`, `ties` (numbers of images,
            where both are defined), `a_gain` and `b_gain` (the mean advantage of each on the images
            that it wins), `p` of the sign test (who wins more images), `p_mean` of the permutation test
            (of the difference), `p_holm`, the p of the sign test corrected for the number of pairs
            within the metric, and `verdict`: whether a is "better" or "worse", where `p_mean` is at
            most 0.05, or "undecided". Of a metric for which neither higher nor lower is better,
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
    seeds: Mapping[str, int] = field(default_factory=dict)

    def grid(self, *, everything: bool = False) -> Grid:
        """Return the table as text; in bold the better value where the verdict is decided.

        Args:
            everything: also the columns of leads, wins, ties and sign tests.
        """
        many = len(self.methods) > 2
        first, second = ("method", "other") if many else self.methods
        values = ("method", "other", "value", "other's value") if many else self.methods
        headings = ["metric", *values, "difference", "95 % interval", "p, mean", "verdict"]
        if everything:
            headings += [f"{first} leads", f"{first} wins", f"{second} wins", "ties", "p, images"]
            headings += ["p, images, Holm"] * many
        rows = list(self.table.iter_rows(named=True))
        n_text = 3 if many else 1
        columns = {"better": n_text, "worse": n_text + 1}  # of the two values
        bold = {(i, columns[row["verdict"]]) for i, row in enumerate(rows) if row["verdict"] in columns}
        n_pairs = math.comb(len(self.methods), 2)
        return Grid(
            tuple(headings),
            tuple(_cells(row, many=many)[: len(headings)] for row in rows),
            n_text,
            bold=frozenset(bold),
            sections=frozenset(range(n_pairs, len(rows), n_pairs) if many else ()),
            symbols={heading(row["metric"]): symbol(row["metric"]) for row in rows},
        )

    def conclusion(self) -> list[str]:
        """Return the verdict in words: that of two methods, or which one of several is the best.

        A method that the permutation test cannot tell from the best one is named beside it.
        """
        if len(self.methods) == 2:
            return self.verdicts()
        return best_lines(self.table.iter_rows(named=True))

    def verdicts(self) -> list[str]:
        """Return lines of text: the verdict of every pair of methods; indented, what contradicts it.

        The permutation test decides at 5 %. The indented lines name the metrics by which the sign test
        or the interval says something else.
        """
        return verdict_lines(self.table.iter_rows(named=True))

    def render(self, kind: Format, *, everything: bool = False) -> str:
        """Return the table for a document, with the tests and the verdict below, or for a program.

        In LaTeX, the lines below are comments. `everything` is that of `grid`.
        """
        text = render(
            self.grid(everything=everything), self.table.iter_rows(named=True), self.content(), kind
        )
        if kind in ("csv", "json"):
            return text
        lines = [self.caption(), *self.legend(), *self.verdicts()]
        if kind == "latex":
            return "\n".join([text, *(f"% {' '.join(printable(line).splitlines())}" for line in lines)])
        items = (f"{'  ' * line.startswith(' ')}- {markdown_text(line)}" for line in lines)
        return "\n".join([text, "", *items])

    def content(self) -> dict[str, Any]:
        """Return everything for JSON."""
        names = ("methods", "seeds", "images", "resamples", "seed", "notes")
        return {name: getattr(self, name) for name in names} | {
            "verdicts": self.verdicts(),
            "pairs": json_rows(self.table),
            "intervals": json_rows(self.intervals),
        }

    def caption(self) -> str:
        """Return the numbers of images and resamples and the seed, in one line."""
        images = pluralize(self.images, "image")
        runs = ", ".join(f"{n} of {printable(name)}" for name, n in self.seeds.items())
        drawn = f" of images and of seeds ({runs})" if runs else ""
        return f"{images}, {self.resamples} bootstrap resamples{drawn}, seed {self.seed}"

    def legend(self) -> list[str]:
        """Return lines of text on the two tests and the rule of the verdicts."""
        counts = [pluralize(self.table["metric"].n_unique(), "metric")]
        if len(self.methods) > 2:
            counts.append(pluralize(math.comb(len(self.methods), 2), "pair"))
        exchanges = "all" if self.images <= MAX_EXACT else f"{self.resamples} random"
        return [
            "p, images: sign test of who wins more images; p, mean: permutation test of the difference, "
            f"{exchanges} exchanges",
            f"better or worse: p, mean is at most {LEVEL} (not corrected for the "
            f"{' and '.join(counts)} compared); interval: studentised bootstrap",
            *(_SEEDS_LEGEND for _ in [1] if self.seeds),
        ]

    def plot(self) -> "Figure":
        """Draw every difference with its interval; right of zero the first method is better."""
        figure: Figure = DRAWINGS["comparison"](self)
        return figure

    def _repr_html_(self) -> str:
        return self.grid().html("; ".join([self.caption(), *self.notes, *self.verdicts()]))


def render_datasets(
    comparisons: Mapping[str, Comparison], kind: Format, *, everything: bool = False
) -> str:
    """Return the comparisons of one or several data sets for a document or a program."""
    if len(comparisons) == 1:
        (comparison,) = comparisons.values()
        return comparison.render(kind, everything=everything)
    if kind in ("md", "latex"):
        escape, head = (markdown_text, "### {}") if kind == "md" else (latex_text, r"\paragraph{{{}}}")
        texts = {name: one.render(kind, everything=everything) for name, one in comparisons.items()}
        return "\n\n".join(f"{head.format(escape(name))}\n\n{text}" for name, text in texts.items())
    records = [
        {"dataset": name} | row
        for name, comparison in comparisons.items()
        for row in comparison.table.iter_rows(named=True)
    ]
    content = [{"dataset": name} | comparison.content() for name, comparison in comparisons.items()]
    return render(next(iter(comparisons.values())).grid(), records, content, kind)


def compare(
    a: Evaluation,
    b: Evaluation,
    *,
    metrics: str | Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Compare two results on the same images.

    The verdict is that of a permutation test of the difference at 5 %. Intervals are those of a
    studentised bootstrap over images: each resample draws whole images with replacement, the same ones
    for both, so that an image that is difficult for both does not count as a difference.

    Args:
        a: the first result.
        b: the second result, of the same images under the same protocol.
        metrics: None for the paper's columns, `found` (the share of objects found), `object_f1`,
            `false_objects` and `bsi_f_binary`, as far as both results have them; `"all"`, `"paper"`,
            `"sod"`, `"dis"`, or a list of keys; `object_` + a column of the object table is its mean
            over all objects.
        resamples: number of bootstrap resamples, and of permutations.
        seed: of the resampling and the permutations; the same seed gives the same numbers.
        names: of the two results, which must differ.

    Example:
        Three images; the first method finds the object on all of them, the second on one:

        >>> import sisod
        >>> first, second = sisod.Evaluator(), sisod.Evaluator()
        >>> gt = np.eye(6, dtype=bool)
        >>> for shift in range(3):
        ...     first.update(gt, gt, name=str(shift))
        ...     second.update(np.roll(gt, shift, axis=0), gt, name=str(shift))
        >>> compare(first.result(), second.result(), metrics="mae").table["difference"].round(3)[0]
        -0.222
    """
    if len(names) != 2 or len(set(names)) != 2 or not all(isinstance(name, str) for name in names):
        raise UsageError(f"names must be two different strings, one for each result, got {names!r}")
    results = dict(zip(names, (a, b), strict=True))
    return compare_many(results, metrics=metrics, resamples=resamples, seed=seed)


def compare_many(
    evaluations: Mapping[str, Evaluation],
    *,
    metrics: str | Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare every pair of several methods on the same images.

    Results named `NAME@SEED`, such as `EDN@0` and `EDN@1`, are the runs of one method, `EDN`: its value
    is the mean over the runs, seeds are resampled as well as images, and `p_mean` is not below that of
    Student's test with the variance over images and seeds.

    Args:
        evaluations: method, or run of a method -> its result.
        metrics: as for `compare`, and so are the next two.
        resamples: number of bootstrap resamples, and of permutations.
        seed: of the resampling and the permutations.

    Returns:
        The comparison; Holm's method corrects the sign tests for the number of pairs.
    """
    import polars as pl

    groups = group_seeds(evaluations)
    if len(groups) < 2:
        raise UsageError(f"expected two or more methods to compare, got {len(groups)}")
    orders = check_same_images(evaluations)
    keys = distinct_keys(chosen_keys(metrics, [Result("", m, e) for m, e in evaluations.items()]))
    n_runs = math.lcm(*map(len, groups.values()))
    scores = {
        method: [
            mean_score(
                [read_score(evaluations[run], key, orders[run]) for run in runs], n_runs // len(runs)
            )
            for key in keys
        ]
        for method, runs in groups.items()
    }
    flat = [score for row in scores.values() for score in row]
    at = {name: index * len(keys) for index, name in enumerate(scores)}  # of its first score
    pairs = list(product(range(len(keys)), combinations(scores, 2)))
    drawn, ends = intervals(flat, [(at[a] + i, at[b] + i) for i, (a, b) in pairs], resamples, seed)
    p_means = permutation_tests(scores, resamples, seed)
    rows = []
    for (i, (a, b)), interval in zip(pairs, ends[len(flat) :].tolist(), strict=True):
        first, second = at[a] + i, at[b] + i
        p_mean = math.nan if direction(keys[i]) == "none" else float(p_means[a, b][i])
        p_mean = max(p_mean, seed_test(flat[first], flat[second]))  # NaN stays
        drawn_pair = drawn[:, first] - drawn[:, second]
        pair = pair_row(flat[first], flat[second], drawn_pair, interval, p_mean)
        rows.append({"metric": keys[i], "a": a, "b": b} | pair)
    n_pairs = math.comb(len(scores), 2)  # the rows of a metric are adjacent
    p_holm = [holm([row["p"] for row in rows[i : i + n_pairs]]) for i in range(0, len(rows), n_pairs)]
    for row, p in zip(rows, np.concatenate(p_holm).tolist(), strict=True):
        row["p_holm"] = p
        row["verdict"] = find_verdict(row["metric"], row["difference"], row["p_mean"])
    n_images = next(iter(evaluations.values())).images.height
    methods = [name for name, row in scores.items() for _ in row]
    return Comparison(
        methods=tuple(scores),
        table=pl.DataFrame(rows),
        intervals=interval_table(flat, ends[: len(flat)]).insert_column(0, pl.Series("method", methods)),
        images=n_images,
        resamples=resamples,
        seed=seed,
        notes=_notes(n_images, resamples, keys, evaluations),
        seeds={method: len(runs) for method, runs in groups.items() if len(runs) > 1},
    )


def _notes(
    n_images: int, resamples: int, keys: Sequence[str], evaluations: Mapping[str, Evaluation]
) -> tuple[str, ...]:
    notes = []
    least_p = 2 / 2**n_images if n_images <= MAX_EXACT else 1 / (1 + resamples)
    if least_p > LEVEL:
        more = "images" if n_images <= MAX_EXACT else "resamples"
        notes.append(
            f"no difference can be decided, as no p is below {min(least_p, 1.0):.3g}; use more {more}"
        )
    if n_images < _FEW_IMAGES:
        count = "1 image is" if n_images == 1 else f"{n_images} images are"
        notes.append(f"{count} too few for intervals to be trusted")
    # how often a score over all objects is defined is not stored
    counts = [("", name, e.defined, n_images) for name, e in evaluations.items()]
    return (*notes, *undefined_notes(counts, [key for key in keys if key in METRICS]))


def _cells(row: Mapping[str, Any], *, many: bool) -> tuple[str, ...]:
    """The cells of all columns."""
    wins = [str(row[key]) for key in ("a_wins", "b_wins", "ties")]
    if direction(row["metric"]) == "none":
        wins = ["-", "-", "-"]
    return (
        heading(row["metric"]),
        *((row["a"], row["b"]) if many else ()),
        number(row["value_a"]),
        number(row["value_b"]),
        number(row["difference"], sign=True),
        interval_text(row["low"], row["high"], sign=True),
        _p_text(row["p_mean"]),
        row["verdict"] or "-",
        percent(row["a_leads"]),
        *wins,
        _p_text(row["p"]),
        _p_text(row["p_holm"]),
    )


def _p_text(p: float) -> str:
    return "-" if math.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}"
