"""The table of `sisod networks`."""

import torch
from rich.table import Table

from sisod import networks
from sisod.networks.network import count_macs

_SIZE = (384, 384)


def networks_table(encoder: str = "resnet50") -> Table:
    """Return one row per network; tiny always has its own encoder."""
    classes = [networks.find(name) for name in networks.names()]
    origins = [network.facts.origin for network in classes if network.published_inputs]
    table = Table(
        title=f"Encoder {encoder}, 384 x 384",
        caption=f"Weights are published at {', '.join(origins)}",
    )
    for head in ("name", "parameters", "GMACs", "maps", "paper", "licence of the published weights"):
        table.add_column(head, justify="right" if head in ("parameters", "GMACs", "maps") else "left")
    for name in networks.names():
        with torch.device("meta"):
            network = networks.create(name, encoder="resnet50" if name == "tiny" else encoder)
        facts = network.facts
        table.add_row(
            name,
            f"{sum(parameter.numel() for parameter in network.parameters()):,}",
            f"{count_macs(network, _SIZE) / 1e9:.3f}",
            str(len(network.targets)),
            f"{facts.title}, {facts.paper}",
            facts.licence,
        )
    return table
