"""Names of metrics: symbols, meanings, aliases, suggestions; and which values are trivial."""

import re

import numpy as np
import pytest
from helpers.paths import DOCS
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser

import sisod
from sisod.scoring.metrics import (
    FAMILIES,
    METRICS,
    alias_pairs,
    canonical_key,
    find_metrics,
)

TRIVIAL = {
    f"{si}{family}_max" for si in ("", "si_") for family in ("recall", "fpr", "specificity", "ber")
}


def test_every_symbol_is_valid_and_belongs_to_one_metric() -> None:
    symbols = [metric.symbol for metric in METRICS.values()]
    assert len(set(symbols)) == len(symbols)
    for symbol in symbols:
        assert re.fullmatch(r"(SI-)?\$[^$]+\$|[\w -]+", symbol), symbol
        MathTextParser("path").parse(symbol)
    assert METRICS["si_f_max_frame"].symbol == r"SI-$F_\beta^{\max,\mathrm{frame}}$"
    assert METRICS["e_adaptive"].symbol == r"$E_\xi^{\mathrm{adp}}$"


def test_every_metric_says_in_one_line_what_it_measures() -> None:
    for key, metric in METRICS.items():
        assert 10 < len(metric.meaning) < 140, key
        assert "\n" not in metric.meaning
    assert METRICS["si_iou_max"].meaning == (
        "TP / (TP + FP + FN); maximum of the data set's mean curve; mean over the objects' frames"
    )


def test_every_metric_has_a_row_in_the_document() -> None:
    page = (DOCS / "metrics.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    assert [family.key for family in FAMILIES if f"`{family.key}`" not in rows] == []


def test_trivial_metrics_have_no_better_direction() -> None:
    assert {key for key, metric in METRICS.items() if metric.trivial} == TRIVIAL
    for key, metric in METRICS.items():
        assert metric.better == ("none" if key in TRIVIAL else metric.direction), key


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
@settings(deadline=None, max_examples=40)
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


@pytest.mark.parametrize(
    ("names", "key"),
    [
        ("S\N{GREEK SMALL LETTER ALPHA} S_\N{GREEK SMALL LETTER ALPHA}", "s"),
        ("Fβw F_β^w Fβʷ F_β^ω wFβ", "wf"),
        ("Fβ F_β mF mf m_F", "f_mean"),
        ("maxFβ Fβmax", "f_max"),
        ("Eξ E_ξ Eϕ", "e_mean"),
        ("s S sm Sm smeasure Smeasure s_measure S-measure s_alpha structure_measure", "s"),
        ("wf wfm wFm wFmeasure weighted_f weighted-F-measure fbw f_beta_w", "wf"),
        ("f_max maxf max_f fmax MaxFm maxF maxFmeasure max-Fbeta F-max", "f_max"),
        ("f_mean f fm F meanf meanFm avgF fmean F-measure f_beta", "f_mean"),
        ("adpf adpFm adaptive_f f_adp", "f_adaptive"),
        ("em E-measure meanEm e_mean mean_E avg_em E_xi", "e_mean"),
        ("maxem maxEm e-max", "e_max"),
        ("adpem adpEm", "e_adaptive"),
        ("MAE M mean_absolute_error", "mae"),
        ("SI-MAE simae si_m", "si_mae"),
        ("si_sm si-smeasure", "si_s"),
        ("si_maxf SI-F-max simaxfm", "si_f_max"),
        ("iou IoU jaccard binIoU", "iou_binary"),
        ("dice dsc f1 Dice-binary", "dice_binary"),
        ("AUROC roc_auc", "auc"),
        ("Object-F1", "object_f1"),
        ("nIoU", "niou"),
        ("found Objects-found object_recall", "object_recall"),
        ("tpr sensitivity", "recall_binary"),
        ("panoptic_quality PQ", "pq"),
        ("BSI-F-binary", "bsi_f_binary"),
    ],
)
def test_aliases(names: str, key: str) -> None:
    for name in names.split():
        assert canonical_key(name) == key, name


def test_no_alias_means_two_metrics() -> None:
    keys: dict[str, str] = {}
    for alias, key in alias_pairs():
        assert key in METRICS
        assert keys.setdefault(alias, key) == key, alias
    assert all(canonical_key(key) == key for key in METRICS)
    titles = {metric.title: key for key, metric in METRICS.items() if metric.family.kind != "objects"}
    assert all(canonical_key(title) == key for title, key in titles.items())


@given(st.sampled_from([*METRICS]), st.data())
def test_case_and_separators_do_not_matter(key: str, data: st.DataObject) -> None:
    spelled = "".join(
        data.draw(st.sampled_from(["", "_", "-", " "])) if char == "_"
        else data.draw(st.sampled_from([char, char.upper()])) for char in key
    )  # fmt: skip
    assert canonical_key(spelled) == key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("smeasur", "s"),
        ("wfmeasur", "wf"),
        ("si_maee", "si_mae"),
        ("panoptic", "pq"),
        ("object_f1_mx", "object_f1_max"),
        ("si_ame", "si_mae"),
    ],
)
def test_the_most_similar_alias_is_suggested(name: str, key: str) -> None:
    with pytest.raises(ValueError, match=rf"unknown metric '{name}'; did you mean '{key}'\?"):
        find_metrics([name])
