"""Single settings of a protocol are changed from the command line; what they leave out is counted."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from helpers.command_line import error_message, refusal, run
from helpers.evaluate_runs import evaluate_refusal, finished, record
from helpers.folder_contents import content

import sisod

LINE = "{} of {} components in 'MSOD/mask' are below min_area and not scored; --min-area 0 scores all\n"
# every object that is scored fills its frame
UNDEFINED = "MSOD: SI-AUC undefined on all 70 images\n"


@pytest.fixture
def specks(three_batches: Path) -> Path:
    """Seventy images; every third ground truth is one object of 60 pixels and two specks of 1 and 3."""
    for index, path in enumerate(sorted((three_batches / "MSOD" / "mask").iterdir())):
        mask = np.zeros((24, 32), dtype=np.uint8)
        mask[2:8, 2:12] = 255
        if index % 3 == 0:
            mask[20, 20] = mask[15, 25:28] = 255
        assert cv2.imwrite(str(path), mask)
    return three_batches


N_SPECKS, N_COMPONENTS = 2 * 24, 70 + 2 * 24


# settings


def stored(out: str = "out") -> dict[str, Any]:
    protocol: dict[str, Any] = record(out)["protocol"]
    return protocol


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--min-area", "0"], "default+min_area=0"),
        (["--min-area", "0.0002", "--connectivity", "8"], "default"),
        (["--min-area", "0.01"], "default+min_area=0.01"),
        (
            ["--normalize", "none", "--connectivity", "4", "--min-area", "12"],
            "default+min_area=12+connectivity=4+normalize=none",
        ),
        (["--protocol", "paper", "--connectivity", "4"], "paper+connectivity=4"),
        (["--protocol", "paper+connectivity=4"], "paper+connectivity=4"),
        (["--protocol", "paper+connectivity=4", "--connectivity", "8"], "paper"),
    ],
)
def test_options_equal_the_name(options: list[str], name: str, four_images: Path) -> None:
    finished(*options, "--metrics", "paper")
    finished("--protocol", name, "--metrics", "paper", out="named")
    assert content("out") == content("named")
    assert stored()["name"] == name
    saved = sisod.Evaluation.load("out/MSOD/A")
    assert saved.protocol.name == name
    direct = sisod.evaluate(
        four_images / "A", four_images / "MSOD/mask", protocol=name, metrics="paper", jobs=1
    )
    assert (direct.protocol, direct.summary) == (saved.protocol, saved.summary)
    again = sisod.evaluate(
        four_images / "A", four_images / "MSOD/mask", protocol=saved.protocol, metrics="paper", jobs=1
    )
    assert again.summary == saved.summary


def test_a_benchmark_file_names_settings_and_options_change_them(four_images: Path) -> None:
    text = '[datasets.MSOD]\ngt = "MSOD/mask"\n[methods.A]\npred = "A"\n'
    file = four_images / "b.toml"
    file.write_text(f'metrics = "mae"\nprotocol = "paper+connectivity=4"\n{text}')
    assert run("evaluate", file, "--out", "out").exit_code == 0
    assert stored()["name"] == "paper+connectivity=4"
    assert run("evaluate", file, "--out", "more", "--min-area", "3").exit_code == 0
    assert stored("more")["name"] == "paper+min_area=3+connectivity=4"
    results = sisod.evaluate_benchmark(file, "python", protocol="default+min_area=0")
    assert results["MSOD", "A"].protocol.name == "default+min_area=0"
    file.write_text(f'protocol = "paper+conectivity=4"\n{text}')
    assert "got '+conectivity=4'" in error_message(
        run("evaluate", file, "--out", "wrong"), exit_codes=(2,)
    )


FOR_ALL = [
    (["--min-area", "x"], "min_area must be pixels such as 12, or a share of the image from"),
    (["--min-area", "-1"], "got '-1'"),
    (["--min-area", "1.5"], "got '1.5'"),
    (["--protocol", "official", "--min-area", "0"], "min_area cannot be changed under 'official'"),
    (["--protocol", "default+size=2"], "got '+size=2'"),
]
FOR_EVALUATE = [
    (["--connectivity", "6"], "connectivity must be 4 or 8, got '6'"),
]
COMMANDS = [
    ["evaluate", "A", "MSOD/mask", "--out", "out"],
    ["stats", "MSOD/mask"],
    ["frames", "MSOD/mask", "--out", "out"],
]


@pytest.mark.parametrize(
    ("command", "options", "text"),
    [(command, *case) for command in COMMANDS for case in FOR_ALL]
    + [(COMMANDS[0], *case) for case in FOR_EVALUATE],
)
def test_values_that_are_refused(
    command: list[str], options: list[str], text: str, four_images: Path
) -> None:
    assert text in error_message(run(*command, *options), exit_codes=(2,))
    assert not (four_images / "out").exists()


def test_results_of_other_settings_are_not_mixed(three_batches: Path) -> None:
    file = three_batches / "A" / "scene066.png"
    whole = file.read_bytes()
    file.write_bytes(b"")
    metrics = ("--metrics", "mae,si_mae")
    evaluate_refusal("--min-area", "12", *metrics)
    file.write_bytes(whole)
    for options in ((), ("--min-area", "13"), ("--min-area", "12", "--connectivity", "4")):
        assert "is another run: protocol." in evaluate_refusal("--resume", *options, *metrics)
    finished("--resume", "--protocol", "default+min_area=12", *metrics)
    assert stored()["name"] == "default+min_area=12"
    finished("--resume", "--min-area", "12", *metrics)  # finished: nothing is done
    assert "is another run: protocol." in evaluate_refusal("--resume", "--min-area", "0", *metrics)
    finished("--min-area", "12", *metrics, out="unbroken")
    assert content("out") == content("unbroken")
    finished("--min-area", "12", *metrics, preds=("same=A",))
    finished("--min-area", "1", *metrics, preds=("other=A",))
    folders = [f"out/MSOD/{name}" for name in ("A", "same", "other")]
    assert run("compare", *folders[:2], *metrics, "--resamples", "10").exit_code == 0
    said = refusal("compare", folders[0], folders[2], *metrics)
    assert "'default+min_area=12'" in said
    assert "'default+min_area=1'" in said


# what is left out


def test_components_left_out_are_counted_and_reported(specks: Path) -> None:
    assert finished("--min-area", "4") == LINE.format(N_SPECKS, N_COMPONENTS) + UNDEFINED
    counts = {key: record()[key] for key in ("objects", "components", "left_out", "kept_below_min_area")}
    assert counts == {"objects": 70, "components": 118, "left_out": 48, "kept_below_min_area": 0}
    assert finished("--min-area", "2", out="two") == LINE.format(24, N_COMPONENTS) + UNDEFINED
    assert finished("--min-area", "0", out="all") == UNDEFINED
    assert (record("all")["left_out"], record("all")["objects"]) == (0, N_COMPONENTS)
    assert finished(out="default") == UNDEFINED  # 0.0002 of the image is one pixel
    assert specks.exists()


def test_the_count_is_independent_of_jobs_batches_and_interruptions(specks: Path) -> None:
    file = specks / "A" / "scene066.png"
    whole = file.read_bytes()
    file.write_bytes(b"")
    evaluate_refusal("--min-area", "4")
    file.write_bytes(whole)
    line = LINE.format(N_SPECKS, N_COMPONENTS) + UNDEFINED
    assert finished("--min-area", "4", "--resume") == line
    assert finished("--min-area", "4", "--resume") == line  # finished before: the same line
    assert finished("--min-area", "4", jobs=2, out="parallel") == line
    assert content("out") == content("parallel")
    evaluators = [sisod.Evaluator(protocol="default+min_area=4", metrics="mae") for _ in range(2)]
    for index, path in enumerate(sorted((specks / "MSOD" / "mask").iterdir())):
        mask = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        assert mask is not None
        evaluators[index % 2].update(mask, mask, name=path.stem)
    run_record = evaluators[0].merge(evaluators[1]).result().run
    assert (run_record["components"], run_record["left_out"]) == (N_COMPONENTS, N_SPECKS)


def test_the_line_is_printed_once_for_all_methods(specks: Path) -> None:
    expected = LINE.format(N_SPECKS, N_COMPONENTS) + UNDEFINED
    assert finished("--min-area", "4", preds=("A", "B")) == expected
    (specks / "B" / "scene000.png").unlink()
    lines = finished("--min-area", "4", "--allow-missing", preds=("A", "B"), out="other").splitlines()
    assert [line for line in lines if "below min_area" in line] == [
        LINE.format(N_SPECKS, N_COMPONENTS).rstrip(),
        LINE.format(N_SPECKS - 2, N_COMPONENTS - 3).rstrip(),  # an image less
    ]


def test_the_released_code_leaves_out_what_is_under_25_pixels(specks: Path) -> None:
    (specks / "names.txt").write_text("scene000\nscene001\n")
    assert finished("--protocol", "official", "--list", "names.txt") == (
        "2 of 4 components in 'MSOD/mask' are not scored by the rules of the released code\n"
    )
    assert (record()["components"], record()["left_out"]) == (4, 2)


def test_frames_of_the_caller_leave_nothing_out() -> None:
    gt = np.zeros((100, 100), dtype=bool)
    gt[10:40, 10:40] = gt[80, 80] = True
    for partition, counts in ((None, (2, 1)), (sisod.partition(gt), (1, 0))):
        evaluator = sisod.Evaluator(metrics="mae")
        evaluator.update(gt, gt, partition=partition)
        run_record = evaluator.result().run
        assert (run_record["components"], run_record["left_out"]) == counts
