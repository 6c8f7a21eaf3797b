"""Masks drawn with characters."""

import numpy as np
from numpy.typing import NDArray


def drawing(*rows: str) -> NDArray[np.bool_]:
    """Return the mask of a drawing: `#` is an object, everything else background."""
    return np.array([[character == "#" for character in row] for row in rows])
