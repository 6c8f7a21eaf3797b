"""docs/rankings.md: its sentences are those of the saved scores."""

import json
import os
from pathlib import Path

import pytest
from helpers.paths import RESULTS

from benchmarks.published import rankings

DATA = Path(os.environ.get("SISOD_DATA", ""))
CONTENT = json.loads((RESULTS / "rankings.json").read_text())
SOD, LESIONS = CONTENT["SOD"], CONTENT["COVID-lesions"]


def test_what_the_page_says_about_saliency_methods() -> None:
    assert rankings.leader(SOD, "Amulet", "DSS", "f_mean") == "DSS"
    assert rankings.leader(SOD, "Amulet", "DSS", "si_f_mean") is None
    assert rankings.leader(SOD, "Amulet", "PiCANet", "f_mean") is None
    assert rankings.leader(SOD, "Amulet", "PiCANet", "si_f_mean") == "Amulet"
    amulet, dss, picanet = (SOD["scores"][name] for name in ("Amulet", "DSS", "PiCANet"))
    assert amulet["si_f_mean"] > dss["si_f_mean"]
    found = [round(100 * one[key]) for one in (amulet, dss) for key in rankings.OBJECTS[:2]]
    assert found == [74, 45, 63, 13]
    for other in (dss, picanet):
        assert 4.5 < amulet["false_objects"] / other["false_objects"] < 5.5
    for key in ("object_f1", "pq", "bsi_f_binary"):
        assert picanet[key] == max(one[key] for one in (amulet, dss, picanet))
    for key in ("mae", "si_mae", "auc", "si_auc", "pq"):
        assert rankings.leader(SOD, "PiCANet", "DSS", key) == "PiCANet"
        assert rankings.leader(SOD, "PiCANet", "Amulet", key) == "PiCANet"


def test_what_the_page_says_about_lesions() -> None:
    for other in ("Semi-Inf-Net", "UNet++"):
        assert rankings.leader(LESIONS, "Inf-Net", other, "auc") == "Inf-Net"
        assert rankings.leader(LESIONS, "Inf-Net", other, "si_auc") is None
    for key in ("mae", "si_mae", "f_mean", "si_f_mean", "pq"):
        for other in ("Inf-Net", "UNet", "UNet++"):
            assert rankings.leader(LESIONS, "Semi-Inf-Net", other, key) == "Semi-Inf-Net"
    small = [one["object_recall_small"] for one in LESIONS["scores"].values()]
    assert round(100 * max(small)) == 56


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "published").is_dir(), reason="needs the real data, SISOD_DATA")
def test_the_scores_are_those_of_the_maps() -> None:
    again = rankings.measure(DATA / "published" / "COVID-lesions")
    assert again == LESIONS
