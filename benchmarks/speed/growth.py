"""How the cost of a score grows with pixels and with frames."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

import sisod
from benchmarks.speed.synthetic_maps import Grey, enlarge, make_grid, make_map
from benchmarks.timing import Row, duration, exponent, interleaved_medians, markdown, progress
from sisod.scoring.metrics import METRICS, find_metrics

# metrics of pixel counts: neither pixels metrics nor predicted objects
COUNT_KEYS = tuple(
    key for key in find_metrics(None) if METRICS[key].family.kind not in ("objects", "balanced")
)
_BASE_SHAPE = (275, 364)  # 0.1 megapixels
_GRID_SIDE = 2000
_ALL_FRAMES = sisod.Protocol("every component", min_area=0)  # the default drops specks


@dataclass(frozen=True)
class PixelGrowth:
    """Seconds by number of pixels."""

    pixels: list[int]
    seconds: list[float]

    def row(self, what: str = "") -> Row:
        """The exponent of the growth; `what` says with which metrics."""
        sizes = f"{_mega(self.pixels[0])} to {_mega(self.pixels[-1])}"
        return Row(
            what=f"{what}growth with pixels, {sizes}, exponent",
            ours=(self.seconds[0], self.seconds[-1]),
            peer=None,
            value=exponent(self.pixels, self.seconds),
            target=1.1,
            at_least=False,
        )

    def table(self) -> str:
        """One line per size."""
        lines = [
            [_mega(pixels), duration(seconds), f"{1e9 * seconds / pixels:.3g}"]
            for pixels, seconds in zip(self.pixels, self.seconds, strict=True)
        ]
        return markdown(["8 objects", "time", "ns per pixel"], lines)


def measure_pixels(
    factors: Sequence[int], *, metrics: Sequence[str] = COUNT_KEYS, repetitions: int
) -> PixelGrowth:
    """Time one image of eight objects at growing size."""
    progress("growth with pixels")
    pred, gt = make_map(_BASE_SHAPE, 8, np.random.default_rng(1))
    images = [(enlarge(pred, factor), enlarge(gt, factor)) for factor in factors]
    seconds = _growth(images, partial(sisod.score, metrics=metrics), repetitions)
    return PixelGrowth([pred.size for pred, _ in images], seconds)


@dataclass(frozen=True)
class FrameGrowth:
    """Seconds by number of frames."""

    n_frames: list[int]
    seconds: list[float]

    def microseconds(self, base: int = 0) -> list[float]:
        """Cost of a frame beyond those of image `base`, for the images after it.

        From image 1 on (two frames, in opposite corners) components are searched in the same window;
        against image 0 (one frame) the search of the whole image counts as the frames' cost too.
        """
        n_base, base_seconds = self.n_frames[base], self.seconds[base]
        beyond = zip(self.n_frames[base + 1 :], self.seconds[base + 1 :], strict=True)
        return [1e6 * (seconds - base_seconds) / (n - n_base) for n, seconds in beyond]

    def row(self) -> Row:
        """The cost of a frame where there are most."""
        return Row(
            what=f"growth with frames, 1 to {self.n_frames[-1]} of 8 x 8 pixels, per frame",
            ours=(self.seconds[0], self.seconds[-1]),
            peer=None,
            value=self.microseconds()[-1],
            target=50,
            at_least=False,
            unit="us",
        )

    def table(self) -> str:
        """One line per number of frames."""
        beyond_one = ["-", *(f"{cost:.3g}" for cost in self.microseconds())]
        beyond_two = ["-", "-", *(f"{cost:.3g}" for cost in self.microseconds(base=1))]
        rows = zip(self.n_frames, self.seconds, beyond_one, beyond_two, strict=True)
        lines = [[str(n), duration(seconds), *costs] for n, seconds, *costs in rows]
        side = f"frames, {_GRID_SIDE} x {_GRID_SIDE}"
        return markdown([side, "time", "us per frame beyond 1", "beyond 2"], lines)


def measure_frames(n_frames: Sequence[int], *, repetitions: int) -> FrameGrowth:
    """Time one large image with a growing number of small objects."""
    progress("growth with frames")
    rng = np.random.default_rng(2)
    images = [make_grid(_GRID_SIDE, n, rng) for n in n_frames]
    for n, (_, gt) in zip(n_frames, images, strict=True):
        assert len(_ALL_FRAMES.partition(gt > 0)) == n
    score = partial(sisod.score, protocol=_ALL_FRAMES, metrics=COUNT_KEYS)
    seconds = _growth(images, score, repetitions)
    return FrameGrowth(list(n_frames), seconds)


def _growth(
    images: Sequence[tuple[Grey, Grey]], score: Callable[[Grey, Grey], object], repetitions: int
) -> list[float]:
    contenders = {str(index): [partial(score, *image)] for index, image in enumerate(images)}
    medians = interleaved_medians(contenders, repetitions=repetitions)
    return [times[0] for times in medians.values()]


def _mega(pixels: int) -> str:
    return f"{pixels / 1e6:.3g} Mpx"
