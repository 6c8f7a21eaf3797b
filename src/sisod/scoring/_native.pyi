from typing import Any, TypeAlias

_Plane: TypeAlias = Any  # C-contiguous, two dimensions

VERSION: int

def measure(
    grey: _Plane,
    gt: _Plane,
    least: int,
    connectivity: int,
    minmax: bool,
    objects: bool,
    histograms: bool,
    /,
) -> tuple[bytes, bytes, tuple[int, int], int, int, tuple[bytes, bytes, bytes, bytes] | None]: ...
def count(codes: _Plane, gt: _Plane, boxes: _Plane, n_codes: int, /) -> bytes: ...
def values(
    arrays: tuple[Any, ...], first: int, background: int, numerator: float, denominator: float, /
) -> bytes: ...
def thresholds(
    steps: _Plane, gt: _Plane, n_thresholds: int, connectivity: int, least: int, /
) -> bytes: ...
def nearest(index: _Plane, /) -> None: ...
def thin(plane: _Plane, passes: _Plane, /) -> None: ...
def near(pixels: _Plane, others: _Plane, tolerance: int, /) -> int: ...
def moments(grey: _Plane, gt: _Plane, boxes: _Plane, low: int, /) -> bytes: ...
def weighted_errors(
    grey: _Plane, gt: _Plane, boxes: _Plane, gaussian: Any, weights: Any, low: int, high: int, /
) -> bytes: ...
