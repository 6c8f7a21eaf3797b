"""Maps and masks for the outside witnesses of boundary metrics; needs NumPy only, 1.26 or 2."""

from helpers.object_maps import Map, Mask, object_maps, resized


def boundary_maps() -> dict[str, tuple[Map, Mask]]:
    """Return the pairs of `object_maps`, enlarged: bands, radii and tolerances exceed a pixel."""
    pairs = {}
    for number, (name, (pred, gt)) in enumerate(object_maps().items()):
        shape = (384, 512) if number < 4 else (192, 256)
        pairs[name] = resized(pred, shape), resized(gt, shape)
    return pairs
