"""Time and memory per image of every network on one thread of a processor, for inference and training.

`python -m benchmarks.speed.networks` prints the tables and writes `networks.json` and `networks.md` to
`benchmarks/results`; with `--quick` it measures one network on one small image and writes
nothing. Every line is measured in a process of its own, so that its peak memory is its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.timing import duration, machine, markdown, progress, write_results
from sisod import networks

_PACKAGES = ("sisod", "torch", "numpy")
_MEGA = 2**20
_HEAD = ("network", "mode", "batch", "time per image", "memory per image", "peak memory")


@dataclass(frozen=True)
class Case:
    """What one process measures."""

    network: str
    encoder: str
    mode: str
    batch: int
    side: int
    repetitions: int


@dataclass(frozen=True)
class Cost:
    """What it found.

    Attributes:
        case: what was measured.
        seconds: processor time per image (other work does not count), the best of the repetitions.
        peak_bytes: of the process, PyTorch and the weights included.
        image_bytes: the peak beyond what the process held when the network had been made, per image.
    """

    case: Case
    seconds: float
    peak_bytes: int
    image_bytes: int

    def cells(self) -> list[str]:
        """The line as printed."""
        return [
            self.case.network,
            self.case.mode,
            str(self.case.batch),
            duration(self.seconds),
            f"{self.image_bytes / _MEGA:.0f} MB",
            f"{self.peak_bytes / _MEGA:.0f} MB",
        ]


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    names: tuple[str, ...]
    lite_names: tuple[str, ...]
    side: int
    small: int
    batches: tuple[int, ...]
    repetitions: int

    def measure(self, names: Sequence[str], encoder: str, side: int) -> list[Cost]:
        """One line for each network, mode and batch."""
        cases = [
            Case(name, "resnet50" if name == "tiny" else encoder, mode, batch, side, self.repetitions)
            for name in names
            for mode in ("inference", "training")
            for batch in self.batches
            if (name, mode, batch) != ("gatenet", "training", 1)  # its pooled branch needs two images
        ]
        return [_in_own_process(case) for case in cases]


_FIVE = tuple(name for name in networks.names() if name != "tiny")
_FULL = Effort(networks.names(), _FIVE, 384, 160, (1, 4), 1)
_QUICK = Effort(("tiny",), (), 64, 64, (1,), 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables and, unless quick, write them."""
    parser = argparse.ArgumentParser(description="Measure the networks.")
    parser.add_argument("--quick", action="store_true", help="small inputs, one repetition, no files")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.one:
        print(json.dumps(asdict(_measure(Case(**json.loads(chosen.one))))))
        return
    effort = _QUICK if chosen.quick else _FULL
    tables = {
        f"ResNet-50, {effort.side} x {effort.side}": effort.measure(
            effort.names, "resnet50", effort.side
        ),
        f"EfficientNet-Lite0 and narrow decoders, {effort.small} x {effort.small}": effort.measure(
            effort.lite_names, "efficientnet_lite0", effort.small
        ),
    }
    facts = {
        "machine": machine(_PACKAGES),
        "tables": {title: [asdict(cost) for cost in costs] for title, costs in tables.items()},
    }
    print(page(facts), end="")
    if not chosen.quick:
        write_results("networks", facts, page(facts))


def page(content: Mapping[str, Any]) -> str:
    """What networks.md says, from what networks.json holds."""
    head = (
        "Made by `python -m benchmarks.speed.networks` (processor time on one thread, after a warm-up; "
        "training is forward and backward of the sum of BCE over the maps). Memory per image is the "
        "peak beyond what the process held once the network was made, over the batch; peak memory is "
        "that of the whole process. GateNet cannot train on one image."
    )
    parts = [head]
    for title, costs in content["tables"].items():
        rows = [Cost(**cost | {"case": Case(**cost["case"])}).cells() for cost in costs]
        parts.append(f"{title}\n\n{markdown(_HEAD, rows)}")
    return "\n\n".join(parts) + "\n"


def _in_own_process(case: Case) -> Cost:
    progress(f"{case.network} {case.encoder} {case.mode} {case.batch}")
    command = [sys.executable, "-m", "benchmarks.speed.networks", "--one", json.dumps(asdict(case))]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if run.returncode:
        raise SystemExit(run.stderr)
    found = json.loads(run.stdout)
    return Cost(case, found["seconds"], found["peak_bytes"], found["image_bytes"])


def _measure(case: Case) -> Cost:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    training = case.mode == "training"
    network = networks.create(case.network, encoder=case.encoder).train(training)
    images = torch.rand(case.batch, 3, case.side, case.side)
    mask = (torch.rand(case.batch, 1, case.side, case.side) > 0.9).float()
    before = _peak()
    seconds = []
    for _ in range(case.repetitions + 1):  # the first one warms up
        start = time.process_time()
        with torch.set_grad_enabled(training):
            maps = network(images)
        if training:
            losses = [torch.nn.functional.binary_cross_entropy_with_logits(m, mask) for m in maps]
            torch.autograd.backward(losses)
            network.zero_grad()
        seconds.append((time.process_time() - start) / case.batch)
    after = _peak()
    return Cost(case, min(seconds[1:]), after, (after - before) // case.batch)


def _peak() -> int:
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes * 1024


if __name__ == "__main__":
    main()
