"""Predicted objects against other people's tools, by values stored in `object_golden.json`.

pyirstdmetrics witnesses Pd, Fa, nIoU and total IoU, panoptica PQ, SQ and RQ, CCMetrics CC-Dice;
`tools/make_object_golden.py` says how each is called. Where our definitions differ on purpose:

| case | tool | it says | we say |
|---|---|---|---|
| no target | pyirstdmetrics | Pd 0 | NaN: 0 / 0 |
| neither truth nor prediction | pyirstdmetrics | IoU 0, and it counts in nIoU | NaN, left out of nIoU |
| no match, something there | panoptica | SQ 0 | NaN: no IoU to take the mean of; PQ is 0 for both |
| IoU of exactly one half | panoptica, by default | a match | no match: matches would not be unique |
| two-dimensional input | panoptica, by default | 4-connected | 8-connected, 4 by option |
| nothing salient | CCMetrics | 1 if nothing is predicted, else 0 | NaN |
| a pixel equally near to two objects | CCMetrics, by default | either | the first object |

The tests check that these differences are all there are.
"""

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from helpers.object_maps import Map, Mask, digest, object_maps, resized
from make_object_golden import GOLDEN_PATH
from numpy.typing import NDArray

import sisod
from sisod.scoring.engine import find_scorer, score_pair
from sisod.scoring.protocols import PROTOCOLS, Protocol

GOLDEN: dict[str, Any] = json.loads(GOLDEN_PATH.read_text(encoding="utf-8"))
TOLERANCE = GOLDEN["tolerance"]
MAPS = object_maps()
DATA = os.environ.get("SISOD_DATA")
EIGHT = Protocol("every component", min_area=0, normalize="none")
FOUR = Protocol("every 4-connected component", min_area=0, normalize="none", connectivity=4)
INFRARED, CC = PROTOCOLS["infrared"], PROTOCOLS["cc"]
# golden key -> protocol and our key
OURS = {
    **{key: (INFRARED, key) for key in ("pd", "fa", "niou", "iou_total")},
    **{key: (EIGHT, key) for key in ("pq", "sq", "rq")},
    **{f"4-connected {key}": (FOUR, key) for key in ("pq", "sq", "rq")},
    "cc_dice first": (CC, "si_dice_binary"),
}
# (map, golden key): what the tool says where we say NaN; SQ without a match is added to these
UNDEFINED = {
    ("empty truth", "pd"): 0,
    ("empty truth", "cc_dice first"): 0,
    ("both empty", "pd"): 0,
    ("both empty", "niou"): 0,
    ("both empty", "iou_total"): 0,
    ("both empty", "cc_dice first"): 1,
}
every_map = pytest.mark.parametrize("name", MAPS)
every_real_map = pytest.mark.parametrize("name", GOLDEN["real"])
needs_data = pytest.mark.skipif(DATA is None, reason="SISOD_DATA is unset: no real MSOD maps")


KINDS: dict[str, Callable[[Map], NDArray[Any]]] = {
    "uint8": lambda pred: pred,
    "uint16": lambda pred: pred.astype(np.uint16) * 257,
    "float32": lambda pred: (pred / 255).astype(np.float32),
    "float64": lambda pred: np.asarray(pred / 255),
}


def our_values(pred: NDArray[Any], gt: Mask) -> dict[str, float]:
    protocols = {protocol for protocol, _ in OURS.values()}
    scores = {
        protocol: sisod.score(pred, gt, protocol=protocol, metrics=keys_under(protocol))
        for protocol in protocols
    }
    return {golden_key: scores[protocol][key] for golden_key, (protocol, key) in OURS.items()}


def keys_under(protocol: Protocol) -> list[str]:
    return [key for own, key in OURS.values() if own == protocol]


def expected_values(name: str, golden: Mapping[str, float | None]) -> dict[str, float]:
    """Return the tools' values, NaN where only we call a value undefined."""
    values = {key: math.nan if value is None else value for key, value in golden.items()}
    for (where, key), theirs in UNDEFINED.items():
        if where == name:
            assert values[key] == theirs
            values[key] = math.nan
    for prefix in ("", "4-connected "):
        if values[f"{prefix}tp"] == 0 and not math.isnan(values[f"{prefix}sq"]):
            assert values[f"{prefix}sq"] == 0
            values[f"{prefix}sq"] = math.nan
    return {key: values[key] for key in OURS}


