"""Compares losses: the parts of the image that they are a mean over, and their region term.

`python -m benchmarks.real_data.losses` makes the tables from the means that `scores.py` saved. The
baseline is EDN's own loss, the plain one with Dice without squares.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np

from benchmarks.real_data.runs import TABLES, TESTS
from benchmarks.real_data.scores import CALIBRATED, MEANS
from benchmarks.real_data.tables import runs_list
from benchmarks.timing import markdown
from sisod.scoring.metrics import METRICS, arrow

BASELINE = "own"
LOSSES = {
    "own": "plain, EDN's own (Dice without squares)",
    "iou": "plain, IoU",
    "tversky-plain": "plain, Tversky",
    "plain": "plain, Dice as printed",
    "si": "size-invariant",
    "half": "size-invariant, half image",
    "shared": "size-invariant, half image, gamma 0",
    "cells": "cells, half image",
    "tversky": "balanced: cells, half image, Tversky",
}
KINDS = {"": "as trained", CALIBRATED: "calibrated"}
COMMON = ("mae", "si_mae", "si_f_mean", "bsi_f_binary", "si_auc", "object_recall_small", "false_objects")
OVER_THRESHOLDS = ("object_f1_max", "object_f1_max_small", "object_ap")
CHOSEN_BY = ("object_recall_small", "false_objects", "mae", "si_mae")
OTHER_NETWORKS = {"LDF": "ldf", "ICON": "icon", "PoolNet": "poolnet", "GateNet": "gatenet"}
TRIED = {
    "size-invariant, quarter image": "edn-whole25-0",
    "size-invariant, three quarters image": "edn-whole75-0",
    "size-invariant, half image, gamma 0.5": "edn-gamma50-0",
    "cells": "edn-cellsonly-0",
    "plain, Dice as printed, 24 epochs": "edn-24-plain-0",
    "size-invariant, 24 epochs": "edn-24-si-0",
    "cells, half image, 24 epochs": "edn-24-cells-0",
    "balanced, 24 epochs": "edn-24-tversky-0",
    "plain, Tversky, 24 epochs": "edn-24-tversky-plain-0",
    **{
        f"{title}, {LOSSES[loss] if loss == 'cells' else loss_title}": f"{network}-{loss}-0"
        for title, network in OTHER_NETWORKS.items()
        for loss, loss_title in {"plain": "plain", "cells": "", "tversky": "balanced"}.items()
    },
}

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


def seeds_of(loss: str) -> list[int]:
    """Return the seeds of the finished runs of a loss."""
    return [seed for seed in range(3) if f"edn-{loss}-{seed}" in means()]


def mean_of(
    loss: str, end: str, test: str, key: str, seeds: Sequence[int] | None = None
) -> float | None:
    """Return the mean over the given or all seeds; None if a run has no such score."""
    seeds = seeds_of(loss) if seeds is None else seeds
    scores = [means()[f"edn-{loss}-{seed}{end}"][test].get(key) for seed in seeds]
    defined = [score for score in scores if score is not None]
    return float(np.mean(defined)) if defined and len(defined) == len(scores) else None


def changes(loss: str, end: str, test: str, key: str, baseline: str = BASELINE) -> list[float]:
    """Return loss minus baseline of every seed that both have."""
    seeds = [seed for seed in seeds_of(loss) if seed in seeds_of(baseline)]
    pairs = [[f"edn-{name}-{seed}{end}" for name in (loss, baseline)] for seed in seeds]
    return [means()[run][test][key] - means()[other][test][key] for run, other in pairs]


def seeds_table(end: str) -> str:
    """Return the means over the seeds of every loss on every test set."""
    keys = (*COMMON, *OVER_THRESHOLDS)
    rows = [
        [test, title, str(len(seeds_of(loss))), *(_cell(mean_of(loss, end, test, key)) for key in keys)]
        for test in TESTS
        for loss, title in LOSSES.items()
        if seeds_of(loss)
    ]
    return markdown(("data set", "loss", "seeds", *map(_title, keys)), rows)


def against() -> str:
    """Return in how many runs on MSOD and DUTS-TE each loss is better than the baseline."""
    rows = []
    for loss in list(LOSSES)[1:]:
        for end, kind in KINDS.items():
            cells = []
            for key in CHOSEN_BY:
                sign = 1 if METRICS[key].better == "up" else -1
                seen = np.concatenate([changes(loss, end, test, key) for test in TESTS[:2]])
                cells.append(f"{(sign * seen > 0).sum()} of {len(seen)} ({seen.mean():+.3f})")
            rows.append([LOSSES[loss], kind, *cells])
    heads = ("more small objects found", "fewer false objects", "lower MAE", "lower SI-MAE")
    return markdown(("loss", "maps", *heads), rows)


def tried() -> str:
    """Return the scores of single runs on MSOD and DUTS-TE, as trained and calibrated."""
    rows = [
        [test, title, kind, *(_cell(means()[run + end][test][key]) for key in COMMON)]
        for test in TESTS[:2]
        for title, run in TRIED.items()
        for end, kind in KINDS.items()
        if run in means()
    ]
    return markdown(("data set", "loss", "maps", *map(_title, COMMON)), rows)


def advice() -> str:
    """Return what each loss finds, invents and costs on MSOD, for somebody who has to choose one."""
    rows = [
        [title, str(len(seeds_of(loss))), *(_cell(mean_of(loss, "", "MSOD", key)) for key in CHOSEN_BY)]
        for loss, title in LOSSES.items()
        if seeds_of(loss)
    ]
    return markdown(("loss", "seeds", *map(_title, CHOSEN_BY)), rows)


def short() -> str:
    """Return the main numbers, for the README, of the seeds that all of these losses have."""
    losses = {
        "own": "plain (EDN's own)",
        "iou": "plain, IoU",
        "si": "size-invariant",
        "tversky": "balanced",
    }
    seeds = sorted(set.intersection(*(set(seeds_of(loss)) for loss in losses)))
    rows = [
        [test, title, *(_cell(mean_of(loss, "", test, key, seeds)) for key in CHOSEN_BY)]
        for test in TESTS[:2]
        for loss, title in losses.items()
    ]
    heads = ("small objects found ↑", "false objects per image ↓", "MAE ↓", "SI-MAE ↓")
    return markdown(("test set", "loss", *heads), rows)


def runs() -> str:
    """Return the runs of this comparison, and how long they took."""
    return runs_list(json.loads(MEANS.read_text())["runs"])


def _cell(score: float | None) -> str:
    return "–" if score is None else f"{score:.3f}"  # noqa: RUF001  (a dash: not scored)


def _title(key: str) -> str:
    return f"{METRICS[key].title} {arrow(key)}"


MAKERS: dict[str, Callable[[], str]] = {
    "losses_seeds": lambda: seeds_table(""),
    "losses_calibrated": lambda: seeds_table(CALIBRATED),
    "losses_against": against,
    "losses_tried": tried,
    "losses_runs": runs,
    "losses_short": short,
    "losses_advice": advice,
}


if __name__ == "__main__":
    main()
