"""Synthetic benchmarks for the tests of figures and reports, and a parser of report pages."""

import dataclasses
import html
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

import sisod
from sisod.data.scenes import Scene, _draw_blob, _paint, make_scenes, sees_all_coarsely, sees_only_large
from sisod.evaluation.results import Result, load_results
from sisod.scoring.metrics import METRICS as SCORES

Grey = NDArray[np.uint8]


def mixed_scenes(count: int, *, seed: int = 0, shape: tuple[int, int] = (180, 240)) -> list[Scene]:
    """Scenes of one to six objects whose sizes span three orders of magnitude."""
    rng = np.random.default_rng(seed)
    scenes = []
    for index in range(count):
        labels = np.zeros(shape, dtype=np.int32)
        radii = np.exp(rng.uniform(np.log(0.014), np.log(0.36), int(rng.integers(1, 7)))) * min(shape)
        for radius in sorted(radii.tolist(), reverse=True):
            _draw_blob(labels, radius, rng)
        if labels.max() == 0:
            _draw_blob(labels, 8.0, rng)
        mask = (labels > 0).astype(np.uint8) * np.uint8(255)
        scenes.append(Scene(f"scene{index:04d}", _paint(labels, rng), mask, labels))
    return scenes


def _detects(scene: Scene, exponent: float, noise: float, name: str) -> Grey:
    """Return a map in which larger objects are stronger, and now and then a false positive."""
    rng = np.random.default_rng([*name.encode(), *scene.name.encode()])
    share = np.bincount(scene.labels.ravel()) / scene.labels.size
    strength = np.clip((share / 0.03) ** exponent + rng.normal(0, 0.15, len(share)), 0, 1)
    strength[0] = 0
    seen = np.asarray(cv2.GaussianBlur(np.asarray(strength[scene.labels]), (0, 0), 1.5))
    if rng.random() < 0.4:
        ghost = np.zeros(seen.shape)
        centre = tuple(int(rng.integers(20, side - 20)) for side in seen.shape[::-1])
        cv2.circle(ghost, centre, int(rng.integers(4, 14)), 0.6, -1)
        seen = np.maximum(seen, cv2.GaussianBlur(ghost, (0, 0), 3))
    grain = np.asarray(cv2.GaussianBlur(rng.normal(size=seen.shape), (0, 0), 4))
    seen = seen + noise * grain / grain.std()
    return np.asarray(np.clip(255 * seen, 0, 255), dtype=np.uint8)


METHODS: dict[str, Callable[[Scene], Grey]] = {
    "Net": lambda scene: _detects(scene, 0.42, 0.03, "net"),
    "Net+si": lambda scene: _detects(scene, 0.16, 0.04, "net si"),
    "Other": lambda scene: _detects(scene, 0.30, 0.02, "other"),
    "large only": sees_only_large,
    "coarse": sees_all_coarsely,
}


def write_benchmark(
    root: Path, dataset: str, scenes: Sequence[Scene], methods: Sequence[str] = tuple(METHODS)
) -> Path:
    """Write scenes and maps below a folder, score them, return the folder of the results."""
    for scene in scenes:
        _write(root / "data" / dataset / "image" / f"{scene.name}.jpg", scene.image)
        _write(root / "data" / dataset / "mask" / f"{scene.name}.png", scene.mask)
        for method in methods:
            _write(root / "maps" / dataset / method / f"{scene.name}.png", METHODS[method](scene))
    for method in methods:
        sisod.evaluate(
            root / "maps" / dataset / method,
            root / "data" / dataset / "mask",
            jobs=1,
            out=root / "results" / dataset / method,
        )
    return root / "results"


def one_object_scenes(count: int, *, shape: tuple[int, int] = (60, 80)) -> list[Scene]:
    """Scenes of a single object each."""
    scenes = []
    for scene in make_scenes(count, seed=5, shape=shape):
        labels = (scene.labels == 1).astype(np.int32)
        scenes.append(Scene(scene.name, scene.image, (labels * 255).astype(np.uint8), labels))
    return scenes


@pytest.fixture(scope="session")
def benchmark_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two data sets, four methods, images and maps; never written to."""
    root = tmp_path_factory.mktemp("benchmark")
    methods = ("Net", "Net+si", "large only", "coarse")
    write_benchmark(root, "mixed", mixed_scenes(14, seed=1, shape=(96, 128)), methods)
    write_benchmark(root, "crowded", make_scenes(6, seed=3, shape=(96, 128)), methods)
    return root


@pytest.fixture(scope="session")
def saved(benchmark_root: Path) -> list[Result]:
    """The results of `benchmark_root`, loaded; never changed."""
    return load_results([benchmark_root / "results"])


def without_objects(result: Result) -> Result:
    """The same result as a protocol without predicted objects gives it."""
    evaluation = result.evaluation
    left_out = [key for key in evaluation.summary if SCORES[key].family.kind in ("objects", "balanced")]
    smaller = dataclasses.replace(
        evaluation,
        protocol=sisod.PROTOCOLS["official"],
        summary={key: value for key, value in evaluation.summary.items() if key not in left_out},
        defined={key: value for key, value in evaluation.defined.items() if key not in left_out},
        images=evaluation.images.drop(left_out),
        objects=evaluation.objects.drop("error", "missed_pixels"),
        run={key: value for key, value in evaluation.run.items() if key != "predicted"},
        predicted=None,
        counts=None,
    )
    return Result(result.dataset, result.method, smaller)


def with_curves(root: Path, method: str) -> Result:
    """A method on the data set `crowded` of `benchmark_root`, with objects at every threshold."""
    metrics = ["mae", "si_mae", "f_mean", "si_f_mean", "object_f1", "bsi_f_binary", "object_ap"]
    maps, masks = root / "maps" / "crowded" / method, root / "data" / "crowded" / "mask"
    return Result("crowded", method, sisod.evaluate(maps, masks, metrics=metrics, jobs=1))


def image_options(root: Path) -> list[str]:
    """Options that say where the photographs are."""
    return [f"--images={name}={root / 'data' / name / 'image'}" for name in ("mixed", "crowded")]


def _write(path: Path, picture: Grey) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), picture)


class Tables:
    """The cells of every table of a page by its caption: (text, attributes)."""

    def __init__(self, page: str) -> None:
        self.tables: dict[str, list[list[tuple[str, dict[str, str]]]]] = {}
        for table in re.findall(r"<table.*?</table>", page, re.S):
            caption = re.search(r"<caption.*?>(.*?)</caption>", table, re.S)
            self.tables[_text(caption[1]) if caption else ""] = [
                [
                    (_text(content), dict(re.findall(r'([\w-]+)="(.*?)"', html.unescape(attributes))))
                    for attributes, content in re.findall(r"<t[dh]\b(.*?)>(.*?)</t[dh]>", row, re.S)
                ]
                for row in re.findall(r"<tr.*?</tr>", table, re.S)
            ]


def _text(markup: str) -> str:
    return html.unescape(re.sub(r"<.*?>", "", markup, flags=re.S))


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])
