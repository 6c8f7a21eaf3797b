"""Every command that writes output: tiny inputs for it, and ways in which it can fail.

Run as a program, it is a command that kills itself halfway.
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import cv2
import numpy as np

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
        "calibrate run --data unseen --out out --device cpu --overwrite",
        "out",
        "sisod.training.calibration.runs.save_network",
        bad=(("--objective", "nonsense"), ("--limit", "19"), ("--masks", "nowhere"), ("--test", "net")),
        broken="run/model.safetensors",
    ),
    "frames": Command(
        "frames mask --out out --overwrite",
        "out",
        "sisod.report.frames.write_png",
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
        bad=(("--images", "nowhere"), ("--ablation", "nowhere.json")),
        broken="results/MSOD/A/images.parquet",
        real=False,
    ),
    "demo": Command("demo --quick --out demo", "demo", "sisod.reproduction.demo.draw_figure"),
}


def write_world(root: Path) -> None:
    """Write the inputs of all commands; takes a fraction of a second."""
    for name in ("image", "mask", "maps", "figures"):
        (root / name).mkdir()
    for scene in make_scenes(4, seed=2, shape=(40, 48)):
        pictures = {"image": scene.image, "mask": scene.mask, "maps": sees_only_large(scene)}
        for name, picture in pictures.items():
            assert cv2.imwrite(str(root / name / f"{scene.name}.png"), picture)
    sisod.evaluate(root / "maps", root / "mask", out=root / "results/MSOD/A", jobs=1)
    (root / "figures/pr.svg").write_text("old")
    (root / "figures/iou.svg").write_text("old")
    for name in ("out.safetensors", "out.onnx", "out.svg", "out.html"):
        (root / name).write_text("old")
    import torch

    from sisod import networks

    network = networks.create("tiny")
    network.save_pretrained(root / "net")
    torch.save(network.state_dict(), root / "published.pth")
    _write_run(root, network)


def _write_run(root: Path, network: Any) -> None:
    """Write a finished training, and images that it has not seen, whose masks its maps partly fit."""
    import torch

    from sisod.networks.predict import predict_logits

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, 3, 32, 32), dtype=np.uint8)
    network.input_size = (32, 32)

    def logits() -> Any:
        maps = predict_logits(network.eval(), torch.from_numpy(images), [(32, 32)] * 20)
        return np.stack([values.numpy() for values in maps])

    with torch.no_grad():  # random weights give nearly constant maps
        dict(network.named_parameters())["heads.0.weight"].div_(float(logits().std()))
    network.save_pretrained(root / "run")
    record = {"format": 1, "sisod": "", "kind": "training", "config": {}, "finished": True}
    (root / "run/run.json").write_text(json.dumps(record))
    (root / "run/images.json").write_text(json.dumps({"images": "", "masks": "", "trained": []}))
    values = logits()
    masks = values - np.median(values) + rng.normal(size=values.shape) > 0
    for name, planes in (("image", images.transpose(0, 2, 3, 1)[..., ::-1]), ("mask", masks * 255)):
        (root / "unseen" / name).mkdir(parents=True)
        for index, plane in enumerate(planes.astype(np.uint8)):
            assert cv2.imwrite(str(root / "unseen" / name / f"{index}.png"), plane)


def prepare(name: str, patch: Callable[[str, Any], Any]) -> None:
    """Replace slow functions that neither read a setting nor write a file."""
    if name == "convert":  # the published networks have a hundred megabytes
        from sisod import networks

        network = networks.create("tiny")
        patch("sisod.networks.saved.recognise", lambda *_, **__: "tiny")
        patch("sisod.networks.architectures.fpn.Tiny.load_published", lambda *_, **__: network)
    if name == "export":
        patch("torch.onnx.export", lambda *_, **__: _Program())
    if name == "demo":
        patch("sisod.reproduction.demo.make_scenes", lambda _, seed: make_scenes(2, seed=seed))
    if name == "plot":
        patch("sisod.report.gallery.draw", _draw)


class _Program:
    """What PyTorch's exporter returns, as far as it is used."""

    def __init__(self) -> None:
        self.model = mock.Mock(metadata_props={})

    def save(self, path: Path, **_: object) -> None:
        path.write_bytes(bytes(100_000))


def _draw(_: str, request: Any) -> Any:
    from matplotlib.figure import Figure

    from sisod.common.exceptions import UsageError

    if request.examples:
        raise UsageError("not to be drawn")
    return Figure(figsize=(1, 1))


def find(path: str) -> tuple[Any, str]:
    """Return the object that holds a function, and the function's name in it."""
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            holder: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:-1]:
            holder = getattr(holder, part)
        return holder, parts[-1]
    raise LookupError(path)


def after(calls: int, function: Callable[..., Any], act: Callable[[], None]) -> Callable[..., Any]:
    """Return the function, which after a number of calls does something else first."""
    left = [calls]

    def called(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            act()
        return function(*args, **options)

    return called


def main(name: str, words: Sequence[str]) -> None:
    """Run a command that kills its own process in the middle of its work."""
    from sisod.cli import app

    patches = []

    def patch(path: str, value: Any) -> None:
        patches.append(mock.patch.object(*find(path), value))
        patches[-1].start()

    prepare(name, patch)
    holder, attribute = find(COMMANDS[name].middle)
    kill = after(N_CALLS.get(name, 0), getattr(holder, attribute), _kill)
    patch(COMMANDS[name].middle, kill)
    app(list(words))


# so many calls in the middle go well; the others are called once
N_CALLS = {"predict": 2, "frames": 2, "train": 1, "plot": 2}


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
