"""Options of figures: metrics, methods and their order, widths; intervals; curves that are missing."""

import dataclasses
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.command_line import error_message, run
from helpers.custom_metrics import PIXEL_ERROR
from helpers.report_runs import ablation_rows

import sisod
from sisod.analysis.bootstrap import heading
from sisod.analysis.group_intervals import number_intervals, size_intervals
from sisod.analysis.groups import by_number, by_size, size_edges
from sisod.common.errors import InputError, UsageError
from sisod.evaluation.results import Result
from sisod.report import gallery
from sisod.report.drawing.group_figures import FEW, number_figure, size_figure
from sisod.report.drawing.layout import number_places
from sisod.report.figures import curve_figure, missing_curves
from sisod.report.gallery import FigureRequest, choose_methods, draw, write_figures

pytest.importorskip("matplotlib", reason="extra report is not installed")


def refusal(*args: str | Path) -> str:
    return error_message(run(*args), exit_codes=(1, 2))


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("found", "found"),
        ("object_f_mean", "f_mean"),
        ("f_mean", "f_mean"),
        ("F mean", "f_mean"),
        ("fmean", "f_mean"),
        ("Object F mean", "f_mean"),
        ("maxf", "f_max"),
        ("IoU", "iou_binary"),
    ],
)
def test_scores_of_objects_can_be_chosen(saved: list[Result], key: str, column: str) -> None:
    panel = size_figure(saved[:1], "log", metrics=[key]).get_axes()[0]
    table = by_size(saved[0].evaluation, groups="log")
    np.testing.assert_array_equal(panel.get_lines()[0].get_ydata(), table[column])
    name = "found" if key == "found" else f"object_{column}"
    assert panel.get_ylabel().replace("\n", " ") == heading(name)


def test_scores_of_images_can_be_chosen(saved: list[Result]) -> None:
    panels = number_figure(saved[:2], metrics=["mae", "object_f1"]).get_axes()
    for panel, key in zip(panels, ("mae", "object_f1"), strict=True):
        for line, result in zip(panel.get_lines(), saved[:2], strict=True):
            table = by_number(result.evaluation, metrics=[key])
            np.testing.assert_array_equal(line.get_ydata(), table[key])


def test_intervals_and_small_groups(saved: list[Result]) -> None:
    evaluation = saved[0].evaluation
    size_panel = size_figure(saved[:1], "log").get_axes()[0]
    number_panel = number_figure(saved[:1]).get_axes()[0]
    expected = (
        (size_panel, size_intervals(evaluation, "object_mae", size_edges("log")), "objects"),
        (number_panel, number_intervals(evaluation, "si_mae"), "images"),
    )
    for panel, ends, counted in expected:
        bars, hollow = panel.collections
        segments = bars.get_segments()  # type: ignore[attr-defined]
        drawn = np.array([segment[:, 1] for segment in segments if len(segment)]).reshape(-1, 2)
        np.testing.assert_array_equal(drawn, ends[np.isfinite(ends).all(axis=1)])
        table = by_size(evaluation, groups="log") if counted == "objects" else by_number(evaluation)
        counts = table[counted].to_numpy()
        assert len(np.asarray(hollow.get_offsets())) == ((counts > 0) & (counts < FEW)).sum()
    assert np.isfinite(expected[0][1]).any()


def test_methods_are_chosen_and_ordered(saved: list[Result]) -> None:
    chosen = choose_methods(saved, ["coarse", "Net"])
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
    assert text.index("coarse on mixed") < text.index("Net on mixed")
    assert "large only" not in text


def test_refused_options(benchmark_root: Path, tmp_path: Path) -> None:
    def message(*options: str) -> str:
        return refusal("plot", benchmark_root / "results", "--out", tmp_path / "x.svg", *options)

    assert message("--figure", "pr", "--metric", "mae") == (
        "the figure 'pr' has no choice of metrics; those with one are ablation, examples, number, size, "
        "size-log, size-quantile"
    )
    assert message("--figure", "size", "--metric", "em").startswith(
        "an object has no e_mean; choose one of found, mae, f_mean, f_max, auc, iou_binary, recall_bin"
    )
    assert message("--figure", "size-log", "--metric", "SI-MAE") == (
        "by size the score of an object is its MAE; use --metric mae"
    )
    assert message("--figure", "examples", "--metric", "si_f_mean") == (
        "the score of an object is its F mean; use --metric f_mean"
    )
    assert message("--figure", "examples", "--metric", "found").startswith(
        "an object has no found; choose one of mae, f_mean, "
    )
    for figure in ("size", "number"):
        assert message("--figure", figure, "--metric", "f_maen").startswith(
            "unknown metric 'f_maen'; did you mean 'f_mean'? available: "
        )
        assert message("--figure", figure, "--metric", "f_maen").endswith("listed by 'sisod metrics'")
    assert message("--figure", "number", "--metric", "f_max") == (
        "f_max is the maximum of a mean curve, which groups of images do not have; choose another metric"
    )
    assert message("--figure", "number", "--metric", "s") == (
        "the result of 'Net' has no s; evaluate it again with this metric"
    )
    assert message("--figure", "examples", "--metric", "mae", "--metric", "auc") == (
        "the figure 'examples' writes one score, got mae, auc"
    )
    assert message("--figure", "f", "--methods", "Net,nett") == (
        "unknown method 'nett'; available: Net, Net+si, coarse, large only"
    )
    folder = refusal("plot", benchmark_root / "results", "--out", tmp_path / "x", "--metric", "maee")
    assert folder.startswith("unknown metric 'maee'; did you mean 'mae'?")
    with pytest.raises(UsageError, match=r"^width must be 'single' or 'double', got 'wide'$"):
        draw("f", FigureRequest([], width="wide"))  # type: ignore[arg-type]


