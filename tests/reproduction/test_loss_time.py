"""The paper's tables of training time beside ours: by hand, and one quick measurement."""

import pytest
from helpers.command_line import run

pytest.importorskip("lightning", reason="extra torch is not installed")


from sisod.reproduction.loss_time import Step, epochs_grid, preprocessing_grid

STEP = Step("icon", side=384, n_images=2, plain=2.0, size_invariant=2.5, added=0.01)


def test_training_cost_by_hand() -> None:
    rows = {row[0]: row[1:] for row in epochs_grid([STEP]).rows}
    assert list(rows) == ["edn", "poolnet", "icon", "gatenet", "ldf"]
    # the paper: 340.1 / 162.0; ours: 2.5 / 2.0, and 1 + 0.01 / 2.0 from the losses alone
    assert rows["icon"] == ("162 s", "340.1 s", "2.10", "2.5 s / 2 s, 384 x 384", "1.250", "1.0050")
    assert rows["edn"] == ("340 s", "543.8 s", "1.60", "not measured", "-", "-")


def test_preprocessing_by_hand() -> None:
    rows = {row[0]: row[1:] for row in preprocessing_grid(0.001).rows}
    # a thousand masks at a millisecond each
    assert rows["ECSSD"] == ("1000", "91.8 s", "40.5 s", "132.3 s", "132 ms", "1 s", "132")
    assert rows["DUTS-TE"][3] == "662.2 s"  # the sum of its stages; printed is 658.2


@pytest.mark.slow
def test_quick_measurement_prints_the_papers_tables() -> None:
    pytest.importorskip("efficientnet_lite_pytorch", reason="extra lite is not installed")
    done = run("bench", "--quick", "--format", "md")
    assert done.exit_code == 0, done.output
    assert "not measured" not in done.output
    for start in ("| gatenet | 561.2 s | 1270.2 s | 2.26 | ", "| XPIE | 10000 | 1432.2 s | 316.5 s | "):
        assert start in done.output
    assert "encoder efficientnet_lite0" in done.output
