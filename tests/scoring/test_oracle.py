"""The library against the slow oracle, on random images and on edge cases."""

from typing import Any, Literal

import numpy as np
import pytest
from helpers import oracle
from helpers.engine_scores import score_one
from helpers.mask_drawings import drawing
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import sisod
from sisod.scoring.metrics import find_metrics

pytestmark = pytest.mark.usefixtures("both_engines")

Mask = NDArray[np.bool_]
ALL_KEYS = find_metrics("all")
FORMS = ("mean", "max", "adaptive", "binary")
BOUNDARIES = {"biou", "si_biou", "mba", "hce", "nsd"}  # tested in test_boundaries.py
# few values, many ties; both sides of one half in every type
GREY = [0, 1, 2, 63, 64, 127, 128, 129, 200, 254, 255]
DEEP = [0, 1, 256, 257, 32767, 32768, 32896, 50000, 65534, 65535]
UNIT = [0.0, 1 / 255, 0.1, 0.2, 1 / 3, 0.5, 0.5 + 2**-20, 0.75, 254 / 255, 1.0]


# a seed, not pixels, is drawn: hypothesis' own arrays are nearly all constant


@st.composite
def masks(draw: st.DrawFn, side: int = 12) -> Mask:
    shape = draw(st.tuples(st.integers(1, side), st.integers(1, side)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    mask: Mask = rng.random(shape) < draw(st.sampled_from([0.0, 0.05, 0.15, 0.3, 0.5, 1.0]))
    for _ in range(draw(st.integers(0, 3))):  # rectangles make frames with more than noise in them
        y, x = draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))
        mask[y : y + draw(st.integers(1, 6)), x : x + draw(st.integers(1, 6))] = draw(st.booleans())
    return mask


@st.composite
def preds(draw: st.DrawFn, shape: tuple[int, ...]) -> NDArray[Any]:
    kind = draw(st.sampled_from(["uint8", "uint16", "float32", "float64", "bool"]))
    pools: dict[str, list[Any]] = {"uint8": GREY, "uint16": DEEP, "bool": [False, True]}
    pool = pools.get(kind, UNIT)
    few = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=7, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    pred: NDArray[Any] = rng.choice(np.array(few, dtype=kind), shape)
    assume(pred.dtype.kind != "u" or pred.max() != 1)  # 0/1 integers are warned about, not here
    return pred


@st.composite
def pairs(draw: st.DrawFn, side: int = 12) -> tuple[NDArray[Any], Mask]:
    gt = draw(masks(side))
    return draw(preds(gt.shape)), gt


def expected_keys() -> set[str]:
    plain = {"mae", "mse", "auc", "s", "wf", "f_max_image"}
    plain |= {f"{family}_{form}" for family in oracle.FAMILIES for form in FORMS}
    return plain | {f"si_{key}" for key in plain} | {"si_f_max_frame", "msiou"}


def is_of_objects(key: str) -> bool:
    """Tell whether a metric is tested in test_objects.py."""
    return sisod.METRICS[key].family.kind in ("objects", "balanced")


def check_partition(ours: sisod.Partition, theirs: oracle.Cut) -> None:
    assert [tuple(row) for row in ours.boxes.tolist()] == theirs.boxes
    assert ours.areas.tolist() == theirs.areas
    assert ours.frame_areas.tolist() == [len(frame) for frame in theirs.frames]
    assert sorted(map(tuple, np.argwhere(ours.background).tolist())) == theirs.background
    assert ours.alpha == pytest.approx(theirs.alpha, rel=1e-15)


def check_scores(
    pred: NDArray[Any],
    gt: Mask,
    parts: oracle.Cut,
    *,
    protocol: sisod.Protocol = sisod.PROTOCOLS["default"],
    partition: sisod.Partition | None = None,
    keys: tuple[str, ...] = ALL_KEYS,
) -> None:
    """Compare every value, every point of every curve and every object, undefined ones too."""
    structure = bool({"s", "wf"} & set(keys))
    theirs = oracle.opinion(
        pred,
        gt,
        parts,
        normalize=protocol.normalize,
        first_threshold=protocol.first_threshold,
        structure=structure,
    )
    ours = score_one(pred, gt, protocol=protocol, keys=keys, partition=partition)
    # the witness of msiou is PySODMetrics; metrics of objects and boundaries have oracles of their own
    compared = [key for key in keys if key not in {"msiou", *BOUNDARIES} and not is_of_objects(key)]
    assert {key: ours.values[key] for key in compared} == pytest.approx(
        {key: theirs.values[key] for key in compared}, abs=1e-9, nan_ok=True
    )
    for name, curve in ours.curves.items():
        np.testing.assert_allclose(curve, theirs.curves[name], rtol=0, atol=1e-9, err_msg=name)
    for column, values in theirs.objects.items():
        np.testing.assert_allclose(
            ours.objects[column].astype(float), values, rtol=0, atol=1e-9, err_msg=column
        )


