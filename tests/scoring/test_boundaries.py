"""Metrics of boundaries: by hand, against the slow oracle, and on masks without a boundary."""

import math
from typing import Any

import numpy as np
import pytest
from helpers import boundary_oracle as oracle
from helpers.mask_drawings import drawing
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod
from sisod.common.exceptions import UsageError
from sisod.scoring.families.boundaries import surface_dice

pytestmark = pytest.mark.usefixtures("both_engines")

Mask = NDArray[np.bool_]
KEYS = ("biou", "si_biou", "mba", "hce", "nsd")


def score(pred: NDArray[Any], gt: Mask) -> dict[str, float]:
    return sisod.score(pred, gt, metrics=KEYS, protocol="default+min_area=0")


def square(shape: tuple[int, int], top: int, left: int, side: int) -> Mask:
    mask = np.zeros(shape, dtype=bool)
    mask[top : top + side, left : left + side] = True
    return mask


# ------------------------------------------------------------------------------------- by hand


def test_boundary_iou_of_a_shifted_square() -> None:
    """Rings of 12 pixels each; three pixels above and three below are common."""
    gt, pred = square((10, 10), 2, 2, 4), square((10, 10), 2, 3, 4)
    assert score(pred, gt)["biou"] == 6 / 18


def test_the_edge_of_the_image_is_a_boundary() -> None:
    """The ring of a full image of 4 x 4 has 12 pixels; the prediction leaves out a corner."""
    gt = np.ones((4, 4), dtype=bool)
    pred = gt.copy()
    pred[0, 0] = False
    # the prediction's band has the other 11, and the pixel beside the corner inside, (1, 1)
    assert score(pred, gt)["biou"] == 11 / 13


def test_a_frame_has_its_own_width() -> None:
    """2 % of the image are 6 pixels, so that the band is the object; 2 % of the frame are one."""
    gt, pred = square((200, 200), 50, 60, 10), square((200, 200), 51, 61, 8)
    values = score(pred, gt)
    assert values["biou"] == 64 / 100
    assert values["si_biou"] == 0  # two rings, one inside the other


def test_every_object_counts_the_same() -> None:
    gt = square((60, 60), 5, 5, 30) | square((60, 60), 50, 50, 4)
    values = score(square((60, 60), 5, 5, 30), gt)
    assert values["si_biou"] == 0.5
    # bands of two pixels: 900 - 26^2 of the large one, all 16 of the small one
    assert values["biou"] == pytest.approx(224 / 240, abs=1e-15)


def test_salient_pixels_of_another_object_are_part_of_a_frame() -> None:
    gt = drawing("#####", "#....", "#.#..", "#....", "#....")
    values = score(gt, gt)
    assert values["si_biou"] == values["biou"] == 1


def test_boundary_accuracy_of_half_planes() -> None:
    """Width + height is 900: the radii are 1, 1, 1, 2, 2, so 2 columns or 4 of them are near."""
    gt = np.zeros((450, 450), dtype=bool)
    gt[:, :200] = True
    pred = gt.copy()
    pred[:, 198] = False  # the second column from the edge
    assert score(pred, gt)["mba"] == pytest.approx((3 * 1 + 2 * 3 / 4) / 5, abs=1e-15)


def test_boundary_accuracy_of_a_small_image_has_one_radius() -> None:
    gt = drawing("##..", "##..", "##..")
    pred = drawing("##..", "###.", "##..")
    assert score(pred, gt)["mba"] == 5 / 6


@pytest.mark.parametrize(("place", "expected"), [((11, 11), 1.0), ((10, 12), 0.0), ((10, 11), 1.0)])
def test_tolerance_of_the_surface_distance(place: tuple[int, int], expected: float) -> None:
    """2 % of the diagonal of 50 x 50 are the root of 2: a diagonal step is near, two steps are not."""
    gt, pred = np.zeros((50, 50), dtype=bool), np.zeros((50, 50), dtype=bool)
    gt[10, 10] = pred[place] = True
    assert score(pred, gt)["nsd"] == expected


