"""Every command that writes output: tiny inputs for it, and ways in which it can fail.

Run as a program, it is a command that kills itself halfway.
"""

import os
import pkgutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import cv2
import pytest

import sisod
from sisod.data.scenes import make_scenes, sees_only_large

SIZE = ("--set", "data.size=32", "--set", "train.epochs=1", "--set", "train.batch=2")


@dataclass(frozen=True)
class Command:
    """One command line that replaces what is at `out`.

    Attributes:
        line: the words, `--overwrite` included where the command knows it.
        out: folder or file.
        middle: a function that is called when half of the work is done.
        bad: options, each of which cannot work.
        broken: a file of the input.
        real: whether the old output is made by the command; otherwise it is a few bytes.
    """

    line: str
    out: str
    middle: str
    bad: tuple[tuple[str, ...], ...] = ()
    broken: str | None = None
    real: bool = True

    @property
    def words(self) -> list[str]:
        """The command line."""
        return self.line.split()


COMMANDS = {
    "evaluate": Command(
        "evaluate A=maps mask --out out --dataset MSOD --jobs 1 --metrics mae --overwrite",
        "out/MSOD/A",
        "sisod.evaluation.driver.score_task",
        bad=(("--metrics", "nonsense"), ("--protocol", "nonsense"), ("--pred-suffix", "_x")),
        broken="maps/scene001.png",
    ),
    "predict": Command(
        "predict net image out --size 32 --batch 1 --device cpu --overwrite",
        "out",
        "sisod.networks.map_folder.write_png",
        bad=(("--device", "gpu"), ("--network", "edn")),
        broken="image/scene001.png",
    ),
    "train": Command(
        "train tiny --data . --out out --workers 0 --devices 1 --overwrite " + " ".join(SIZE),
        "out",
        "sisod.training.module.SaliencyModule.training_step",
        bad=(
            ("--set", "network.name=edm"),
            ("--set", "train.batch=64"),
            ("--set", 'network.frozen=["stem"]'),
            ("--set", "network.encoder_weights=nowhere.pth"),
            ("--strategy", "magic"),
            ("--val", "nowhere"),
        ),
        broken="image/scene001.png",
    ),
    "calibrate": Command(
        "calibrate run --data data --out out --device cpu --overwrite",
        "out",
        "sisod.training.calibration.runs.save_network",
        bad=(("--objective", "nonsense"), ("--limit", "19"), ("--masks", "nowhere"), ("--test", "net")),
        broken="run/model.safetensors",
    ),
    "frames": Command(
        "frames mask --out out --overwrite",
        "out",
        "sisod.report.masks.write_png",
        bad=(("--protocol", "nonsense"), ("--images", "net")),
        broken="mask/scene001.png",
    ),
    "convert": Command(
        "convert published.pth out.safetensors --overwrite",
        "out.safetensors",
        "safetensors.torch.save_file",
        bad=(("--network", "edm"), ("--origin", "nobody")),
        broken="published.pth",
        real=False,
    ),
    "export": Command(
        "export net out.onnx --height 32 --width 32 --overwrite",
        "out.onnx",
        "torch.onnx.export",
        bad=(("--height", "0"),),
        broken="net/model.safetensors",
        real=False,
    ),
    "plot": Command(
        "plot results --out figures --format svg",
        "figures",
        "sisod.report.gallery.figure_bytes",
        bad=(("--images", "nowhere"), ("--example", "nothing")),
        broken="results/MSOD/A/images.parquet",
        real=False,
    ),
    "stats": Command(
        "stats mask --plot out.svg",
        "out.svg",
        "sisod.report.style.figure_bytes",
        bad=(("--protocol", "nonsense"),),
        broken="mask/scene001.png",
        real=False,
    ),
    "report": Command(
        "report results --out out.html",
        "out.html",
        "sisod.report.page.render.failure_data",
        bad=(("--images", "nowhere"),),
        broken="results/MSOD/A/images.parquet",
        real=False,
    ),
    "demo": Command("demo --quick --out demo", "demo", "sisod.reproduction.demo.draw_figure"),
}


def write_results(root: Path) -> None:
    """Write four scenes, the maps of a method and its result."""
    for name in ("image", "mask", "maps"):
        (root / name).mkdir()
    for scene in make_scenes(4, seed=2, shape=(40, 48)):
        pictures = {"image": scene.image, "mask": scene.mask, "maps": sees_only_large(scene)}
        for name, picture in pictures.items():
            assert cv2.imwrite(str(root / name / f"{scene.name}.png"), picture)
    sisod.evaluate(root / "maps", root / "mask", out=root / "results/MSOD/A", jobs=1)


def write_world(root: Path) -> None:
    """Write the inputs of all commands."""
    import torch

    from helpers.calibration_runs import write_run
    from sisod import networks

    write_results(root)
    (root / "figures").mkdir()
    for name in ("figures/pr.svg", "out.safetensors", "out.onnx", "out.svg", "out.html"):
        (root / name).write_text("old")
    network = networks.create("tiny")
    network.save_pretrained(root / "net")
    torch.save(network.state_dict(), root / "published.pth")
    write_run(root)


def prepare(name: str, patch: pytest.MonkeyPatch) -> None:
    """Replace slow functions that neither read a setting nor write a file."""
    if name == "convert":  # the published networks have a hundred megabytes
        from sisod import networks

        network = networks.create("tiny")
        patch.setattr("sisod.networks.saved.recognise", lambda *_, **__: "tiny")
        patch.setattr("sisod.networks.architectures.fpn.Tiny.load_published", lambda *_, **__: network)
    if name == "export":
        program = mock.Mock(model=mock.Mock(metadata_props={}))
        program.save = lambda path, **_: path.write_bytes(bytes(100_000))
        patch.setattr("torch.onnx.export", lambda *_, **__: program)
    if name == "demo":
        patch.setattr("sisod.reproduction.demo.make_scenes", lambda _, seed: make_scenes(2, seed=seed))
    if name == "plot":
        patch.setattr("sisod.report.gallery.draw", _draw)


def _draw(_: str, request: Any) -> Any:
    from matplotlib.figure import Figure

    from sisod.common.exceptions import UsageError

    if request.examples:
        raise UsageError("not to be drawn")
    return Figure(figsize=(1, 1))


def after(calls: int, path: str, act: Callable[[], None]) -> Callable[..., Any]:
    """Return a function, given by its dotted name, that after some calls does something else first."""
    function, left = pkgutil.resolve_name(path), [calls]

    def called(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            act()
        return function(*args, **options)

    return called


# so many calls in the middle go well; the others are called once
N_CALLS = {"predict": 2, "frames": 2, "train": 1, "plot": 2}


def main(name: str, words: Sequence[str]) -> None:
    """Run a command that kills its own process in the middle of its work."""
    from sisod.cli import app

    patch, middle = pytest.MonkeyPatch(), COMMANDS[name].middle
    prepare(name, patch)
    kill = after(N_CALLS.get(name, 0), middle, lambda: os.kill(os.getpid(), signal.SIGKILL))
    patch.setattr(middle, kill)
    app(list(words))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
