"""The table of `sisod networks`; without PyTorch, which counts parameters, it has no numbers."""

from rich.table import Table

from sisod import networks
from sisod.networks.registry import FACTS, missing_module

_SIZE = (384, 384)
_NUMBERS = ("parameters", "GMACs", "maps")


def networks_table(encoder: str = "resnet50") -> Table:
    """Return one row per network; tiny always has its own encoder. Numbers need PyTorch."""
    has_numbers = missing_module() is None
    origins = [facts.origin for facts in FACTS.values() if facts.origin != "sisod"]
    table = Table(
        title=f"Encoder {encoder}, 384 x 384" if has_numbers else "Networks",
        caption=f"Weights are published at {', '.join(origins)}",
    )
    for head in ("name", *_NUMBERS[: 3 * has_numbers], "paper", "licence of the published weights"):
        table.add_column(head, justify="right" if head in _NUMBERS else "left")
    for name, facts in FACTS.items():
        numbers = _numbers(name, encoder) if has_numbers else ()
        table.add_row(name, *numbers, f"{facts.title}, {facts.paper}", facts.licence)
    return table


def _numbers(name: str, encoder: str) -> tuple[str, str, str]:
    """Return the number of parameters, of multiply-adds and of maps."""
    import torch

    from sisod.networks.network import count_macs

    with torch.device("meta"):
        network = networks.create(name, encoder="resnet50" if name == "tiny" else encoder)
    return (
        f"{sum(parameter.numel() for parameter in network.parameters()):,}",
        f"{count_macs(network, _SIZE) / 1e9:.3f}",
        str(len(network.targets)),
    )