def check(pred: NDArray[Any], gt: Mask) -> None:
    """Compare partition and scores under the default protocol."""
    assert oracle.adaptive_is_clear(oracle.probabilities(pred))
    parts = oracle.cut(gt)
    check_partition(sisod.partition(gt), parts)
    check_scores(pred, gt, parts)


# -------------------------------------------------------------------------------------- drawn


def test_keys_are_those_of_the_design() -> None:
    assert {key for key in ALL_KEYS if not is_of_objects(key)} == expected_keys() | BOUNDARIES
    by_default = {key for key in find_metrics(None) if not is_of_objects(key)}
    assert by_default == expected_keys() - {"s", "wf", "msiou", "si_s", "si_wf"}


@settings(deadline=None, max_examples=400)
@given(
    gt=masks(),
    connectivity=st.sampled_from([4, 8]),
    min_area=st.one_of(st.integers(0, 12), st.sampled_from([0.0, 0.0002, 0.03125, 0.125, 1.0])),
    alpha=st.sampled_from(["ratio", "union", 0, 1, 0.25]),
)
@pytest.mark.slow
def test_partition(gt: Mask, connectivity: Literal[4, 8], min_area: float, alpha: Any) -> None:
    check_partition(
        sisod.partition(gt, connectivity=connectivity, min_area=min_area, alpha=alpha),
        oracle.cut(gt, connectivity=connectivity, min_area=min_area, alpha=alpha),
    )


@settings(deadline=None, max_examples=100)
@given(gt=masks(), min_area=st.integers(0, 6))
def test_voronoi_partition(gt: Mask, min_area: int) -> None:
    ours = sisod.partition(gt, kind="voronoi", min_area=min_area)
    theirs = oracle.cut(gt, kind="voronoi", min_area=min_area)
    check_partition(ours, theirs)
    if theirs.frames:
        assert ours.regions is not None
        for index, frame in enumerate(theirs.frames):
            assert sorted(map(tuple, np.argwhere(ours.regions == index).tolist())) == frame


@settings(deadline=None, max_examples=100)
@given(
    labels=hnp.arrays(
        np.int32,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=9),
        elements=st.sampled_from([0, 0, 1, 2, 7, 300]),
    ),
    kind=st.sampled_from(["boxes", "voronoi"]),
    min_area=st.integers(0, 6),
)
def test_label_partition(labels: NDArray[np.int32], kind: Any, min_area: int) -> None:
    check_partition(
        sisod.partition(labels=labels, kind=kind, min_area=min_area),
        oracle.cut(labels != 0, labels=labels, kind=kind, min_area=min_area),
    )


@settings(deadline=None, max_examples=250)
@given(pair=pairs())
@pytest.mark.slow
def test_default(pair: tuple[NDArray[Any], Mask]) -> None:
    pred, gt = pair
    assume(oracle.adaptive_is_clear(oracle.probabilities(pred)))
    check(pred, gt)


@settings(deadline=None, max_examples=120)
@given(
    pair=pairs(side=9),
    connectivity=st.sampled_from([4, 8]),
    min_area=st.sampled_from([0, 3, 6, 0.125]),
    keep_ties=st.booleans(),
    alpha=st.sampled_from(["ratio", "union", 0, 1, 2.5]),
    normalize=st.sampled_from(["minmax", "none"]),
    first_threshold=st.sampled_from([0, 1]),
)
@pytest.mark.slow
def test_protocols(
    pair: tuple[NDArray[Any], Mask],
    connectivity: Literal[4, 8],
    min_area: float,
    keep_ties: bool,
    alpha: Any,
    normalize: Literal["minmax", "none"],
    first_threshold: Literal[0, 1],
) -> None:
    pred, gt = pair
    assume(oracle.adaptive_is_clear(oracle.probabilities(pred, normalize)))
    protocol = sisod.Protocol(
        "drawn",
        connectivity=connectivity,
        min_area=min_area,
        keep_ties=keep_ties,
        alpha=alpha,
        normalize=normalize,
        first_threshold=first_threshold,
    )
    parts = oracle.cut(
        gt, connectivity=connectivity, min_area=min_area, keep_ties=keep_ties, alpha=alpha
    )
    check_partition(protocol.partition(gt), parts)
    check_scores(pred, gt, parts, protocol=protocol)


