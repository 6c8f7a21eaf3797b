"""Masks: pictures of their frames, as in the paper's Figure 3, and tables of their statistics."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.analysis.masks import MaskStatistics
from sisod.common.exceptions import InputError, UsageError, shorten_list
from sisod.common.grid import Format, Grid, is_nan, number, render
from sisod.common.output import output_path, write_png
from sisod.common.run_folder import open_run
from sisod.common.streams import progress_bar
from sisod.data.images import read_colour
from sisod.data.pairs import find_masks, find_photographs
from sisod.data.storage import is_below
from sisod.data.truths import BINARY_MASK, TruthFormat, read_truth
from sisod.scoring.partition import Partition
from sisod.scoring.protocols import Protocol

_FRAME, _BACKGROUND = (0, 94, 213), (178, 114, 0)  # orange and blue (BGR), safe for colour-blind readers
_SHORT_SIDE, _LONG_SIDE = 480, 1920  # pixels; smaller pictures are enlarged for their numbers


@dataclass(frozen=True)
class Picture:
    """What one picture shows: how many of the components have a frame, and the background."""

    image: str
    components: int
    frames: int
    background: float
    alpha: float


def draw_frames(canvas: NDArray[np.uint8], parts: Partition) -> NDArray[np.uint8]:
    """Return a picture with numbered frames, tinted background, and a line of text with alpha.

    Args:
        canvas: the image or mask (BGR).
        parts: its partition.
    """
    height, width = parts.shape
    tinted = canvas.copy()
    tint = np.array(_BACKGROUND, dtype=np.float64)
    tinted[parts.background] = (0.75 * canvas[parts.background] + 0.25 * tint).astype(np.uint8)
    scale = max(1, min(round(_SHORT_SIDE / min(height, width)), _LONG_SIDE // max(height, width)))
    size = (width * scale, height * scale)
    picture = np.asarray(cv2.resize(tinted, size, interpolation=cv2.INTER_NEAREST), dtype=np.uint8)
    font, smooth = cv2.FONT_HERSHEY_SIMPLEX, cv2.LINE_AA
    for frame in parts:
        left, top = frame.x0 * scale, frame.y0 * scale
        cv2.rectangle(picture, (left, top), (frame.x1 * scale - 1, frame.y1 * scale - 1), _FRAME, 2)
        for colour, thick in (((255, 255, 255), 4), (_FRAME, 2)):
            place = (left + 4, top + 18)
            cv2.putText(picture, str(frame.index + 1), place, font, 0.6, colour, thick, smooth)
    strip = np.full((32, picture.shape[1], 3), 255, dtype=np.uint8)
    share = parts.background_area / (height * width)
    text = f"{len(parts)} frames, background {share:.1%}, alpha {parts.alpha:.3g}"
    cv2.putText(strip, text, (8, 22), font, 0.5, (0, 0, 0), 1, smooth)
    return np.concatenate([picture, strip])


def draw_folder(
    gt_root: str | Path,
    out: Path,
    *,
    protocol: Protocol,
    image_root: str | Path | None = None,
    gt_suffix: str = "",
    names: Sequence[str] | None = None,
    meaning: TruthFormat = BINARY_MASK,
    overwrite: bool = False,
) -> list[Picture]:
    """Draw every mask of a folder over its image, or over itself without images.

    Args:
        gt_root: folder of the masks.
        out: folder of the pictures.
        protocol: whose frames are drawn.
        image_root: folder of the images, named like the masks.
        gt_suffix: end of the masks' names that is no part of the image's name.
        names: of the images to draw; by default all.
        meaning: what the values of the masks mean.
        overwrite: whether to replace existing pictures.

    Returns:
        What each picture shows, in the order of the masks.
    """
    masks = find_masks(gt_root, gt_suffix=gt_suffix, names=names)
    images = {} if image_root is None else find_photographs(image_root)
    unpaired = [name for name in masks if name not in images]
    if image_root is not None and unpaired:
        raise InputError(
            f"{len(unpaired)} of {len(masks)} masks have no image in {str(image_root)!r} "
            f"({shorten_list(unpaired)}); add them, or leave out --images"
        )
    for root, noun in ((gt_root, "masks"), (image_root, "images")):
        if root is not None and is_below(out, root):
            raise UsageError(
                f"the pictures would go into the folder of {noun}, {str(root)!r}, and be taken for some "
                "of them; give a folder outside with --out"
            )
    pictures: list[Picture] = []
    for name in masks:
        output_path(out, name, ".png")
    with (
        open_run(out, kind="frames", overwrite=overwrite, inputs=(gt_root, image_root)) as run,
        progress_bar("drawing", len(masks)) as advance,
    ):
        run.begin()
        for name, file in masks.items():
            truth = read_truth(gt_root, file.path, meaning)
            mask = truth.mask(level=protocol.gt_level)
            canvas = np.repeat(mask[..., None].astype(np.uint8) * np.uint8(255), 3, axis=2)
            if image_root is not None:
                image = read_colour(image_root, images[name].path)
                canvas = np.asarray(cv2.resize(image, mask.shape[::-1]), dtype=np.uint8)
            parts = protocol.partition(mask, truth.labels)
            write_png(output_path(run.path, name, ".png"), draw_frames(canvas, parts))
            share = parts.background_area / mask.size
            pictures.append(Picture(name, len(parts.components), len(parts), share, parts.alpha))
            advance(1)
        n_components = sum(picture.components for picture in pictures)
        run.finish(
            command="frames",
            protocol=protocol.name,
            masks=str(gt_root),
            images=None if image_root is None else str(image_root),
            components=n_components,
            left_out=n_components - sum(picture.frames for picture in pictures),
            **meaning.settings(),
        )
    return pictures


def render_pictures(pictures: Sequence[Picture], kind: Format) -> str:
    """Return one row per picture, for a document or a program.

    Args:
        pictures: from `draw_folder`.
        kind: the format.
    """
    rows = [asdict(picture) for picture in pictures]
    cells = tuple(
        (one.image, str(one.components), str(one.frames), number(one.background), number(one.alpha))
        for one in pictures
    )
    return render(Grid(tuple(rows[0]), cells, n_text=1), rows, rows, kind)


def statistics_grids(statistics: MaskStatistics) -> tuple[Grid, ...]:
    """Return tables of an overview, of objects by size (twice), and of images by number of objects.

    Args:
        statistics: from `sisod.analysis.masks.mask_statistics`.
    """
    record = _record(statistics)
    overview = {
        "images": str(record["images"]),
        "objects": str(record["objects"]),
        "components below min_area, left out": str(record["left_out"]),
        "masks with grey areas": str(record["grey_masks"]),
        "objects per image, mean": f"{record['objects_per_image']:.2f}",
        "rho, least salient share of a frame": number(statistics.rho),
        "rho', least salient share of an image": number(statistics.rho_image),
    }
    by_percent = record["objects_by_percent_of_image"]
    sizes = {f"{group} % of the image": count for group, count in by_percent.items()}
    tables = (
        ("size of the object", "objects", sizes),
        ("the same, small ones apart", "objects", record["objects_by_log_size"]),
        ("objects in the image", "images", record["images_by_objects"]),
    )
    grids = [
        Grid(
            (first, what, "share"),
            tuple((group, str(n), f"{n / max(1, record[what]):.1%}") for group, n in counts.items()),
            n_text=1,
        )
        for first, what, counts in tables
    ]
    return (Grid(("statistic", "value"), tuple(overview.items()), n_text=1), *grids)


def render_statistics(statistics: MaskStatistics, protocol: Protocol, kind: Format) -> str:
    """Return the tables for a document, or all numbers for a program.

    Args:
        statistics: of the masks.
        protocol: under which they were cut into frames.
        kind: the format.
    """
    grids = statistics_grids(statistics)
    if kind in ("md", "latex"):
        return "\n\n".join(render(grid, (), None, kind) for grid in grids)
    content = {"protocol": protocol.name, **_record(statistics)}
    rows = [
        {"statistic": name, "group": group, "value": one}
        for name, value in content.items()
        for group, one in (value if isinstance(value, dict) else {"": value}).items()
    ]
    return render(grids[0], rows, content, kind)


def _record(statistics: MaskStatistics) -> dict[str, Any]:
    sizes = enumerate(statistics.size_groups().tolist())
    values = {
        "images": len(statistics.n_objects),
        "objects": len(statistics.shares),
        "components": statistics.n_components,
        "left_out": statistics.n_left_out,
        "grey_masks": statistics.n_grey,
        "emptied_masks": statistics.n_emptied,
        "objects_per_image": float(statistics.n_objects.mean()),
        "rho": statistics.rho,
        "rho_image": statistics.rho_image,
        "objects_by_percent_of_image": {f"{10 * i}-{10 * i + 10}": count for i, count in sizes},
        "objects_by_log_size": statistics.log_size_groups(),
        "images_by_objects": statistics.number_groups(),
    }
    return {key: None if is_nan(value) else value for key, value in values.items()}
