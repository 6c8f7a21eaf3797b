"""Maps that NumPy alone computes, so that outside tools in an environment of their own see the same."""

import numpy as np
from numpy.typing import NDArray


def loss_maps() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logits and masks, (3, 1, 24, 32): two objects, one, and a soft mask."""
    y, x = np.mgrid[:24, :32]
    waves = [np.sin(0.7 * x + k) * np.cos(0.5 * y - k) * 3 + 0.3 * k for k in range(3)]
    masks = np.zeros((3, 24, 32))
    masks[0, 2:6, 3:20] = masks[0, 15:18, 24:26] = 1
    masks[1, 8:22, 4:11] = 1
    masks[2] = np.round(np.exp(-((x - 15) ** 2 + (y - 10) ** 2) / 40), 3)
    return np.stack(waves)[:, None], masks[:, None]
