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
from sisod.scoring.partition import partition

METHODS: dict[str, Callable[[Scene], NDArray[np.uint8]]] = {
    "A": sees_only_large,
    "B": sees_all_coarsely,
}
KEYS = ("mae", "si_mae", "f_mean", "si_f_mean", "auc", "si_auc", "e_mean", "si_e_mean")
_GAP = 16  # pixels between the panels of the figure
_STYLE = (  # colours that colour-blind readers can tell apart
    "text{font:15px system-ui,sans-serif;fill:#222}.win{font-weight:700;fill:#0072b2}"
    ".n{font-size:12px;fill:#d55e00;font-weight:700}.f{fill:none;stroke:#d55e00;stroke-width:1.5}"
)


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of both methods, and the figure that was written."""

    results: dict[str, Evaluation]
    figure: Path


def run_demo(out_dir: Path, *, count: int = 24, seed: int = 0) -> Demo:
    """Generate scenes, predict with both methods, score, and write images, maps and the figure.

    Args:
        out_dir: folder of all files; those of an earlier demo are replaced.
        count: number of scenes.
        seed: of the scenes.

    Example:
        >>> import tempfile
        >>> results = run_demo(Path(tempfile.mkdtemp()) / "demo", count=2).results
        >>> preferred(results, "mae"), preferred(results, "si_mae")
        ('A', 'B')
    """
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


def preferred(results: dict[str, Evaluation], key: str) -> str:
    """Return the method with the better score by a metric."""
    best = max if METRICS[key].direction == "up" else min
    return best(results, key=lambda method: results[method].summary[key])


def draw_figure(scene: Scene, results: dict[str, Evaluation]) -> str:
    """Return an SVG: the image, its mask with numbered frames, and both methods with their scores."""
    height, width = scene.mask.shape
    rows = {
        method: next(row for row in result.images.iter_rows(named=True) if row["image"] == scene.name)
        for method, result in results.items()
    }
    winner = {key: min(rows, key=lambda method: rows[method][key]) for key in ("mae", "si_mae")}
    frames = "".join(
        f'<rect x="{frame.x0}" y="{frame.y0}" width="{frame.x1 - frame.x0}" '
        f'height="{frame.y1 - frame.y0}" class="f"/>'
        f'<text x="{min(frame.x1 + 3, width - 12)}" y="{frame.y0 + 8}" class="n">'
        f"{frame.index + 1}</text>"
        for frame in partition(scene.mask)
    )
    panels = [
        (scene.image, "image", ""),
        (scene.mask, "ground truth, frames numbered", frames),
    ]
    for method, title in (("A", "A: large objects only"), ("B", "B: every object, coarsely")):
        scores = "".join(
            f'<text x="{8 + left}" y="{height + 44}" class="{"win" if winner[key] == method else ""}">'
            f"{METRICS[key].title} {rows[method][key]:.4f}</text>"
            for left, key in ((0, "mae"), (width // 2, "si_mae"))
        )
        panels.append((METHODS[method](scene), title, scores))
    body = "".join(
        f'<g transform="translate({_GAP + index * (width + _GAP)},{_GAP})">'
        f'<image width="{width}" height="{height}" '
        f'href="data:image/png;base64,{base64.b64encode(png_bytes(picture)).decode("ascii")}"/>'
        f'<text x="8" y="{height + 22}">{title}</text>{more}</g>'
        for index, (picture, title, more) in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {4 * (width + _GAP) + _GAP} '
        f'{height + 64 + 2 * _GAP}" role="img" '
        'aria-label="Two methods that MAE and SI-MAE rank the other way round">'
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{body}'
        f'<text x="{_GAP}" y="{height + _GAP + 44}">lower is better, winner in bold:</text>'
        f'<text x="{_GAP}" y="{height + _GAP + 62}">MAE prefers {winner["mae"]}, '
        f"SI-MAE prefers {winner['si_mae']}</text></svg>\n"
    )