@settings(deadline=None, max_examples=80)
@given(pair=pairs(side=8), labels=st.booleans())
@pytest.mark.slow
def test_voronoi_and_labels_scores(pair: tuple[NDArray[Any], Mask], labels: bool) -> None:
    pred, gt = pair
    assume(oracle.adaptive_is_clear(oracle.probabilities(pred)))
    keys = find_metrics(None)
    if labels:  # two instances that touch: the left and the right half
        instances = gt * (1 + (np.arange(gt.shape[1]) >= gt.shape[1] // 2))
        parts = oracle.cut(gt, labels=instances)
        check_scores(pred, gt, parts, partition=sisod.partition(labels=instances))
    else:
        parts = oracle.cut(gt, kind="voronoi")
        check_scores(pred, gt, parts, partition=sisod.partition(gt, kind="voronoi"), keys=keys)
        own = sisod.Protocol("own voronoi", kind="voronoi")
        check_scores(pred, gt, parts, protocol=own, keys=keys)


# ---------------------------------------------------------------------------------- awkward ones


def noise(shape: tuple[int, ...], seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).choice(np.array(GREY, np.uint8), shape)


CASES = {
    "all salient": np.ones((5, 7), bool),
    "none salient": np.zeros((5, 7), bool),
    "one salient pixel": drawing("....", ".#..", "...."),
    "one pixel, salient": np.ones((1, 1), bool),
    "one pixel, not salient": np.zeros((1, 1), bool),
    "a frame that is the whole image": drawing("####.", "#...#", "....#", "#####"),
    "two frames that cover the image": drawing("##.", ".#.", "...", "..#", ".##")
    | drawing("...", "#..", "#.#", "#..", "..."),
    "nested boxes": drawing("#######", "#.....#", "#.##..#", "#..#..#", "#.....#", "#######"),
    "the same box twice": drawing("#.#.#", ".....", "#...#", ".....", "#.#.#"),
    "overlapping boxes": drawing("..#....", "..#.#..", "###.#..", "....#..", ".####..", "......."),
    "two boxes with one corner": drawing(".###", "...#", "#..#", "#...", "##.."),
    "diagonal": drawing("#....", ".#...", "..#..", "...#.", "....#"),
    "one row": drawing("..##..#.###"),
    "one column": drawing(*"..##..#.###"),
    "a specks-only image": drawing("#.#.", "....", "#..#"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_case(name: str, dtype: str) -> None:
    gt = CASES[name]
    grey = noise(gt.shape, len(name))
    pred: NDArray[Any] = {
        "uint8": grey,
        "uint16": grey.astype(np.uint16) * np.uint16(257) // np.uint16(2),
        "float32": (grey / 300).astype(np.float32),
        "float64": (grey / 301) ** 2,
    }[dtype]
    check(pred, gt)


@pytest.mark.parametrize("value", [0, 100, 128, 255])
@pytest.mark.parametrize("name", ["all salient", "none salient", "nested boxes", "one row"])
def test_constant_predictions(name: str, value: int) -> None:
    gt = CASES[name]
    for pred in (
        np.full(gt.shape, value, np.uint8),
        np.full(gt.shape, value * 257, np.uint16),
        np.full(gt.shape, value / 255, np.float32),
    ):
        check(pred, gt)


def test_perfect_and_opposite_predictions() -> None:
    for gt in CASES.values():
        check(gt, gt)
        check(~gt, gt)


def test_a_constant_quadrant_has_no_spread() -> None:
    """Seven times 0.1 has a mean other than 0.1; the rounding must not change S."""
    gt = drawing("####...", "####...", ".......", ".......", ".......")
    pred = np.full(gt.shape, 0.1)
    pred[gt] = 0.7
    pred[0, 6] = 1.0
    pred[4, 0] = 0.0
    check(pred, gt)


@pytest.mark.slow
def test_a_thousand_components() -> None:
    gt = np.zeros((75, 120), bool)
    gt[::3, ::3] = gt[::3, 1::3] = gt[1::3, ::3] = True  # an L of three pixels in every 3 x 3 cell
    pred = noise(gt.shape, 1000)
    pred[gt] |= 64
    parts = oracle.cut(gt, min_area=1)
    assert len(parts.frames) == 1000
    check_partition(sisod.partition(gt, min_area=1), parts)
    keys = find_metrics(None)
    check_scores(pred, gt, parts, partition=sisod.partition(gt, min_area=1), keys=keys)
