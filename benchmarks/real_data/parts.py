"""Compares losses: the parts of the image that they are a mean over, and their region term.

`python -m benchmarks.real_data.parts` makes the tables from the rows that `object_rows.py` saved.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np

from benchmarks.real_data.object_rows import CALIBRATED, MEANS, SEEDS, SavedCounts
from benchmarks.real_data.runs import TABLES, TESTS
from benchmarks.real_data.tables import runs_list
from benchmarks.timing import markdown
from sisod.analysis.comparison import compare
from sisod.scoring.metrics import METRICS, arrow

LOSSES = {
    "plain": "plain",
    "si": "boxes (the paper's)",
    "half": "boxes, half whole",
    "shared": "boxes, half whole, gamma 0",
    "cells": "cells, half whole",
    "tversky": "balanced: cells, half whole, Tversky",
    "tversky-plain": "plain, Tversky",
}
KINDS = {"": "as trained", CALIBRATED: "calibrated"}
SHOWN = (
    *("mae", "si_mae", "si_f_mean", "bsi_f_binary", "si_auc", "object_recall_small"),
    *("false_objects", "object_f1_max", "object_f1_max_small", "object_ap"),
)
COMPARED = ("mae", "si_mae", "si_f_mean", "false_objects", "object_f1_max", "object_f1_max_small")
CHOSEN_BY = (
    *("object_recall_small", "false_objects", "object_f1_max", "object_f1_max_small"),
    "mae",
)
NETWORKS = {"LDF": "ldf", "ICON": "icon", "PoolNet": "poolnet", "GateNet": "gatenet"}
LONG = {
    "plain, 4 epochs": "edn-plain-0",
    "plain, 24 epochs": "edn-24-plain-0",
    "boxes, 4 epochs": "edn-si-0",
    "boxes, 24 epochs": "edn-24-si-0",
    "boxes, half whole, gamma 0, 4 epochs": "edn-shared-0",
    "boxes, half whole, gamma 0, 24 epochs": "edn-24-shared-0",
    "cells, half whole, 4 epochs": "edn-cells-0",
    "cells, half whole, 24 epochs": "edn-24-cells-0",
    "balanced, 4 epochs": "edn-tversky-0",
    "balanced, 24 epochs": "edn-24-tversky-0",
    "plain, Tversky, 4 epochs": "edn-tversky-plain-0",
    "plain, Tversky, 24 epochs": "edn-24-tversky-plain-0",
}
FAMILY = {
    "plain": "edn-plain-0",
    "boxes (the paper's)": "edn-si-0",
    "boxes, whole .25": "edn-whole25-0",
    "boxes, half whole": "edn-half-0",
    "boxes, whole .75": "edn-whole75-0",
    "boxes, half whole, gamma .5": "edn-gamma50-0",
    "boxes, half whole, gamma 0": "edn-shared-0",
    "cells": "edn-cellsonly-0",
    "cells, half whole": "edn-cells-0",
    "balanced: cells, half whole, Tversky": "edn-tversky-0",
    "plain, Tversky": "edn-tversky-plain-0",
    "blobs, half whole": "edn-blobs-0",
}
GAIN = 0.03  # in the largest F1 of small objects, that is the target

Means = Mapping[str, Mapping[str, Mapping[str, float]]]  # row -> test set -> metric -> value


def main() -> None:
    """Write all tables."""
    for name, make in MAKERS.items():
        (TABLES / f"{name}.md").write_text(make() + "\n")


@cache
def means() -> Means:
    """Return the scores of all runs, as trained and calibrated."""
    content: Means = json.loads(MEANS.read_text())["means"]
    return content


def mean_of(loss: str, end: str, test: str, key: str) -> float:
    """Return the mean over the seeds."""
    return float(np.mean([means()[f"edn-{loss}-{seed}{end}"][test][key] for seed in SEEDS]))


def changes(loss: str, end: str, test: str, key: str) -> list[float]:
    """Return loss less plain of every seed."""
    runs = [[f"edn-{name}-{seed}{end}" for name in (loss, "plain")] for seed in SEEDS]
    return [means()[run][test][key] - means()[plain][test][key] for run, plain in runs]


def seeds_table(end: str) -> str:
    """Return the means over three seeds of every loss on every test set."""
    rows = []
    for test in TESTS:
        for loss, title in LOSSES.items():
            values = [f"{mean_of(loss, end, test, key):.3f}" for key in SHOWN]
            rows.append([test if loss == "plain" else "", title, *values])
    return markdown(("data set", "loss", *map(_title, SHOWN)), rows)


def target() -> str:
    """Return the target, and for which loss it holds: seeds of MSOD and DUTS-TE."""
    rows = []
    for loss in list(LOSSES)[1:]:
        for end, kind in KINDS.items():
            seen = {
                key: np.concatenate([changes(loss, end, test, key) for test in TESTS[:2]])
                for key in ("mae", "false_objects", "si_mae")
            }
            count = len(SEEDS) * 2
            cells = [f"{(seen[key] <= 0).sum()} of {count}" for key in ("mae", "false_objects")]
            gains = [np.mean(changes(loss, end, test, "object_f1_max_small")) for test in TESTS[:2]]
            rows.append(
                [LOSSES[loss], kind, *cells, f"{(seen['si_mae'] < 0).sum()} of {count}",
                 *(f"{gain:+.3f}" for gain in gains)]
            )  # fmt: skip
    heads = ("MAE not above plain", "false objects not above plain", "SI-MAE below plain")
    small = [f"largest F1 of small objects, {test} (target: {GAIN:+.2f})" for test in TESTS[:2]]
    return markdown(("loss", "maps", *heads, *small), rows)


def paired() -> str:
    """Return loss less plain of every seed with 95 % confidence intervals over images."""
    results = SavedCounts()
    rows = []
    for test in TESTS[:2]:
        for end, kind in KINDS.items():
            for loss in list(LOSSES)[2:]:
                for seed in SEEDS:
                    a, b = (results.result(f"edn-{name}-{seed}{end}", test) for name in (loss, "plain"))
                    table = compare(a, b, metrics=COMPARED, resamples=2000).table
                    by_key = {row["metric"]: row for row in table.iter_rows(named=True)}
                    cells = [
                        "{difference:+.3f} [{low:+.3f}, {high:+.3f}]".format(**by_key[key])
                        for key in COMPARED
                    ]
                    rows.append([test, kind, LOSSES[loss], str(seed), *cells])
    return markdown(("data set", "maps", "loss", "seed", *map(_title, COMPARED)), rows)


def networks() -> str:
    """Return loss minus plain for one pair of runs of every other network."""
    rows = []
    for test in TESTS:
        for loss in ("cells", "tversky"):
            for title, network in NETWORKS.items():
                for end, kind in KINDS.items():
                    names = [f"{network}-{name}-0{end}" for name in ("plain", loss)]
                    if all(name in means() for name in names):
                        plain, other = (means()[name][test] for name in names)
                        values = [f"{other[key] - plain[key]:+.3f}" for key in SHOWN]
                        rows.append([test, LOSSES[loss], title, kind, *values])
    return markdown(("data set", "loss", "network", "maps", *map(_title, SHOWN)), rows)


def runs() -> str:
    """Return the runs of this comparison, and how long they took."""
    return runs_list(json.loads(MEANS.read_text())["runs"])


def runs_table(runs: Mapping[str, str], ends: Sequence[str]) -> str:
    """Return the scores of single runs on MSOD and DUTS-TE, as trained, calibrated or both."""
    rows = [
        [test, title, KINDS[end], *(f"{means()[run + end][test][key]:.3f}" for key in SHOWN)]
        for test in TESTS[:2]
        for end in ends
        for title, run in runs.items()
        if run in means()
    ]
    return markdown(("data set", "loss", "maps", *map(_title, SHOWN)), rows)


def advice() -> str:
    """Return what each loss finds, invents and costs on MSOD, for somebody who has to choose one."""
    rows = []
    for loss, title in LOSSES.items():
        scores = [mean_of(loss, "", "MSOD", key) for key in CHOSEN_BY]
        calibrated = mean_of(loss, CALIBRATED, "MSOD", "mae")
        rows.append([title, *(f"{score:.3f}" for score in (*scores, calibrated))])
    return markdown(("loss", *map(_title, CHOSEN_BY), "MAE, calibrated ↓"), rows)


def short() -> str:
    """Return the main numbers, for the README."""
    losses = {
        "plain": "plain",
        "si": "size-invariant (the paper's)",
        "tversky": "**balanced**",
        "tversky-plain": "plain, with the region term of *balanced*",
    }
    keys = {
        "object_recall_small": "small objects found ↑",
        "false_objects": "false objects per image ↓",
        "object_f1_max_small": "largest F1 of small objects ↑",
        "mae": "MAE ↓",
        "si_mae": "SI-MAE ↓",
    }
    rows = [
        [test, title, *(f"{mean_of(loss, '', test, key):.3f}" for key in keys)]
        for test in TESTS[:2]
        for loss, title in losses.items()
    ]
    return markdown(("test set", "loss", *keys.values()), rows)


def _title(key: str) -> str:
    return f"{METRICS[key].title} {arrow(key)}"


MAKERS: dict[str, Callable[[], str]] = {
    "parts_raw": lambda: seeds_table(""),
    "parts_calibrated": lambda: seeds_table(CALIBRATED),
    "parts_target": target,
    "parts_paired": paired,
    "parts_networks": networks,
    "parts_runs": runs,
    "parts_long": lambda: runs_table(LONG, tuple(KINDS)),
    "parts_family": lambda: runs_table(FAMILY, (CALIBRATED,)),
    "parts_short": short,
    "parts_advice": advice,
}


if __name__ == "__main__":
    main()
