"""Options of figures: metrics, methods and their order, widths; intervals; curves that are missing."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import error_message, run
from helpers.custom_metrics import PIXEL_ERROR

import sisod
from sisod.analysis.bootstrap import number_intervals, size_intervals
from sisod.analysis.groups import by_number, by_size, size_edges
from sisod.analysis.scores import heading
from sisod.common.exceptions import InputError, UsageError
from sisod.evaluation.results import Result
from sisod.report.drawing.groups import FEW
from sisod.report.gallery import draw
from sisod.report.missing import missing_curves
from sisod.report.style import FigureRequest

pytest.importorskip("matplotlib", reason="extra report is not installed")


PR = ("recall", "precision")


def refusal(*args: str | Path) -> str:
    return error_message(run(*args), exit_codes=(1, 2))


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("found", "found"),
        ("object_f_mean", "f_mean"),
        ("Object F mean", "f_mean"),
        ("maxf", "f_max"),
        ("IoU", "iou_binary"),
    ],
)
def test_scores_of_objects_can_be_chosen(saved: list[Result], key: str, column: str) -> None:
    panel = draw("size-log", FigureRequest(saved[:1], metrics=[key])).get_axes()[0]
    table = by_size(saved[0].evaluation, groups="log")
    np.testing.assert_array_equal(panel.get_lines()[0].get_ydata(), table[column])
    name = "found" if key == "found" else f"object_{column}"
    assert panel.get_ylabel().replace("\n", " ") == heading(name)


def test_intervals_and_small_groups(saved: list[Result]) -> None:
    evaluation = saved[0].evaluation
    size_panel = draw("size-log", FigureRequest(saved[:1])).get_axes()[0]
    number_panel = draw("number", FigureRequest(saved[:1])).get_axes()[0]
    expected = (
        (size_panel, size_intervals(evaluation, "object_mae", size_edges("log")), "objects"),
        (number_panel, number_intervals(evaluation, "si_mae"), "images"),
    )
    for panel, ends, counted in expected:
        (bars,), (_, hollow) = panel.collections, panel.get_lines()
        segments = bars.get_segments()  # type: ignore[attr-defined]
        drawn = np.array([segment[:, 1] for segment in segments if len(segment)]).reshape(-1, 2)
        np.testing.assert_array_equal(drawn, ends[np.isfinite(ends).all(axis=1)])
        table = by_size(evaluation, groups="log") if counted == "objects" else by_number(evaluation)
        counts = table[counted].to_numpy()
        assert len(np.asarray(hollow.get_xdata())) == ((counts > 0) & (counts < FEW)).sum()
    assert np.isfinite(expected[0][1]).any()


def test_methods_are_chosen_and_ordered(saved: list[Result]) -> None:
    chosen = FigureRequest(saved, methods=["coarse", "Net"]).chosen
    assert [(r.dataset, r.method) for r in chosen] == [
        (dataset, method) for dataset in ("crowded", "mixed") for method in ("coarse", "Net")
    ]
    figure = draw("pr", FigureRequest(saved, methods=["coarse", "Net"]))
    labels = [text.get_text().strip() for text in figure.legends[0].get_texts()]
    assert labels == ["coarse", "Net"]
    with pytest.raises(UsageError, match=r"^unknown method 'Nets'; did you mean 'Net'\? available: Net"):
        draw("pr", FigureRequest(saved, methods=["Nets"]))


def test_options_of_the_command(benchmark_root: Path, tmp_path: Path) -> None:
    results = benchmark_root / "results" / "mixed"
    path = tmp_path / "size.svg"
    options = ("--metric", "found", "--metric", "mae", "--methods", "coarse,Net", "--width", "single")
    result = run("plot", results, "--figure", "size-log", "--out", path, *options)
    assert result.exit_code == 0, (result.stderr, result.exception)
    text = path.read_text()
    assert 'width="234pt"' in text  # 3.25 inches
    assert "Object recall" in text
    assert "MAE of objects" in text
    assert text.index("coarse</text>") < text.index("Net</text>")
    assert "large only" not in text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--figure pr --metric mae", "'pr' has no choice of metrics; those with one are examples, "),
        ("--figure size --metric em", "an object has no e_mean; choose one of found, mae, f_mean"),
        ("--figure size-log --metric SI-MAE", "an object has no si_mae; choose one of found, mae"),
        ("--figure examples --metric found", "an object has no found; choose one of mae, f_mean, "),
        ("--figure size --metric f_maen", "unknown metric 'f_maen'; did you mean 'f_mean'?"),
        ("--figure number --metric f_maen", "unknown metric 'f_maen'; did you mean 'f_mean'?"),
        ("--figure number --metric f_max", "f_max is the maximum of a mean curve"),
        ("--figure number --metric s", "the result of 'Net' has no s; evaluate it again"),
        ("--figure examples --metric mae --metric auc", "writes one score, got mae, auc"),
        ("--figure f --methods Net,nett", "unknown method 'nett'; available: Net, Net+si"),
        ("--metric mae", "a metric is chosen for one figure; name it with --figure"),
        ("--figure ioo", "unknown figure 'ioo'; did you mean 'iou'?"),
        ("--figure examples --example scene9", "no result has the image scene9"),
        ("--images photos", "--images 'photos' names no data set; expected DATASET=DIR"),
        ("--images mixed=photos", "'photos' is not a folder"),
        ("--out x.png", "'x.png' is one file; choose its figure with --figure"),
        ("--out x.jpg --figure pr", "'x.jpg': expected a name ending in .pdf, .png or .svg"),
    ],
)
def test_refused_options(benchmark_root: Path, tmp_path: Path, options: str, named: str) -> None:
    out = tmp_path / ("x.svg" if "--figure" in options else "x")
    assert named in refusal("plot", benchmark_root / "results", "--out", out, *options.split())


def without_curve(result: Result, key: str) -> Result:
    curves = result.evaluation.curves.drop(key, f"si_{key}")
    evaluation = dataclasses.replace(result.evaluation, curves=curves)
    return Result(result.dataset, result.method, evaluation)


def test_a_curve_that_was_not_evaluated_is_a_sentence(saved: list[Result]) -> None:
    sentence = "precision was not evaluated; evaluate again with --metrics all, or with "
    sentence += "precision_mean among them"
    assert "precision_mean" in sisod.METRICS
    mixed = [result for result in saved if result.dataset == "mixed"]
    none = [without_curve(result, "precision") for result in mixed]
    assert missing_curves(none, PR) == [sentence]
    for axes in draw("pr", FigureRequest(none)).get_axes():
        assert not axes.axison  # no empty axis
    some = [*mixed[:2], *none[2:]]
    assert missing_curves(some, PR) == [f"coarse, large only: {sentence}"]
    figure = draw("pr", FigureRequest(some))
    assert all(axes.axison for axes in figure.get_axes())
    assert figure.get_suptitle().replace("\n", " ") == f"coarse, large only: {sentence}"
    assert missing_curves(mixed, PR) == []


def test_a_method_missing_on_a_data_set_has_an_empty_panel(saved: list[Result]) -> None:
    figure = draw("size-log", FigureRequest([*saved[:1], *saved[5:7]]))
    texts = [text.get_text() for axes in figure.get_axes() for text in axes.texts]
    assert texts.count("no result") == 1  # coarse on crowded
    with pytest.raises(InputError, match=r"^the result of 'Net' has no s;"):
        draw("number", FigureRequest(saved[:1], metrics=["s"]))


def test_metrics_of_the_user_are_drawn(saved: list[Result]) -> None:
    rng = np.random.default_rng(0)
    gt = np.zeros((40, 40), dtype=bool)
    gt[2:9, 2:9] = gt[20:23, 20:23] = True
    evaluator = sisod.Evaluator(metrics=["mae", "si_mae", PIXEL_ERROR])
    for i in range(6):
        evaluator.update(rng.random(gt.shape), gt, name=str(i))
    own = [Result("D", "m", evaluator.result())]
    panel = draw("size-log", FigureRequest(own, metrics=["pixel_error"])).get_axes()[0]
    table = by_size(own[0].evaluation, groups="log")
    np.testing.assert_array_equal(panel.get_lines()[0].get_ydata(), table["pixel_error"])
    panel = draw("number", FigureRequest(own, metrics=["si_pixel_error"])).get_axes()[0]
    values = by_number(own[0].evaluation)["si_pixel_error"]
    np.testing.assert_array_equal(panel.get_lines()[0].get_ydata(), values)
    for name in ("size", "examples"):
        with pytest.raises(
            InputError, match=r"^the result of 'Net' has no object_pixel_error; evaluate it"
        ):
            draw(name, FigureRequest(saved[:1], metrics=["pixel_error"]))