def test_a_folder_of_figures_with_a_metric(
    saved: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "figure_names", lambda: ("f", "size", "number"))
    request = FigureRequest(saved[:2], metrics=["f_mean", "found"], width="single")
    written, notes = write_figures(tmp_path, "svg", request)
    assert notes == ["found is not drawn in number.svg"]
    assert "Object recall" in (tmp_path / "size.svg").read_text()
    assert "Object recall" not in (tmp_path / "number.svg").read_text()
    assert "F mean" in (tmp_path / "number.svg").read_text()
    written, notes = write_figures(
        tmp_path / "e", "svg", dataclasses.replace(request, metrics=["e_mean"])
    )
    assert notes == ["size.svg is not drawn: it cannot show e_mean"]
    assert tmp_path / "e" / "number.svg" in written


def test_every_figure_of_a_folder_takes_what_it_can_show(
    saved: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "figure_names", lambda: ("f", "size", "size-log", "number"))
    request = FigureRequest(saved[:1], metrics=["SI-MAE", "MAE"], width="single")
    _, notes = write_figures(tmp_path / "both", "svg", request)
    assert notes == ["si_mae is not drawn in size.svg, size-log.svg"]
    assert "SI-MAE" in (tmp_path / "both" / "number.svg").read_text()
    assert "MAE of objects" in (tmp_path / "both" / "size.svg").read_text()
    alone = dataclasses.replace(request, metrics=["si_mae"])
    _, notes = write_figures(tmp_path / "alone", "svg", alone)
    assert notes == [
        "size.svg is not drawn: it cannot show si_mae",
        "size-log.svg is not drawn: it cannot show si_mae",
    ]


def test_an_unknown_figure_is_named_before_the_ending_of_the_file(tmp_path: Path) -> None:
    message = refusal("plot", tmp_path, "--out", tmp_path / "y", "--figure", "nofig")
    assert message.startswith("unknown figure 'nofig'; ")


def test_metrics_of_the_ablation(tmp_path: Path, benchmark_root: Path) -> None:
    import json

    path = tmp_path / "ablation.json"
    path.write_text(json.dumps(ablation_rows({"plain": (0.1, 0.2)}, "si_auc")))
    options = ["plot", str(benchmark_root / "results"), "--figure", "ablation", "--ablation", str(path)]
    assert run(*options, "--out", tmp_path / "a.svg", "--metric", "si_auc").exit_code == 0
    assert "SI-AUC, more is better" in (tmp_path / "a.svg").read_text()
    assert run(*options, "--out", tmp_path / "b.svg", "--metric", "SI-AUROC").exit_code == 0
    assert refusal(*options, "--out", tmp_path / "a.svg", "--metric", "mae") == (
        "unknown metric of the ablation 'mae'; available: si_auc"
    )


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
    assert missing_curves(none, "pr") == [sentence]
    for axes in curve_figure(none, "pr").get_axes():
        assert not axes.axison  # no empty axis
    some = [*mixed[:2], *none[2:]]
    assert missing_curves(some, "pr") == [f"coarse, large only: {sentence}"]
    figure = curve_figure(some, "pr")
    assert all(axes.axison for axes in figure.get_axes())
    title = figure.get_suptitle().replace("\n", " ")
    assert title == f"coarse, large only: {sentence}"
    assert missing_curves([*saved[:1], *some], "pr")[0].startswith(
        "coarse on mixed, large only on mixed: "
    )
    assert missing_curves(mixed, "pr") == []
    official = [
        dataclasses.replace(
            result,
            evaluation=dataclasses.replace(result.evaluation, protocol=sisod.PROTOCOLS["official"]),
        )
        for result in none
    ]
    assert missing_curves(official, "pr") == [
        "precision was not evaluated; evaluate again under another protocol than 'official', which has "
        "no such curve"
    ]


def test_the_command_tells_of_missing_curves(tmp_path: Path) -> None:
    gt = np.zeros((9, 9), dtype=bool)
    gt[2:5, 2:5] = True
    evaluator = sisod.Evaluator(metrics=["f_mean", "si_mae"])
    evaluator.update(gt, gt, name="a")
    evaluator.result().save(tmp_path / "D" / "m")
    result = run("plot", tmp_path / "D", "--figure", "pr", "--out", tmp_path / "pr.svg")
    assert result.exit_code == 0
    note = (
        "pr.svg is incomplete: precision was not evaluated; evaluate again with --metrics all, or with"
    )
    assert f"warning: {note} precision_mean among them\n" in result.stderr
    assert "precision was not evaluated" in (tmp_path / "pr.svg").read_text()


