"""Auxiliary labels (body and detail) that a network of a first stage predicts for a second one."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)

from sisod.common.exceptions import InputError, UsageError
from sisod.common.output import output_path, write_png, write_run
from sisod.common.progress import progress_bar
from sisod.common.run_folder import write_folder
from sisod.data.datasets import Sample
from sisod.data.images import resize
from sisod.networks.network import Network
from sisod.training.data import read_image


@torch.inference_mode()
def write_labels(network: Network, samples: Sequence[Sample], folder: Path, *, size: int) -> None:
    """Write TARGET/NAME.png for every auxiliary target and image, at its size, all files or none.

    Of several maps of a target the last one counts: that of the network's last pass.
    """
    last_map = {target: index for index, target in enumerate(network.targets) if target != "mask"}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network.to(device).eval()
    with (
        write_folder(folder, kind="labels", overwrite=True) as inside,
        progress_bar("labels", len(samples)) as advance,
    ):
        for sample in samples:
            image = read_image(sample)
            x = torch.from_numpy(resize(image, size).transpose(2, 0, 1)[None].copy())
            maps = network(network.input_spec.apply(x.to(device)))
            for target, index in last_map.items():
                probs = F.interpolate(maps[index], size=image.shape[:2], mode="bilinear").sigmoid()
                label = (probs[0, 0] * 255).round().cpu().numpy().astype(np.uint8)
                write_png(output_path(inside / target, sample.name, ".png"), label)
            advance(1)
        write_run(inside, {"images": len(samples), "size": size})


def check_labels(folder: Path | None, network: Network) -> None:
    """Raise if a folder lacks labels of the network, or the network learns none."""
    targets = network.auxiliary_targets()
    if folder is None:
        return
    if not targets:
        raise UsageError(
            f"--labels is for networks that learn body and detail; {network.facts.name} learns masks "
            "only; leave it out"
        )
    if not all((folder / target).is_dir() for target in targets):
        raise InputError(
            f"{str(folder)!r} has no folders {' and '.join(targets)}; expected the folder labels of "
            "another run"
        )
