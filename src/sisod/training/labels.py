"""LDF's second stage learns body and detail as the network of the first stage sees them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)

from sisod.common.folders import write_folder
from sisod.common.output import output_path, write_png
from sisod.common.progress import progress_bar
from sisod.data.datasets import Sample
from sisod.data.images import resize
from sisod.evaluation.result import write_run
from sisod.networks.network import Network
from sisod.training.data import read_image

KINDS = ("body", "detail")


@torch.inference_mode()
def write_labels(network: Network, samples: Sequence[Sample], folder: Path, *, size: int) -> None:
    """Write body/NAME.png and detail/NAME.png for every image, at its size, all or none of them."""
    last = {kind: max(i for i, target in enumerate(network.targets) if target == kind) for kind in KINDS}
    place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network.to(place).eval()
    with (
        write_folder(folder, kind="labels", overwrite=True) as inside,
        progress_bar("labels", len(samples)) as advance,
    ):
        for sample in samples:
            image = read_image(sample)
            x = torch.from_numpy(resize(image, size).transpose(2, 0, 1)[None].copy())
            maps = network(network.input_spec.apply(x.to(place)))
            for kind in KINDS:
                probs = F.interpolate(maps[last[kind]], size=image.shape[:2], mode="bilinear").sigmoid()
                label = (probs[0, 0] * 255).round().cpu().numpy().astype(np.uint8)
                write_png(output_path(inside / kind, sample.name, ".png"), label)
            advance(1)
        write_run(inside, {"images": len(samples), "size": size})
