"""The network of a recipe, also one that sisod has not written, which is tried before the training."""

from typing import Any

import torch
from torch import nn

from sisod import networks
from sisod.common.exceptions import InputError, UsageError
from sisod.common.files import convert
from sisod.networks.network import Network, module_errors
from sisod.networks.registry import ModelOptions
from sisod.networks.saved import load_model
from sisod.networks.wrapped import WrappedNetwork, build_network, wrap
from sisod.training.recipe import Recipe


def make_network(recipe: Recipe, module: nn.Module | None = None) -> Network:
    """Return the network of a recipe with its initial weights, in train mode.

    Args:
        recipe: its `[network]` says which one. A factory is imported and run here.
        module: a module of yours that replaces it; wrapped with the defaults unless it is already.
    """
    part = recipe.network
    if module is not None:
        network = module if isinstance(module, Network) else wrap(module)
    elif part.factory:
        network = build_network(part.factory, part.arguments)
    elif part.is_external:
        network = _load_kind(part.name, part.arguments)
    else:
        weights = None if part.encoder_weights == "none" else part.encoder_weights
        network = networks.create(part.name, encoder=part.encoder, encoder_weights=weights)
    # saves a quarter of the time of a step on a CPU; PyTorch's type stubs lack this form of `to`
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    network.input_size = (recipe.data.size, recipe.data.size)  # saved, for `sisod predict`
    if module is not None or part.is_external:
        check_network(network, recipe.data.size)
    if recipe.labels.epochs and not network.auxiliary_targets():
        raise UsageError(
            f"[labels] is for networks that learn body and detail; {network.facts.title} learns masks "
            "only; use another recipe"
        )
    return network.train()


def check_network(network: Network, size: int) -> None:
    """Raise if a network cannot be trained: it fails on a batch of noise, returns NaN, has no gradient.

    It is run in eval mode, so that no statistics change.
    """
    noise = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (2, 3, size, size), generator=noise, dtype=torch.uint8)
    with module_errors(network, images.shape):
        maps = network.eval()(network.input_spec.apply(images))
    total = torch.stack([logits.float().mean() for logits in maps]).sum()
    if not bool(total.isfinite()) or not total.requires_grad:
        problem = "its maps pass on no gradient" if bool(total.isfinite()) else "its maps are not finite"
        raise InputError(
            f"{network.facts.title} cannot be trained: {problem}; check its weights, mean and std, and "
            "leave out detach, no_grad and requires_grad_(False)"
        )


def _load_kind(name: str, arguments: dict[str, Any]) -> Network:
    """Return a model of another library, with what builds it again."""
    options = convert(arguments, ModelOptions, name=f"[network] arguments of {name}")
    if options.trust_remote_code:
        raise UsageError(
            f"[network] arguments of {name} cannot allow remote code; load the model in a factory of "
            "yours"
        )
    network = load_model(name, options)
    if isinstance(network, WrappedNetwork):
        network.architecture = dict(network.module.config.to_dict())  # type: ignore[operator, union-attr]
        network.arguments = arguments
    return network
