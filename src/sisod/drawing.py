"""Frames drawn over masks or images, as in the paper's Figure 3, so that one sees what is scored."""

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.arrays import as_mask
from sisod.errors import InputError
from sisod.files import write_folder, write_whole
from sisod.frames import Partition
from sisod.images import EXTENSIONS, read_array
from sisod.pairs import pair_files
from sisod.progress import progress_bar
from sisod.protocols import Protocol
from sisod.storage import list_files, read_bytes

_FRAME, _BACKGROUND = (0, 94, 213), (178, 114, 0)  # orange and blue, BGR; told apart by everybody
_SHORT_SIDE = 480  # pixels; smaller pictures are enlarged, so that numbers can be read


def draw_frames(canvas: NDArray[np.uint8], parts: Partition) -> NDArray[np.uint8]:
    """Return a picture (BGR) with numbered frames, the background tinted, and alpha below."""
    height, width = parts.shape
    tinted = canvas.copy()
    tint = np.array(_BACKGROUND, dtype=np.float64)
    tinted[parts.background] = (0.75 * canvas[parts.background] + 0.25 * tint).astype(np.uint8)
    scale = max(1, round(_SHORT_SIDE / min(height, width)))
    size = (width * scale, height * scale)
    picture = np.asarray(cv2.resize(tinted, size, interpolation=cv2.INTER_NEAREST), dtype=np.uint8)
    for frame in parts:
        corners = [(frame.x0 * scale, frame.y0 * scale), (frame.x1 * scale - 1, frame.y1 * scale - 1)]
        cv2.rectangle(picture, corners[0], corners[1], _FRAME, 2)
        _write(picture, str(frame.index + 1), (corners[0][0] + 4, corners[0][1] + 18))
    strip = np.full((32, picture.shape[1], 3), 255, dtype=np.uint8)
    share = parts.background_area / (height * width)
    text = f"{len(parts)} frames, background {share:.1%}, alpha {parts.alpha:.3g}"
    cv2.putText(strip, text, (8, 22), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 0, 0), 1, cv2.LINE_AA)
    return np.concatenate([picture, strip])


def draw_folder(
    gt_root: str | Path,
    out: Path,
    *,
    protocol: Protocol,
    image_root: str | Path | None = None,
    overwrite: bool = False,
) -> int:
    """Draw every mask of a folder, over its image if there are images; return how many."""
    jobs: list[tuple[str, str, str | None]]
    if image_root is None:
        files = [f for f in list_files(gt_root) if f.path.lower().endswith(EXTENSIONS)]
        jobs = [(Path(f.path).with_suffix("").as_posix(), f.path, None) for f in files]
    else:
        found = pair_files(image_root, gt_root).pairs
        jobs = [(pair.name, pair.gt.path, pair.pred.path) for pair in found]
    if not jobs:
        raise InputError(f"{str(gt_root)!r} has no image files; expected a folder of masks")
    with write_folder(out, overwrite=overwrite) as inside, progress_bar("drawing", len(jobs)) as advance:
        for name, mask_path, image_path in jobs:
            try:
                mask = as_mask(read_array(gt_root, mask_path), level=protocol.gt_level)
            except (ValueError, TypeError) as error:
                raise InputError(f"{gt_root}/{mask_path}: {error}") from error
            canvas = _canvas(mask, image_root, image_path)
            _, data = cv2.imencode(".png", draw_frames(canvas, protocol.partition(mask)))
            target = inside / f"{name}.png"
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, data.tobytes())
            advance(1)
    return len(jobs)


def _canvas(
    mask: NDArray[np.bool_], image_root: str | Path | None, image_path: str | None
) -> NDArray[np.uint8]:
    if image_root is None or image_path is None:
        return np.repeat(mask[..., None].astype(np.uint8) * np.uint8(255), 3, axis=2)
    data = np.frombuffer(read_bytes(image_root, image_path), dtype=np.uint8)
    image = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    if image is None:
        raise InputError(f"{str(image_root)!r}: {image_path!r} is not an image that can be read")
    return np.asarray(cv2.resize(image, mask.shape[::-1]), dtype=np.uint8)


def _write(picture: NDArray[np.uint8], text: str, place: tuple[int, int]) -> None:
    for colour, thickness in (((255, 255, 255), 4), (_FRAME, 2)):
        cv2.putText(picture, text, place, cv2.FONT_HERSHEY_SIMPLEX, 0.6, colour, thickness, cv2.LINE_AA)
