"""Protocols with single settings changed: their names, their values, and what is refused."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from helpers.messages import check_one_sentence

import sisod
from sisod.common.exceptions import UsageError
from sisod.scoring.protocols import PROTOCOLS, change_protocol, find_protocol

DEFAULT = PROTOCOLS["default"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"min_area": 0}, "default+min_area=0"),
        ({"min_area": 0.0}, "default+min_area=0"),  # no share is no pixels
        ({"min_area": 12}, "default+min_area=12"),
        ({"min_area": 1}, "default+min_area=1"),  # one pixel
        ({"min_area": 1.0}, "default+min_area=1.0"),  # the whole image
        ({"min_area": 0.00001}, "default+min_area=1e-05"),
        ({"normalize": "none", "connectivity": 4}, "default+connectivity=4+normalize=none"),
        ({"connectivity": 4, "min_area": 0}, "default+min_area=0+connectivity=4"),
        ({"min_area": 0.0002, "connectivity": 8, "normalize": "minmax"}, "default"),
        ({}, "default"),
    ],
)
def test_the_name_says_what_was_changed(settings: dict[str, Any], name: str) -> None:
    changed = change_protocol(DEFAULT, **settings)
    assert changed.name == name
    assert find_protocol(name) == find_protocol(changed) == changed
    assert changed == dataclasses.replace(DEFAULT, name=name, **settings)


def test_a_changed_setting_can_be_changed_back() -> None:
    changed = find_protocol("default+min_area=0+connectivity=4")
    assert change_protocol(changed, min_area=5).name == "default+min_area=5+connectivity=4"
    assert change_protocol(changed, min_area=0.0002, connectivity=8) == DEFAULT


def test_custom_protocols() -> None:
    mine = sisod.Protocol("mine", min_area=3, alpha=2)
    changed = change_protocol(mine, min_area=0)
    assert changed == sisod.Protocol("mine+min_area=0", min_area=0, alpha=2)
    assert find_protocol(changed) is changed
    for settings in ({"min_area": 1}, {"min_area": 0, "alpha": 2}):
        wrong = sisod.Protocol("default+min_area=0", **settings)  # type: ignore[arg-type]
        with pytest.raises(
            ValueError, match=r"differs from the known 'default\+min_area=0' but has its"
        ):
            find_protocol(wrong)


def test_scores_follow_the_settings() -> None:
    gt = np.zeros((100, 100), dtype=bool)
    gt[10:40, 10:40] = gt[80, 80] = gt[60, 60] = gt[61, 61] = True
    pred = np.where(gt, 0.5, 0.25)
    pred[60:, 60:] = 0

    def score(protocol: str | sisod.Protocol) -> dict[str, float]:
        return sisod.score(pred, gt, protocol=protocol, metrics="mae,si_mae,si_recall_binary")

    for settings in ({"min_area": 0}, {"min_area": 2, "connectivity": 4}, {"normalize": "none"}):
        text = "default" + "".join(f"+{key}={value}" for key, value in settings.items())
        mine = sisod.Protocol("mine", **settings)
        assert score(text) == score(mine)
        assert score(text) != score("default")
        evaluator = sisod.Evaluator(protocol=text, metrics="mae,si_mae,si_recall_binary")
        evaluator.update(pred, gt)
        assert evaluator.result().summary == score(text)
    assert score("default")["si_recall_binary"] == 0.5  # of two objects
    assert score("default+min_area=0")["si_recall_binary"] == 1 / 3
    assert score("default+min_area=0+connectivity=4")["si_recall_binary"] == 1 / 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (f"default+min_area={value}", "min_area must be an int >= 0")
            for value in ("", "x", "-1", "-0.1", "1.5", "1e3", "nan", "inf", "1_0", " 1", "²", "1,5")
        ),
        ("default+min_area=" + "9" * 5000, "min_area"),
        ("default+min_area=1e999999999", "min_area"),
        ("default+connectivity=6", "connectivity must be 4 or 8, got 6"),
        ("default+connectivity=8.0", "connectivity .*8.0"),
        ("default+normalize=None", "normalize .*'None'"),
        (
            "default+",
            r"expected each of min_area, connectivity, normalize, gt_level at most once.*'\+'",
        ),
        ("default+min_area", "min_area must be .*''"),
        ("default+alpha=1", r"got '\+alpha=1'"),
        ("default+min_area=0+min_area=0", r"got '\+min_area=0'"),
        ("papr+min_area=0", "unknown protocol 'papr'; did you mean 'paper'"),
        ("+min_area=0", "unknown protocol ''"),
        ("official+min_area=25", "min_area cannot be changed under 'official'"),
    ],
)
def test_texts_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        find_protocol(text)
    check_one_sentence(str(caught.value), longest=300)