def real_pair(name: str) -> tuple[Map, Mask]:
    folder = Path(str(DATA)) / "MSOD"
    grey = [
        cv2.imread(str(folder / kind / name), cv2.IMREAD_UNCHANGED) for kind in ("mask", "prediction")
    ]
    gt, pred = (np.asarray(image, dtype=np.uint8) for image in grey)
    return resized(pred, gt.shape), gt >= 128


def set_values(pairs: Iterable[tuple[Map, Mask]]) -> dict[str, float]:
    """Return our values of a data set."""
    pairs, summaries = list(pairs), {}
    for protocol in (INFRARED, EIGHT, FOUR):
        evaluator = sisod.Evaluator(protocol=protocol, metrics=keys_under(protocol))
        for pred, gt in pairs:
            evaluator.update(pred, gt)
        summaries[protocol] = evaluator.result().summary
    return {
        golden_key: summaries[protocol][key]
        for golden_key, (protocol, key) in OURS.items()
        if protocol in summaries
    }


@every_map
def test_maps_are_those_of_the_tools(name: str) -> None:
    assert digest(*MAPS[name]) == GOLDEN["digests"][name]


@every_map
@pytest.mark.parametrize("kind", KINDS)
def test_values_of_an_image(name: str, kind: str) -> None:
    pred, gt = MAPS[name]
    expected = expected_values(name, GOLDEN["values"][name])
    assert our_values(KINDS[kind](pred), gt) == pytest.approx(expected, abs=TOLERANCE, nan_ok=True)


@pytest.mark.parametrize("subset", ["random", "all"])
def test_values_of_a_data_set(subset: str) -> None:
    names = [name for name in MAPS if subset == "all" or name.startswith(subset)]
    expected = dict(GOLDEN["sums"][subset])
    if subset == "all":  # one image has neither truth nor prediction; there it counts as 0
        expected["niou"] *= len(names) / (len(names) - 1)
    values = set_values(MAPS[name] for name in names)
    assert values == pytest.approx(expected, abs=TOLERANCE)


def test_counts_are_those_of_panoptica() -> None:
    for name, (pred, gt) in MAPS.items():
        for prefix, protocol in (("", EIGHT), ("4-connected ", FOUR)):
            counts = score_pair(find_scorer(protocol, "pq"), pred, gt).object_counts
            matched, predicted, objects = (counts[key][0] for key in ("matched", "predicted", "objects"))
            golden = GOLDEN["values"][name]
            expected = [golden[prefix + key] for key in ("tp", "fp", "fn")]
            assert [matched, predicted - matched, objects - matched] == expected, name


def test_an_iou_of_one_half_is_a_match_for_panoptica_alone() -> None:
    """Its PQ differs by the rule >= where, and only where, a pair has an IoU of exactly one half."""
    for name, (pred, gt) in MAPS.items():
        rows = score_pair(find_scorer(EIGHT, "pq"), pred, gt).predicted
        halves = np.count_nonzero(rows["iou"] == 0.5)
        golden = GOLDEN["values"][name]
        assert (golden["pq at least one half"] != golden["pq"]) == (halves > 0), name
    one_half = GOLDEN["values"]["one half"]
    # two objects on both sides, one pair at one half: PQ = 0.5 / (1 + 1/2 + 1/2)
    assert (one_half["pq at least one half"], one_half["pq"]) == (0.25, 0)


def test_an_object_exactly_three_pixels_away_detects_nothing_anywhere() -> None:
    """Equal shapes 3 columns apart, so their centroids are too; pyirstdmetrics rounds likewise."""
    scorer = find_scorer(INFRARED, "pd")
    for x in range(40):
        gt = np.zeros((6, 60), dtype=np.bool_)
        gt[2, x : x + 2] = gt[3, x] = True  # a centroid in thirds
        pred = np.roll(gt, 3, axis=1)
        assert score_pair(scorer, pred, gt).values[0, 0] == 0, x


@needs_data
@every_real_map
def test_real_maps(name: str) -> None:
    pred, gt = real_pair(name)
    assert digest(pred, gt) == GOLDEN["digests"][name]
    expected = expected_values(name, GOLDEN["real"][name])
    assert our_values(pred, gt) == pytest.approx(expected, abs=TOLERANCE, nan_ok=True)


@needs_data
def test_real_data_set() -> None:
    expected = GOLDEN["real sums"]
    values = set_values(real_pair(name) for name in GOLDEN["real"])
    assert values == pytest.approx(expected, abs=TOLERANCE)