def test_surface_distance_counts_both_borders() -> None:
    """Of 4 + 4 border pixels, those of the first squares are equal, those of the second far away."""
    gt = square((20, 20), 2, 2, 2) | square((20, 20), 12, 2, 2)
    pred = square((20, 20), 2, 2, 2) | square((20, 20), 12, 12, 1)
    assert score(pred, gt)["nsd"] == (4 + 4) / (8 + 5)


def test_effort_of_a_false_object() -> None:
    """It is removed with one click."""
    gt, false = square((80, 80), 5, 5, 30), square((80, 80), 45, 45, 20)
    assert score(gt | false, gt)["hce"] == 1


def test_effort_of_a_missed_object() -> None:
    """Its outline is drawn: eight corners, and the point beside the first where it closes.

    The relaxation cuts the corners of the square, which leaves an octagon.
    """
    gt, missed = square((80, 80), 5, 5, 30), square((80, 80), 45, 45, 20)
    assert score(gt, gt | missed)["hce"] == 9


def test_thin_errors_need_no_correction() -> None:
    gt = square((60, 60), 10, 10, 40)
    assert score(square((60, 60), 14, 14, 32), gt)["hce"] == 0  # nearer than five pixels to the outline
    assert score(square((60, 60), 6, 6, 48), gt)["hce"] == 0


def test_a_missed_line_needs_its_two_ends() -> None:
    """Erosion would remove it; it is kept because it is part of the skeleton."""
    gt = square((60, 60), 30, 10, 20)
    line = np.zeros_like(gt)
    line[5, 10:40] = True
    assert score(gt, gt | line)["hce"] == 2


# ------------------------------------------------------------------------- nothing to measure

EMPTY, FULL = np.zeros((6, 8), dtype=bool), np.ones((6, 8), dtype=bool)
ONE = drawing("........", "...#....", "........", "........", "........", "........")
ROW, HALF_ROW = np.ones((1, 9), dtype=bool), drawing("####.....")
PIXEL = np.ones((1, 1), dtype=bool)
NAN = math.nan


@pytest.mark.parametrize(
    ("pred", "gt", "expected"),
    [
        (EMPTY, EMPTY, (NAN, NAN, NAN, 0, NAN)),
        (FULL, EMPTY, (NAN, NAN, NAN, 1, NAN)),  # one region to remove
        (EMPTY, FULL, (0, 0, NAN, 1, 0)),  # one region to add: without background no outline
        (FULL, FULL, (1, 1, NAN, 0, 1)),
        (EMPTY, ONE, (0, 0, 4 / 5, 1, 0)),
        (ONE, ONE, (1, 1, 1, 0, 1)),
        (ONE, FULL, (0, 0, NAN, 1, 0)),
        (ROW, ROW, (1, 1, NAN, 0, 1)),
        (HALF_ROW, ROW, (4 / 9, 4 / 9, NAN, 1, 8 / 13)),
        (ROW, HALF_ROW, (4 / 9, 1, 1 / 2, 1, 8 / 13)),
        (PIXEL, PIXEL, (1, 1, NAN, 0, 1)),
        (~PIXEL, PIXEL, (0, 0, NAN, 1, 0)),
        (PIXEL, ~PIXEL, (NAN, NAN, NAN, 1, NAN)),
    ],
)
def test_degenerate_masks(pred: Mask, gt: Mask, expected: tuple[float, ...]) -> None:
    assert tuple(score(pred, gt).values()) == pytest.approx(expected, abs=1e-15, nan_ok=True)


# ---------------------------------------------------------------------------- against the oracle


