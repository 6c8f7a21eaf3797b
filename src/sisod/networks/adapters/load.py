"""Any model that the command line names -> a network: a checkpoint, `hf:` or `py:`."""

from sisod.common.exceptions import UsageError
from sisod.networks.adapters.factory import build_network
from sisod.networks.adapters.hf import load_hf
from sisod.networks.adapters.kinds import KINDS, ModelOptions, check_model
from sisod.networks.adapters.wrapped import WrappedNetwork
from sisod.networks.network import Network
from sisod.networks.saved import load_network


def load_model(
    model: str,
    options: ModelOptions = ModelOptions(),  # noqa: B008  (it is frozen)
) -> Network:
    """Return the network that the command line names, in eval mode; see `docs/models.md`.

    Args:
        model: `hf:` or `py:` with a name, or a checkpoint as `load_network` takes it.
        options: what the model's own configuration does not say, or says wrongly.
    """
    kind, name = check_model(model, options)
    if kind == "hf":
        network: Network = load_hf(name, options)
    elif kind == "py":
        network = build_network(name, options=options)
    elif kind is None:
        return load_network(
            model, network=options.network, origin=options.origin, factory=options.factory
        )
    else:
        raise UsageError(
            f"{model!r} gives no maps in PyTorch: an encoder of timm is trained first, as in "
            f"{KINDS['timm'].example!r}, and ONNX files are for networks.onnx_model.OnnxModel"
        )
    if isinstance(network, WrappedNetwork):
        network.source = model
    return network.eval()
