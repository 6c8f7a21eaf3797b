"""Figures of saved results: the drawn numbers equal the tables."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers.command_line import error_message, run
from helpers.report_runs import ablation_rows, image_options, one_object_scenes, write_benchmark

import sisod
from sisod.analysis.ablation import AblationRow, read_ablation
from sisod.analysis.groups import by_number, by_size
from sisod.common.exceptions import InputError, UsageError
from sisod.evaluation.results import Result as Saved
from sisod.evaluation.results import load_results
from sisod.report.drawing.ablation import ablation_figure
from sisod.report.drawing.curves import CURVES, curve_figure
from sisod.report.drawing.examples import most_different
from sisod.report.drawing.groups import number_figure, size_figure
from sisod.report.gallery import FigureRequest, draw, figure_names, image_folders
from sisod.report.style import save_figure
from sisod.scoring.metrics import PAPER_KEYS

pytest.importorskip("matplotlib", reason="extra report is not installed")


def refusal(*args: str | Path) -> str:
    return error_message(run(*args), exit_codes=(1, 2))


def drawn(axes: Any) -> list[tuple[Any, Any]]:
    return [(line.get_xdata(), line.get_ydata()) for line in axes.get_lines()]


def test_results_are_found_by_their_folders(benchmark_root: Path, saved: list[Saved]) -> None:
    results = benchmark_root / "results"
    assert [(r.dataset, r.method) for r in saved] == [
        (dataset, method)
        for dataset in ("crowded", "mixed")
        for method in ("Net", "Net+si", "coarse", "large only")
    ]
    one = load_results([results / "mixed" / "Net", results / "mixed"])
    assert [r.method for r in one] == ["Net", "Net+si", "coarse", "large only"]


@pytest.mark.parametrize("kind", CURVES)
def test_curves_are_those_of_the_table(saved: list[Saved], kind: str) -> None:
    x, y, _, _ = CURVES[kind]
    panels = curve_figure(saved, kind).get_axes()
    assert [axes.get_title() for axes in panels] == [
        f"{name}, {form}" for name in ("crowded", "mixed") for form in ("plain", "size-invariant")
    ]
    for axes, dataset, prefix in zip(
        panels, ("crowded", "crowded", "mixed", "mixed"), ("", "si_", "", "si_"), strict=True
    ):
        tables = [r.evaluation.curves for r in saved if r.dataset == dataset]
        for (xs, ys), table in zip(drawn(axes), tables, strict=True):
            wanted = np.arange(256) / 255 if x == "threshold" else table[prefix + x].to_numpy()
            np.testing.assert_array_equal(xs, wanted)
            np.testing.assert_array_equal(ys, table[prefix + y].to_numpy())


def test_groups_are_those_of_the_analysis(saved: list[Saved]) -> None:
    panels = size_figure(saved, "log").get_axes()
    assert [axes.get_title() for axes in panels[:3]] == [
        "Net on crowded",  # with Net+si, the variant of the same network
        "coarse on crowded",
        "large only on crowded",
    ]
    crowded = [r for r in saved if r.dataset == "crowded"]
    for axes in panels[:3]:
        for (_, values), result in zip(drawn(axes), crowded, strict=True):
            np.testing.assert_array_equal(values, by_size(result.evaluation, groups="log")["mae"])
    (above,) = panels[0].child_axes
    counts = [label.get_text() for label in above.get_xticklabels()]
    figure = size_figure(saved, "log")  # with a legend, which does not take room from the panels
    figure.draw_without_rendering()
    assert figure.get_axes()[0].bbox.height / figure.dpi == pytest.approx(1.0, abs=0.05)  # inches
    assert counts == [str(n) for n in by_size(crowded[0].evaluation, groups="log")["objects"]]
    numbers = number_figure(saved).get_axes()
    for (_, values), result in zip(drawn(numbers[0]), crowded, strict=True):
        np.testing.assert_array_equal(values, by_number(result.evaluation)["si_mae"])


@pytest.mark.parametrize(("kind", "begin"), [("pdf", b"%PDF"), ("png", b"\x89PNG"), ("svg", b"<?xml")])
@pytest.mark.slow
def test_one_command_draws_everything(
    benchmark_root: Path, tmp_path: Path, kind: str, begin: bytes
) -> None:
    rows = ablation_rows({"plain": (0.1, 0.2), "ratio": (0.1,)})
    (tmp_path / "ablation.json").write_text(json.dumps(rows))
    results = benchmark_root / "results" / "mixed"
    names = figure_names() if kind == "svg" else ("ablation", "examples", "size")
    if kind == "svg":
        result = run(
            "plot", results, "--out", tmp_path / "out", "--format", kind, "--images",
            benchmark_root / "data" / "mixed" / "image", "--ablation", tmp_path / "ablation.json",
        )  # fmt: skip
        assert result.exit_code == 0, (result.stderr, result.exception)
        assert result.stderr == ""
        assert result.stdout.split() == [str(tmp_path / "out" / f"{name}.svg") for name in names]
    for name in names:
        path = tmp_path / "out" / f"{name}.{kind}"
        if kind != "svg":
            result = run(
                "plot", results, "--out", path, "--figure", name, "--ablation",
                tmp_path / "ablation.json",
            )  # fmt: skip
            assert result.exit_code == 0, (result.stderr, result.exception)
        assert path.read_bytes().startswith(begin)


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    write_benchmark(tmp_path, "d$1_x$", one_object_scenes(2), ("Net",))
    old = tmp_path / "results" / "d$1_x$" / "Net"
    old.rename(old.with_name("_$a$ <b>"))
    figure = curve_figure(load_results([tmp_path / "results"]), "pr")
    save_figure(figure, tmp_path / "names.svg")
    text = (tmp_path / "names.svg").read_text()
    assert "_$a$ &lt;b&gt;" in text
    assert "d$1_x$, plain" in text


def test_ablation_means_and_deviations_by_hand(tmp_path: Path) -> None:
    table = {"variant": ["alpha1"] * 3 + ["plain"], "seed": [0, 1, 2, 0], "dataset": ["D"] * 4}
    values = [0.1, 0.2, 0.6, 0.5]
    pl.DataFrame(table | {"si_mae": values, "kappa_mean": values}).write_parquet(tmp_path / "a.parquet")
    si, plain = read_ablation(tmp_path / "a.parquet")
    assert (si.loss, plain.loss, si.metric) == ("alpha1", "plain", "si_mae")
    assert si.mean == pytest.approx(0.3)
    assert si.deviation == pytest.approx(math.sqrt((0.04 + 0.01 + 0.09) / 2))
    assert plain.mean == 0.5
    assert math.isnan(plain.deviation)
    axes = ablation_figure([si, plain]).get_axes()[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["alpha1", "plain"]
    assert axes.get_xlabel() == "SI-MAE, less is better"


def test_ablation_of_the_command_is_read(tmp_path: Path) -> None:
    ablate = pytest.importorskip("sisod.training.ablate", reason="extra torch is not installed")
    keys = PAPER_KEYS
    rows = [
        {"variant": variant, "seed": seed, "dataset": "MSOD"}
        | dict.fromkeys(keys, 0.1 * seed + 0.01 * index)
        for index, variant in enumerate(ablate.ALPHAS)
        for seed in (1, 2)
    ]
    ablate._write(tmp_path, rows)
    found = read_ablation(tmp_path / "ablation.json")
    assert found == read_ablation(tmp_path / "ablation.parquet")
    assert list(dict.fromkeys(row.loss for row in found)) == ["plain", "alpha0", "alpha1", "ratio"]
    assert {row.metric for row in found} == set(keys)
    assert found[-1].values == pytest.approx((0.13, 0.23))


def test_undefined_ablation_is_drawn_empty() -> None:
    figure = ablation_figure([AblationRow("si", "D", "si_mae", (math.nan,))])
    assert [text.get_text() for text in figure.get_axes()[0].texts] == ["undefined"]


def test_undefined_curves_are_annotated() -> None:
    empty = np.zeros((8, 8), dtype=np.uint8)
    evaluator = sisod.Evaluator()
    evaluator.update(empty, empty, name="nothing")
    saved = [Saved("none", "m", evaluator.result())]
    for axes in curve_figure(saved, "pr").get_axes():
        assert "undefined on every image" in [text.get_text() for text in axes.texts]
    assert "no objects" in [text.get_text() for text in size_figure(saved, "paper").get_axes()[0].texts]


def test_missing_metrics_are_reported(tmp_path: Path) -> None:
    gt = np.zeros((9, 9), dtype=bool)
    gt[2:5, 2:5] = True
    evaluator = sisod.Evaluator(metrics=["f_mean"])
    evaluator.update(gt, gt, name="a")
    saved = [Saved("D", "m", evaluator.result())]
    for axes in curve_figure(saved, "pr").get_axes():
        assert [text.get_text() for text in axes.texts] == ["precision was not evaluated"]
    for axes in curve_figure(saved, "roc").get_axes():
        assert [text.get_text() for text in axes.texts] == ["fpr was not evaluated"]
    with pytest.raises(
        InputError, match=r"^the result of 'm' has no si_mae; evaluate it again with this metric$"
    ):
        number_figure(saved)
    saved[0].evaluation.save(tmp_path / "D" / "m")
    result = run("plot", tmp_path / "D", "--out", tmp_path / "figures")
    assert result.exit_code == 0
    assert "warning: number.pdf is not drawn: the result of 'm' has no si_mae" in result.stderr


def test_a_method_may_be_called_image(tmp_path: Path) -> None:
    root = tmp_path / "made"
    write_benchmark(root, "D", one_object_scenes(1), ("coarse",))
    (root / "results" / "D" / "coarse").rename(root / "results" / "D" / "image")
    results, photographs = load_results([root / "results"]), {"D": root / "data" / "D" / "image"}
    panels = draw("examples", FigureRequest(results, photographs)).get_axes()
    assert [axes.get_title() for axes in panels] == ["image", "ground truth", "image"]
    assert [np.ndim(np.asarray(axes.images[0].get_array())) for axes in panels] == [
        3,
        2,
        2,
    ]  # a photograph, grey


def test_examples_are_where_methods_differ_most() -> None:
    a = pl.DataFrame({"image": ["x", "x", "y", "y", "z"], "f_mean": [0.9, 0.1, 0.5, 0.5, 1.0]})
    b = pl.DataFrame({"image": ["x", "x", "y", "y", "z"], "f_mean": [0.9, 0.2, 0.9, 0.9, 0.0]})
    # x differs by 0.05, y by 0.4; z by 1, but it has a single object
    assert most_different([a, b], 2) == ["y", "x"]
    assert most_different([a, b], 9) == ["y", "x", "z"]
    assert most_different([a], 1) == ["x"]  # of one method, the worst; a tie goes by name


def test_example_can_be_named(benchmark_root: Path, tmp_path: Path) -> None:
    options = ["plot", str(benchmark_root / "results"), "--figure", "examples"]
    options += image_options(benchmark_root)
    result = run(*options, "--out", tmp_path / "e.svg", "--example", "scene0003")
    assert result.exit_code == 0, (result.stderr, result.exception)
    text = (tmp_path / "e.svg").read_text()
    assert text.count("<image") == 6  # the photograph, the mask, four methods
    assert refusal(*options, "--out", tmp_path / "e.svg", "--example", "scene9") == (
        "no result has the image scene9; name an image of the results"
    )


@pytest.mark.slow
def test_examples_without_their_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    evaluator = sisod.Evaluator(metrics=["mae", "si_mae"])
    gt = np.zeros((9, 9), dtype=bool)
    gt[2:5, 2:5] = True
    evaluator.update(gt, gt, name="a")
    evaluator.result().save(tmp_path / "results" / "D" / "m")
    result = run("plot", tmp_path / "results", "--out", tmp_path / "figures")
    assert result.exit_code == 0, (result.stderr, result.exception)
    assert result.stderr.startswith("warning: examples.pdf is not drawn: the ground truth of 'a' cannot")
    assert not (tmp_path / "figures" / "examples.pdf").exists()
    assert (tmp_path / "figures" / "pr.pdf").exists()


@pytest.mark.slow
def test_errors_of_the_command(
    benchmark_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = benchmark_root / "results"
    assert refusal("plot", "nowhere", "--out", "x") == (
        "'nowhere' is not a folder; expected one that 'sisod evaluate' wrote"
    )
    Path("empty").mkdir()
    assert refusal("plot", "empty", "--out", "x") == (
        "no result in or below 'empty'; expected folders that 'sisod evaluate' wrote"
    )
    assert refusal("plot", results, "--out", "x.png") == (
        "'x.png' is one file; choose its figure with --figure"
    )
    assert refusal("plot", results, "--out", "x.jpg", "--figure", "pr") == (
        "'x.jpg': expected a name ending in .pdf, .png or .svg"
    )
    assert refusal("plot", results, "--out", "x.png", "--figure", "ioo") == (
        "unknown figure 'ioo'; did you mean 'iou'? available: ablation, errors, errors-size, "
        "examples, f, false-objects, iou, number, objects, pr, roc, size, size-log, size-quantile"
    )
    assert refusal("plot", results, "--out", "x.png", "--figure", "ablation") == (
        "the figure 'ablation' needs the table of 'sisod ablate'; pass it with --ablation"
    )
    assert refusal("plot", results, "--out", "x", "--images", "photos") == (
        "--images 'photos' names no data set; expected DATASET=DIR with one of crowded, mixed"
    )
    assert refusal("plot", results, "--out", "x", "--images", "mixed=photos") == (
        "'photos' is not a folder; expected the images of a data set"
    )
    Path("taken").write_text("a file")
    assert refusal("plot", results, "--out", "taken/x.png", "--figure", "f") == (
        "cannot write 'taken/x.png': File exists"
    )


def test_two_results_of_one_name(benchmark_root: Path, tmp_path: Path) -> None:
    result = sisod.Evaluation.load(benchmark_root / "results" / "mixed" / "Net")
    result.save(tmp_path / "mixed" / "Net")
    with pytest.raises(InputError, match=r"^two results are called 'Net' on 'mixed': '.*'; rename one"):
        load_results([benchmark_root / "results", tmp_path])


def test_wrong_ablations(tmp_path: Path) -> None:
    path = tmp_path / "ablation.json"
    wrong = r"ablation.json' is not a table of 'sisod ablate': "
    with pytest.raises(InputError, match=wrong):
        read_ablation(path)
    for text in ("[]", "{", '{"rows": [1]}', '{"rows": [{"scores": {"mae": 1}}]}'):
        path.write_text(text)
        with pytest.raises(InputError, match=wrong):
            read_ablation(path)
    path.write_text('{"rows": []}')
    with pytest.raises(InputError, match=wrong + r"it has no scores$"):
        read_ablation(path)
    pl.DataFrame({"loss": ["si"]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a.parquet' is not .*: it has no scores$"):
        read_ablation(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").write_text("not Parquet")
    with pytest.raises(InputError, match=r"a.parquet' is not a table of 'sisod ablate': "):
        read_ablation(tmp_path / "a.parquet")
    with pytest.raises(UsageError, match=r"a.txt': expected the ablation as a .json or .parquet file$"):
        read_ablation(tmp_path / "a.txt")


def test_image_folder_of_a_single_data_set(tmp_path: Path) -> None:
    assert image_folders([str(tmp_path)], ["any"]) == {"any": tmp_path}


def test_without_matplotlib(
    benchmark_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert refusal(
        "plot", benchmark_root / "results", "--figure", "pr", "--out", tmp_path / "x.png"
    ) == ("drawing needs matplotlib; install it with: pip install 'sisod[report]'")
