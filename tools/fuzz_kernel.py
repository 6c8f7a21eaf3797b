"""Give the compiled kernel random and adversarial images; a sanitized build ends at the first error.

    python tools/fuzz_kernel.py BUILT_KERNEL --seconds 600

`make sanitize` builds the kernel with the checks and calls this. What is computed is compared with the
Python engine.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def load_kernel(path: Path) -> None:
    """Let sisod use this build instead of its own."""
    spec = importlib.util.spec_from_file_location("sisod.scoring._native", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    import sisod.scoring

    sys.modules["sisod.scoring._native"] = sisod.scoring._native = module


def random_plane(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Return noise, stripes, a checkerboard, a comb, blocks, a few pixels, or a constant."""
    y, x = np.indices(shape)
    step = int(rng.integers(1, 9))
    kind = int(rng.integers(0, 8))
    plane: NDArray[Any]
    if kind == 0:
        plane = rng.integers(0, 256, shape)
    elif kind == 1:
        plane = rng.choice(rng.integers(0, 256, 3), shape)
    elif kind == 2:
        plane = (y + x) % (step + 1) * 255
    elif kind == 3:
        plane = (x // step % 2) * 255 * (y > 0) + 255 * (y == shape[0] - 1)  # joined at the last row
    elif kind == 4:
        plane = np.kron(rng.integers(0, 2, (shape[0] // 5 + 1, shape[1] // 5 + 1)), np.ones((5, 5)))
        plane = plane[: shape[0], : shape[1]] * 255
    elif kind == 5:
        plane = np.minimum(np.minimum(y, x), np.minimum(shape[0] - 1 - y, shape[1] - 1 - x)) % 2 * 255
    elif kind == 6:
        plane = (rng.random(shape) < 3 / (y.size + 1)) * 255
    else:
        plane = np.full(shape, rng.integers(0, 256))
    return np.asarray(plane, dtype=np.int64).clip(0, 255).astype(np.uint8)


def main() -> None:
    """Parse the command line, then compare both engines until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel", type=Path)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    load_kernel(options.kernel)
    import sisod
    from sisod.scoring import kernel

    rng = np.random.default_rng(options.seed)
    end, n, n_compared = time.monotonic() + options.seconds, 0, 0
    while time.monotonic() < end:
        height, width = (int(side) for side in np.exp(rng.uniform(0, 6, 2)))
        gt = random_plane(rng, (height, width)) >= 128
        pred: NDArray[Any] = random_plane(rng, (height, width))
        if n % 4 == 1:
            pred = pred / 255
        protocol = f"default+min_area={int(rng.integers(0, 30))}+connectivity={int(rng.choice([4, 8]))}"
        keys = ["mae", "si_mae", "si_f_max", "auc", "si_e_mean", "pq", "object_f1_max"]
        keys += ["s", "si_s", "wf", "hce", "nsd"]
        found = sisod.score(pred, gt, protocol=protocol, metrics=keys)
        if n % 10 == 0:
            with kernel.use_engine("python"):
                expected = sisod.score(pred, gt, protocol=protocol, metrics=keys)
            np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=0, atol=1e-12)
            n_compared += 1
        n += 1
    print(f"{n} images, {n_compared} compared with the Python engine, seed {options.seed}")


if __name__ == "__main__":
    main()
