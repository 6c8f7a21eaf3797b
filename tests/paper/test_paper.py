"""The paper's tables: their shape, the claims of its text, and a run compared with a published row."""

import json
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from helpers.command_line import run
from helpers.evaluate_runs import finished

import sisod
from sisod import paper
from sisod.scoring.metrics import METRICS, PAPER_KEYS


def test_every_row_exists() -> None:
    table = paper.table("quantitative")
    assert table.height == 8 * 5 * 2
    assert table.columns == ["dataset", "network", "size_invariant", *PAPER_KEYS]
    values = table.select(PAPER_KEYS).to_numpy()
    assert ((values > 0.02) & (values < 1)).all()
    assert paper.table("ablation").height == 5 * 4
    assert paper.table("datasets").height == 8
    assert paper.table("time_cost").height == 5
    assert paper.table("preprocessing").height == 5


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("MSOD/PoolNet", [0.0752, 0.1196, 0.9375, 0.9563, 0.6645, 0.6397, 0.7755, 0.8402, 0.7529]),
        ("DUTS-TE/EDN+SI", [0.0392, 0.0381, 0.9658, 0.9687, 0.8260, 0.8672, 0.8765, 0.9119, 0.9072]),
        ("HKU-IS/GateNet", [0.0326, 0.0338, 0.9762, 0.9830, 0.8961, 0.8993, 0.9346, 0.9385, 0.9394]),
        ("SOD/LDF+SI", [0.1093, 0.1009, 0.9058, 0.9102, 0.7755, 0.7404, 0.8593, 0.8684, 0.7858]),
        ("XPIE/EDN+SI", [0.0416, 0.0337, 0.9640, 0.9707, 0.8590, 0.8986, 0.8959, 0.9317, 0.9132]),
    ],
)
def test_rows_read_again_from_the_paper(name: str, printed: list[float]) -> None:
    assert list(paper.find_row(name).values.values()) == printed


def test_numbers_printed_twice_agree_after_correcting_misprints() -> None:
    """The ablation repeats two rows of the quantitative tables, without SI-AUC."""
    ablation = paper.table("ablation")
    for line in ablation.iter_rows(named=True):
        if line["alpha"] in ("plain", "ratio"):
            row = paper.row(line["dataset"], "EDN", size_invariant=line["alpha"] == "ratio").values
            assert {key: row[key] for key in row if key != "si_auc"} == {
                key: line[key] for key in row if key != "si_auc"
            }


def test_averages_of_the_text() -> None:
    """Each claim rounds from the rows, but for two that are noted as misprints."""
    noted = {misprint.location for misprint in paper.misprints() if misprint.table == "claims"}
    wrong = set()
    for dataset, claims in paper.claimed_gains().items():
        gains = paper.gains(dataset)
        wrong |= {(dataset, key) for key, claim in claims.items() if round(gains[key], 3) != claim}
    assert wrong == noted == {("MSOD", "si_auc"), ("DUTS-TE", "si_f_max_frame")}
    assert round(paper.gains("MSOD")["auc"], 3) == 0.038  # what is claimed of SI-AUC
    assert round(paper.gains("MSOD")["si_auc"], 3) == 0.027
    assert round(paper.gains("DUTS-TE")["si_f_max_frame"], 3) == 0.019


def test_totals_of_preprocessing_add_up() -> None:
    for line in paper.table("preprocessing").iter_rows(named=True):
        assert line["total"] == pytest.approx(line["components"] + line["weights"])


def test_misprints_point_at_numbers_of_the_tables() -> None:
    for misprint in paper.misprints():
        if misprint.value is None:
            continue
        content: object = paper._data()[misprint.table]
        columns = {"quantitative": "metrics", "ablation": "metrics", "preprocessing": "columns"}
        for key in misprint.location:
            assert isinstance(content, list | dict)
            if isinstance(content, list):
                content = content[paper._data()[misprint.table][columns[misprint.table]].index(key)]
            else:
                content = content[key]
        assert content == misprint.value, misprint
    assert "printed s" in paper.row("DUT-OMRON", "EDN").notes["e_mean"]