@st.composite
def mask_pairs(draw: st.DrawFn, side: int) -> tuple[Mask, Mask]:
    shape = draw(st.tuples(st.integers(1, side), st.integers(1, side)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    masks = []
    for _ in range(2):
        mask = rng.random(shape) < draw(st.sampled_from([0.0, 0.0, 0.05, 0.95]))
        for _ in range(draw(st.integers(0, 3))):
            y, x = (int(rng.integers(0, length)) for length in shape)
            height, width = rng.integers(1, side + 1, 2)
            mask[y : y + height, x : x + width] = rng.random() < 0.8
        masks.append(mask)
    return masks[0], masks[1]


@settings(deadline=None, max_examples=80)
@given(mask_pairs(14))
def test_oracle(pair: tuple[Mask, Mask]) -> None:
    pred, gt = pair
    boxes = [tuple(box) for box in sisod.partition(gt, min_area=0).boxes.tolist()]
    expected = {
        "biou": oracle.boundary_iou(pred, gt),
        "si_biou": oracle.si_boundary_iou(pred, gt, boxes),
        "mba": oracle.boundary_accuracy(pred, gt),
        "nsd": oracle.surface_distance(pred, gt),
    }
    values = score(pred, gt)
    assert {key: values[key] for key in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)


@settings(deadline=None, max_examples=4)
@given(st.integers(0, 2**32))
@pytest.mark.parametrize("shape", [(60, 70), (1, 700), (900, 1)])
def test_oracle_where_bands_and_radii_are_wide(shape: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    pred, gt = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for _ in range(4):
        y, x = (int(rng.integers(0, length)) for length in shape)
        height, width = (int(rng.integers(1, length + 1)) // 2 + 1 for length in shape)
        gt[y : y + height, x : x + width] = True
        dy, dx = (int(shift) for shift in rng.integers(0, 4, 2))
        pred[y + dy : y + height, x + dx : x + width + dx] = True
    expected = {
        "biou": oracle.boundary_iou(pred, gt),
        "mba": oracle.boundary_accuracy(pred, gt),
        "nsd": oracle.surface_distance(pred, gt),
    }
    values = score(pred, gt)
    assert {key: values[key] for key in expected} == pytest.approx(expected, abs=1e-12, nan_ok=True)


@settings(deadline=None, max_examples=100)
@given(mask_pairs(12), st.integers(0, 200))
def test_surface_dice_at_any_tolerance(pair: tuple[Mask, Mask], squared: int) -> None:
    expected = oracle.surface_distance(*pair, tolerance=math.sqrt(squared))
    assert surface_dice(*pair, squared) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("normalize", ["minmax", "none"])
def test_grey_maps_are_cut_at_one_half(dtype: str, normalize: str) -> None:
    rng = np.random.default_rng(3)
    grey = rng.integers(20, 250, (40, 50)).astype(np.uint8)
    maps: dict[str, NDArray[Any]] = {
        "uint8": grey,
        "uint16": grey.astype(np.uint16) * 257,
        "float32": (grey / 255).astype(np.float32),
        "float64": grey / 255,
    }
    pred = maps[dtype]
    gt = square((40, 50), 10, 10, 20)
    p = pred.astype(np.float64) / {"uint8": 255, "uint16": 65535}.get(dtype, 1)
    if normalize == "minmax":
        p = (p - p.min()) / (p.max() - p.min())
    protocol = f"default+normalize={normalize}"
    assert sisod.score(pred, gt, metrics=KEYS, protocol=protocol) == sisod.score(
        p > 0.5, gt, metrics=KEYS, protocol=protocol
    )


def test_voronoi_regions_have_no_boundary_iou() -> None:
    with pytest.raises(
        UsageError, match="si_biou needs rectangular frames and the protocol has Voronoi"
    ):
        sisod.score(ONE, ONE, metrics="si_biou", protocol="cc")
    with pytest.raises(ValueError, match="si_biou needs rectangular frames and these are Voronoi"):
        sisod.score(ONE, ONE, metrics="si_biou", partition=sisod.partition(ONE, kind="voronoi"))
    missing = set(sisod.score(ONE, ONE, metrics="all")) - set(
        sisod.score(ONE, ONE, metrics="all", protocol="cc")
    )
    assert missing == {"si_s", "si_wf", "si_biou"}
    assert sisod.score(ONE, ONE, metrics="biou,hce", protocol="cc") == {"biou": 1, "hce": 0}