def test_examples_say_whose_score_it_is(benchmark_root: Path, tmp_path: Path) -> None:
    options = ["plot", str(benchmark_root / "results" / "mixed"), "--figure", "examples"]
    options += ["--images", str(benchmark_root / "data" / "mixed" / "image"), "--example", "scene0003"]
    options += ["--methods", "Net", "--metric", "mae", "--out", str(tmp_path / "e.svg")]
    assert run(*options).exit_code == 0
    text = (tmp_path / "e.svg").read_text()
    objects = sisod.Evaluation.load(benchmark_root / "results" / "mixed" / "Net").objects
    values = objects.filter(pl.col("image") == "scene0003")["mae"].to_list()
    assert len(values) > 1
    for i, value in enumerate(values):
        assert f">{i + 1}</text>" in text  # at the frame of the ground truth
        assert f"{i + 1}: {value:.2f}".replace(" 0.", " .") in text
    assert "MAE of objects, by their numbers in the ground truth" in text
    assert "mixed scene0003" in text


def test_many_examples_are_cut_to_a_page(saved: list[Result]) -> None:
    one = [Result("mixed", f"method {i}", saved[-1].evaluation) for i in range(12)]
    figure = draw("examples", FigureRequest(one))
    assert figure.get_figheight() <= 8.9
    named = ["scene0001", "scene0002", "scene0003", "scene0004", "scene0005"]
    taller = draw("examples", FigureRequest(one[:1], examples=named))
    assert len([axes for axes in taller.get_axes() if axes.images]) == 10


def test_numbers_are_at_their_frames_and_apart() -> None:
    boxes = [
        (0.0, 0.0, 40.0, 40.0),
        (0.0, 0.0, 3.0, 3.0),
        (50.0, 20.0, 53.0, 60.0),
        (96.0, 97.0, 99.0, 99.0),
    ]
    places = number_places(boxes, (100, 100), 100)
    for (x, y), (x0, y0, x1, y1) in zip(places, boxes, strict=True):
        assert 0 < x < 100
        assert 0 < y < 100
        assert x0 - 20 < x < x1 + 20
        assert y0 - 20 < y < y1 + 20
    for i, (x, y) in enumerate(places):
        for a, b in places[:i]:
            assert abs(x - a) > 4 or abs(y - b) > 7


def test_results_draw_any_figure(saved: list[Result]) -> None:
    evaluation = saved[4].evaluation  # Net on mixed, scored from files
    figure = evaluation.plot("size-log", metrics=["found"], width="single")
    assert figure.get_figwidth() == 3.25
    (panel,) = figure.get_axes()
    assert panel.get_title() == f"Net on {evaluation.images.height} images"
    np.testing.assert_array_equal(
        panel.get_lines()[0].get_ydata(), by_size(evaluation, groups="log")["found"]
    )
    assert evaluation.plot(width="single").get_figwidth() == 3.25
    with pytest.raises(
        UsageError, match=r"^the overview has no choice of metrics; choose a figure, such"
    ):
        evaluation.plot(metrics=["mae"])


def test_a_method_missing_on_a_data_set_has_an_empty_panel(saved: list[Result]) -> None:
    figure = size_figure([*saved[:1], *saved[5:7]], "log")
    texts = [text.get_text() for axes in figure.get_axes() for text in axes.texts]
    assert texts.count("no result") == 1  # coarse on crowded
    with pytest.raises(InputError, match=r"^the result of 'Net' has no s;"):
        number_figure(saved[:1], metrics=["s"])


def test_metrics_of_the_user_are_drawn(saved: list[Result]) -> None:
    rng = np.random.default_rng(0)
    gt = np.zeros((40, 40), dtype=bool)
    gt[2:9, 2:9] = gt[20:23, 20:23] = True
    evaluator = sisod.Evaluator(metrics=["mae", "si_mae", PIXEL_ERROR])
    for i in range(6):
        evaluator.update(rng.random(gt.shape), gt, name=str(i))
    own = [Result("D", "m", evaluator.result())]
    panel = size_figure(own, "log", metrics=["pixel_error"]).get_axes()[0]
    table = by_size(own[0].evaluation, groups="log")
    np.testing.assert_array_equal(panel.get_lines()[0].get_ydata(), table["pixel_error"])
    panel = number_figure(own, metrics=["si_pixel_error"]).get_axes()[0]
    values = by_number(own[0].evaluation)["si_pixel_error"]
    np.testing.assert_array_equal(panel.get_lines()[0].get_ydata(), values)
    for name in ("size", "examples"):
        with pytest.raises(
            InputError, match=r"^the result of 'Net' has no object_pixel_error; evaluate it"
        ):
            draw(name, FigureRequest(saved[:1], metrics=["pixel_error"]))
