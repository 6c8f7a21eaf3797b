"""The paper's Figure 2 as an experiment: two simulated methods that MAE and SI-MAE rank oppositely."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sisod.common.output import png_bytes, write_files
from sisod.common.run_folder import open_run
from sisod.data.scenes import Scene, make_scenes, sees_all_coarsely, sees_only_large
from sisod.evaluation.evaluator import Evaluator
from sisod.evaluation.result import Evaluation
from sisod.scoring.metrics import METRICS
from sisod.scoring.partition import Frame, partition

METHODS: dict[str, Callable[[Scene], NDArray[np.uint8]]] = {
    "A": sees_only_large,
    "B": sees_all_coarsely,
}
KEYS = ("mae", "si_mae", "f_mean", "si_f_mean", "auc", "si_auc", "e_mean", "si_e_mean")
_BLUE, _ORANGE = "#0072b2", "#d55e00"  # distinguishable for colour-blind readers


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of both methods, and the figure that was written."""

    results: dict[str, Evaluation]
    figure: Path


def run_demo(out_dir: Path, *, count: int = 24, seed: int = 0) -> Demo:
    """Generate scenes, predict with both methods, score, and write images, maps and the figure."""
    scenes = make_scenes(count, seed=seed)
    results, files = {}, {}
    for method, predict in METHODS.items():
        evaluator = Evaluator(metrics=KEYS)
        for scene in scenes:
            pred = predict(scene)
            files[f"{method}/{scene.name}.png"] = png_bytes(pred)
            evaluator.update(pred, scene.mask, name=scene.name)
        results[method] = evaluator.result()
    for scene in scenes:
        files[f"image/{scene.name}.png"] = png_bytes(scene.image)
        files[f"mask/{scene.name}.png"] = png_bytes(scene.mask)
    files["figure2.svg"] = draw_figure(scenes[0], results).encode()
    with open_run(out_dir, kind="demo", resume=True, in_place=True) as run:
        run.begin()
        write_files(run.path, files)
        run.finish()
    return Demo(results, out_dir / "figure2.svg")


def draw_figure(scene: Scene, results: dict[str, Evaluation]) -> str:
    """Return an SVG: the image, its mask with numbered frames, and both methods with their scores."""
    height, width = scene.mask.shape
    gap, text_height = 16, 64
    panels = [_panel(scene.image, "image"), _panel(scene.mask, "ground truth, frames numbered")]
    panels[1] += "".join(_frame_outline(frame, width) for frame in partition(scene.mask))
    titles = {"A": "A: large objects only", "B": "B: every object, coarsely"}
    winners = {
        key: min(results, key=lambda m: _score(results[m], scene, key)) for key in ("mae", "si_mae")
    }
    for method, predict in METHODS.items():
        lines = [
            f'<text x="{8 + left}" y="{height + 44}" class="{"win" if winners[key] == method else ""}">'
            f"{title} {_score(results[method], scene, key):.4f}</text>"
            for left, key, title in ((0, "mae", "MAE"), (width // 2, "si_mae", "SI-MAE"))
        ]
        panels.append(_panel(predict(scene), titles[method]) + "".join(lines))
    total_width = len(panels) * (width + gap) + gap
    total_height = height + text_height + 2 * gap
    body = "".join(
        f'<g transform="translate({gap + index * (width + gap)},{gap})">{panel}</g>'
        for index, panel in enumerate(panels)
    )
    note = (
        f'<text x="{gap}" y="{height + gap + 44}">lower is better, winner in bold:</text>'
        f'<text x="{gap}" y="{height + gap + 62}">MAE prefers {winners["mae"]}, '
        f"SI-MAE prefers {winners['si_mae']}</text>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total_width} {total_height}" '
        f'role="img" aria-label="Two methods that MAE and SI-MAE rank the other way round">'
        "<style>text{font:15px system-ui,sans-serif;fill:#222}.win{font-weight:700;"
        f"fill:{_BLUE}}}.n{{font-size:12px;fill:{_ORANGE};font-weight:700}}"
        f".f{{fill:none;stroke:{_ORANGE};stroke-width:1.5}}</style>"
        f'<rect width="100%" height="100%" fill="#fff"/>{body}{note}</svg>\n'
    )


def preferred(results: dict[str, Evaluation], key: str) -> str:
    """Return the method with the better score by a metric."""
    best = max if METRICS[key].direction == "up" else min
    return best(results, key=lambda method: results[method].summary[key])


def _frame_outline(frame: Frame, width: int) -> str:
    frame_width, frame_height = frame.x1 - frame.x0, frame.y1 - frame.y0
    return (
        f'<rect x="{frame.x0}" y="{frame.y0}" width="{frame_width}" height="{frame_height}" class="f"/>'
        f'<text x="{min(frame.x1 + 3, width - 12)}" y="{frame.y0 + 8}" class="n">'
        f"{frame.index + 1}</text>"
    )


def _score(result: Evaluation, scene: Scene, key: str) -> float:
    row = result.images["image"].to_list().index(scene.name)
    return float(result.images[key][row])


def _panel(image: NDArray[np.uint8], title: str) -> str:
    height, width = image.shape[:2]
    encoded = base64.b64encode(png_bytes(image)).decode("ascii")
    return (
        f'<image width="{width}" height="{height}" href="data:image/png;base64,{encoded}"/>'
        f'<text x="8" y="{height + 22}">{title}</text>'
    )
