"""What the table of metrics says of a metric: symbol, meaning, and whether its value is trivial."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser

import sisod
from sisod.scoring.metrics import METRICS

TRIVIAL = {
    f"{si}{family}_max" for si in ("", "si_") for family in ("recall", "fpr", "specificity", "ber")
}


@pytest.mark.parametrize(
    ("key", "symbol"),
    [
        ("mae", "MAE"),
        ("si_mae", "SI-MAE"),
        ("f_max", r"$F_\beta^{\max}$"),
        ("si_f_mean", r"SI-$F_\beta^{\mathrm{mean}}$"),
        ("si_f_max_frame", r"SI-$F_\beta^{\max,\mathrm{frame}}$"),
        ("e_adaptive", r"$E_\xi^{\mathrm{adp}}$"),
        ("s", r"$S_\alpha$"),
        ("wf", r"$F_\beta^w$"),
        ("iou_binary", "IoU binary"),
        ("pd", "$P_d$"),
    ],
)
def test_symbols_are_those_of_papers(key: str, symbol: str) -> None:
    assert METRICS[key].symbol == symbol


def test_every_symbol_is_valid_and_belongs_to_one_metric() -> None:
    symbols = [metric.symbol for metric in METRICS.values()]
    assert len(set(symbols)) == len(symbols)
    for symbol in symbols:
        assert re.fullmatch(r"(SI-)?\$[^$]+\$|[\w -]+", symbol), symbol
        MathTextParser("path").parse(symbol)


def test_every_metric_says_in_one_line_what_it_measures() -> None:
    for key, metric in METRICS.items():
        assert 10 < len(metric.meaning) < 140, key
        assert "\n" not in metric.meaning
    assert METRICS["si_iou_max"].meaning == (
        "TP / (TP + FP + FN); maximum of the data set's mean curve; mean over the objects' frames"
    )


def test_trivial_metrics_have_no_better_direction() -> None:
    assert {key for key, metric in METRICS.items() if metric.trivial} == TRIVIAL
    for key, metric in METRICS.items():
        assert metric.better == ("none" if key in TRIVIAL else metric.direction), key


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_the_maximum_of_a_trivial_metric_is_one_end_of_its_curve(seed: int, grey: int) -> None:
    """Whatever the maps are: so the value cannot tell a good method from a bad one."""
    rng = np.random.default_rng(seed)
    evaluator = sisod.Evaluator(metrics=sorted(TRIVIAL))
    for _ in range(3):
        gt = np.zeros((12, 12), dtype=bool)
        y, x = rng.integers(0, 8, 2)
        gt[y : y + 3, x : x + 4] = True
        gt[y, x] = False  # the frame has pixels that are not salient
        evaluator.update((rng.integers(0, grey + 1, gt.shape) * (255 // grey)).astype(np.uint8), gt)
    result = evaluator.result()
    for si in ("", "si_"):
        first = 1 if si else 0  # size-invariant curves leave out t = 0
        for family, end in (("recall", first), ("fpr", first), ("specificity", 255)):
            assert result.summary[f"{si}{family}_max"] == result.curves[f"{si}{family}"][end]
    assert result.summary["recall_max"] == result.summary["fpr_max"] == 1
    assert result.summary["ber_max"] >= 0.5
