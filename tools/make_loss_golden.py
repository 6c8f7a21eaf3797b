"""Write `tests/losses/loss_golden.json`: what MONAI says of `tversky(a,b)` and `focal(g)`.

MONAI needs an environment of its own:

    python -m venv witness
    witness/bin/python -m pip install monai==1.6.1 torch
    PYTHONPATH=tests witness/bin/python tools/make_loss_golden.py

Both losses are called without smoothing, since ours has none, and give one value per image.
"""

import importlib.metadata
import json
from pathlib import Path

import torch
from helpers.loss_maps import loss_maps
from monai.losses import FocalLoss, TverskyLoss

GOLDEN_PATH = Path(__file__).parents[1] / "tests" / "losses" / "loss_golden.json"
TVERSKY = [(0.3, 0.7), (0.7, 0.3), (0.5, 0.5), (1.0, 1.0), (0.0, 2.0)]
FOCAL = [0.0, 0.5, 1.0, 2.0, 5.0]


def main() -> None:
    """Compute and write."""
    logits, masks = (torch.from_numpy(array) for array in loss_maps())
    values = {}
    for a, b in TVERSKY:
        loss = TverskyLoss(sigmoid=True, alpha=a, beta=b, smooth_nr=0, smooth_dr=0, reduction="none")
        values[f"tversky({a},{b})"] = loss(logits, masks).flatten().tolist()
    for g in FOCAL:
        # the third mask is soft, for which MONAI has another p_t
        pixels = FocalLoss(gamma=g, reduction="none")(logits[:2], masks[:2])
        values[f"focal({g})"] = pixels.mean(dim=(1, 2, 3)).tolist()
    content = {"monai": importlib.metadata.version("monai"), "values": values}
    GOLDEN_PATH.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