def test_bold_misprints_are_not_the_best_of_their_pair() -> None:
    for misprint in paper.misprints():
        if misprint.table == "quantitative" and "bold" in misprint.printed:
            dataset, name, key = misprint.location
            network, with_loss = name.removesuffix("_SI"), name.endswith("_SI")
            sign = 1 if METRICS[key].direction == "up" else -1
            this = sign * paper.row(dataset, network, size_invariant=with_loss).values[key]
            other = sign * paper.row(dataset, network, size_invariant=not with_loss).values[key]
            assert this >= other if "not in bold" in misprint.printed else this < other


def test_equal_columns_and_formulas_are_among_the_misprints() -> None:
    locations = {misprint.location for misprint in paper.misprints()}
    rows = paper.table("quantitative").filter(pl.col("auc") == pl.col("si_auc"))
    assert rows.height == 2
    assert {(row["dataset"], row["network"], "si_auc") for row in rows.to_dicts()} <= locations
    formulas = {misprint.location[1] for misprint in paper.misprints() if misprint.table == "formulas"}
    assert formulas == {"BCE", "Dice", "IoU", "E, xi", "E, f", "Proposition B.1", "Lemma E.3"}


def test_claims_of_groups() -> None:
    """Both are of EDN on MSOD; the second is near the gain over all images, a set of several objects."""
    claims = paper.table("group_claims")
    assert claims.select("dataset", "network", "metric").rows() == [("MSOD", "EDN", "si_mae")] * 2
    rows = [paper.row("MSOD", "EDN", size_invariant=si).values["si_mae"] for si in (False, True)]
    assert rows[0] - rows[1] == pytest.approx(claims["gain"][1], abs=0.001)


def make_run(protocol: str) -> sisod.Evaluation:
    evaluator = sisod.Evaluator(protocol=protocol, metrics="paper")
    gt = np.zeros((40, 40), dtype=bool)
    gt[5:20, 5:20] = True
    evaluator.update(gt, gt, name="a")
    return evaluator.result()


def test_a_run_beside_the_published_row() -> None:
    comparison = paper.against_paper(make_run("official"), "MSOD/EDN+SI")
    assert comparison.table.columns == ["metric", "ours", "published", "difference", "note"]
    line = comparison.table.filter(pl.col("metric") == "si_mae").row(0, named=True)
    assert line["published"] == 0.0724
    assert line["difference"] == pytest.approx(line["ours"] - 0.0724)
    assert "paper, MSOD/EDN+SI" in comparison._repr_html_()
    noted = paper.against_paper(make_run("official"), paper.row("DUT-OMRON", "EDN"))
    assert "| 0.8514 |" in noted.render("md")
    assert (
        "\nE mean is printed s: the number of the same network in the ablation table" in noted.caption()
    )
    assert "printed s: the number of the same network" in noted.render("csv")


def test_errors() -> None:
    calls: dict[str, Callable[[], object]] = {
        "unknown data set 'MSODD'; did you mean 'MSOD'": lambda: paper.row("MSODD", "EDN"),
        "unknown network 'EDM'; did you mean 'EDN'": lambda: paper.find_row("MSOD/edm+SI"),
        "expected DATASET/NETWORK": lambda: paper.find_row("EDN"),
        "unknown table of the paper 'times'": lambda: paper.table("times"),  # type: ignore[arg-type]
        "protocol 'default'": lambda: paper.against_paper(make_run("default"), "MSOD/EDN"),
    }
    for text, call in calls.items():
        with pytest.raises(ValueError, match=text):
            call()


@pytest.mark.needs("matplotlib")
@pytest.mark.usefixtures("four_images")
def test_the_command() -> None:
    finished("--protocol", "official")
    shown = run("compare", "edn=out/MSOD/A", "--against-paper")
    assert shown.exit_code == 0, shown.stderr
    assert "paper, MSOD/EDN" in shown.stdout
    assert "4 images, scored as the paper's released code SI-SOD does" in shown.stdout
    args = ["compare", "EDN+SI=out/MSOD/A", "--against-paper", "--format", "json"]
    assert json.loads(run(*args).stdout)["row"] == "MSOD/EDN+SI"
    unknown = run("compare", "out/MSOD/A", "--against-paper")
    assert unknown.exit_code == 2
    assert "error: unknown network 'A'; available: EDN, " in unknown.stderr
    for more in (("b=out/MSOD/A",), ("--plot", "x.pdf")):
        refused = run("compare", "out/MSOD/A", *more, "--against-paper")
        assert (refused.exit_code, "--against-paper" in refused.stderr) == (2, True)
