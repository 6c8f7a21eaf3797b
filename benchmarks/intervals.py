"""How often `sisod compare` decides falsely, and how often its intervals cover the truth.

The population is the saved rows of two runs on real test sets. A data set of a few images is drawn from
it many times. False decisions: each image's rows are exchanged between the methods at random, so neither
is better. Coverage: the true value is that of the population. The percentile bootstrap is shown for
comparison. Run as `python -m benchmarks.intervals`; writes intervals.json and intervals.md to
`benchmarks/results`. `--quick` draws fewer data sets and writes nothing; `--rows DIR` first saves the
rows of the runs in the folder DIR of `benchmarks.real_data.scores`.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import sisod
from benchmarks.timing import RESULTS, machine, markdown, progress, write_results
from sisod.analysis.bootstrap import intervals
from sisod.analysis.scores import Score, read_score, title
from sisod.analysis.significance import LEVEL, permutation_tests
from sisod.common.files import read_table
from sisod.scoring.metrics import METRICS

Values = NDArray[np.float64]
ROWS = RESULTS / "intervals.parquet"
RUNS = ("edn-iou-0", "edn-own-0")
TESTS = ("DUTS-TE", "MSOD")
MEAN_KEYS = ("mae", "f_mean", "bsi_f_binary")
OBJECT_KEYS = ("object_f1", "false_objects", "object_f1_max")
KEYS = (*MEAN_KEYS, *OBJECT_KEYS)
SIZES = (8, 15, 40)
HEAD = (
    *("data set", "metric", *(f"false decisions, {n} images" for n in SIZES)),
    *(f"coverage of the {what}, 15 images" for what in ("difference", "score")),
)
_RESAMPLES = 1000


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print, and unless quick write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer data sets, nothing written")
    parser.add_argument("--rows", type=Path, metavar="DIR")
    options = parser.parse_args(arguments)
    if options.rows:
        save_rows(options.rows)
    trials = 4 if options.quick else 400
    rows = []
    for test in TESTS:
        results = [saved_result(run, test) for run in RUNS]
        for key in KEYS:
            population = [read_score(result, key) for result in results]
            for n_images in SIZES:
                rates = simulate(population[0], population[1], n_images, trials)
                rows.append({"test": test, "key": key, "images": n_images} | rates)
            progress(f"  {test}, {key}")
    facts = machine(("sisod", "numpy"))
    content = {"trials": trials, "resamples": _RESAMPLES, "rows": rows, "machine": facts}
    print(page(content), end="")
    if not options.quick:
        write_results("intervals", content, page(content))


def save_rows(out: Path) -> None:
    """Save values and counts of every image of the runs, from their results."""
    tables = []
    for run in RUNS:
        for test in TESTS:
            result = sisod.Evaluation.load(out / "predicted" / test / run)
            assert result.counts is not None
            counts = result.counts.with_columns(pl.col(pl.Float64).cast(pl.Float32))
            values = result.images.select("image", *(pl.col(key).round(4) for key in MEAN_KEYS))
            tables.append(
                values.join(counts, on="image").with_columns(run=pl.lit(run), test=pl.lit(test))
            )
    pl.concat(tables).write_parquet(ROWS, compression_level=19)


def saved_result(run: str, test: str) -> sisod.Evaluation:
    """Return the result of a run on a test set, as far as its rows were saved."""
    rows = read_table(ROWS).filter((pl.col("run") == run) & (pl.col("test") == test)).drop("run", "test")
    names = [name for name in rows.columns if name not in ("image", *MEAN_KEYS)]
    counts = {name: rows[name].to_numpy().astype(np.float64) for name in names}
    sums = {name: values.sum(axis=0) for name, values in counts.items()}
    images = rows.select("image", *MEAN_KEYS).with_columns(
        *(pl.Series(key, METRICS[key].family.function(counts)) for key in OBJECT_KEYS)
    )
    means = {key: float(np.nanmean(images[key].to_numpy())) for key in MEAN_KEYS}
    return sisod.Evaluation(
        summary=means | {key: float(METRICS[key].family.function(sums)) for key in OBJECT_KEYS},
        defined=dict.fromkeys(KEYS, len(images)),
        images=images,
        objects=pl.DataFrame(),
        curves=pl.DataFrame(),
        image_curves=pl.DataFrame(),
        protocol=sisod.PROTOCOLS["default"],
        predicted=pl.DataFrame(),
        counts=pl.DataFrame({"image": rows["image"], **counts}),
    )


def page(content: Mapping[str, Any]) -> str:
    """What intervals.md says, from what intervals.json holds."""
    by_size = {(row["test"], row["key"], row["images"]): row for row in content["rows"]}
    tables = []
    for kind in ("", "_percentile"):
        rows = []
        for test, key in dict.fromkeys((row["test"], row["key"]) for row in content["rows"]):
            rates = [by_size[test, key, n][f"false{kind}"] for n in SIZES]
            rates += [by_size[test, key, 15][f"{what}{kind}"] for what in ("difference", "score")]
            rows.append([test, title(key), *(f"{100 * rate:.1f} %" for rate in rates)])
        tables.append(markdown(HEAD, rows))
    counts = f"{content['trials']} data sets each, {content['resamples']} resamples and exchanges"
    return (
        f"Made by `python -m benchmarks.intervals`: {counts}.\n\n{tables[0]}\n\n"
        f"The same if the 95 % interval of the percentile bootstrap decides:\n\n{tables[1]}\n"
    )


def simulate(a: Score, b: Score, n_images: int, trials: int) -> dict[str, float]:
    """Return the shares of false decisions and of covered values, over data sets of a few images."""
    rng = np.random.default_rng(n_images)
    truth = _value(a), _value(a) - _value(b)
    hits = []
    for trial in range(trials):
        chosen = rng.integers(0, len(a.table), n_images)
        pair = _drawn(a, chosen), _drawn(b, chosen)
        exchanged = rng.random(n_images) < 0.5
        null = _mixed(*pair, exchanged), _mixed(*pair, ~exchanged)
        p = permutation_tests({"a": [null[0]], "b": [null[1]]}, _RESAMPLES, trial)["a", "b"][0]
        null_values, _ = intervals(null, [(0, 1)], _RESAMPLES, trial)
        values, ends = intervals(pair, [(0, 1)], _RESAMPLES, trial)
        hits.append(
            {
                "false": p <= LEVEL,
                "false_percentile": not _covers(_percentiles(null_values[:, 0] - null_values[:, 1]), 0),
                "difference": _covers(ends[2], truth[1]),
                "difference_percentile": _covers(_percentiles(values[:, 0] - values[:, 1]), truth[1]),
                "score": _covers(ends[0], truth[0]),
                "score_percentile": _covers(_percentiles(values[:, 0]), truth[0]),
            }
        )
    return {name: float(np.mean([hit[name] for hit in hits])) for name in hits[0]}


def _value(score: Score) -> float:
    return float(score.function(score.table.sum(axis=0, keepdims=True))[0])


def _drawn(score: Score, chosen: NDArray[np.int64]) -> Score:
    return replace(score, table=score.table[chosen], per_image=score.per_image[chosen])


def _mixed(a: Score, b: Score, exchanged: NDArray[np.bool_]) -> Score:
    return replace(
        a,
        table=np.where(exchanged[:, None], b.table, a.table),
        per_image=np.where(exchanged, b.per_image, a.per_image),
    )


def _percentiles(values: Values) -> Values:
    return np.asarray(np.nanquantile(values, [0.025, 0.975]))


def _covers(ends: Values, value: float) -> bool:
    return bool(ends[0] - 1e-12 <= value <= ends[1] + 1e-12)


if __name__ == "__main__":
    main()
