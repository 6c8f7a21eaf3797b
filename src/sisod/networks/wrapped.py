"""Other people's PyTorch modules behind the contract of our networks: `wrap`."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sisod.common.arguments import short_repr
from sisod.common.exceptions import InputError, UsageError, shorten_list
from sisod.common.imports import describe_error, explain_errors, import_attribute
from sisod.networks.architectures import resize
from sisod.networks.network import Network
from sisod.networks.registry import Facts, ModelOptions
from sisod.networks.specs import (
    EPSILON,
    IMAGENET,
    Activation,
    InputSpec,
    Normalization,
    OutputSpec,
    Size,
    Triple,
    check_size,
)

Output = int | str | Callable[[Any], Any]
Factory = str | Callable[..., Any]  # that builds a module
WRAPPED = "wrapped"  # in the config, where our own networks have their name


def wrap(
    module: nn.Module,
    *,
    size: int | Size | None = None,
    mean: Triple = IMAGENET.mean,
    std: Triple = IMAGENET.std,
    output: Output = -1,
    activation: Activation = "sigmoid",
    normalize: Normalization = "none",
    channel: int | None = None,
) -> "WrappedNetwork":
    """Return a module of yours as a network that predicts, trains and exports like our own.

    Args:
        module: maps a batch of RGB images (B, 3, H, W) to one map or several, (B, 1, h, w) or
            (B, h, w); smaller maps are enlarged to the input by bilinear interpolation.
        size: side, or height and width, that images are resized to; None if any will do.
        mean: of each channel, of values in [0, 1]; by default ImageNet's.
        std: the same for the standard deviation.
        output: which map is the prediction: its position in a list or tuple, by default the last, whose
            other maps are supervised too; its key in a dictionary or name in a dataclass, which is then
            the only map; or a function from what the module returns to the maps, the prediction first.
        activation: what turns the values into probabilities: `"sigmoid"`; `"softmax"` over the
            channels, which are classes; `"none"` if they are probabilities already.
        normalize: `"minmax"` stretches each predicted map to [0, 1], as U2-Net does; not in training.
        channel: the channel of the object, of maps with several; by default 1 of two classes.

    Example:
        The last of several maps is the prediction, as in BiRefNet:

        >>> class Twice(nn.Module):
        ...     def forward(self, x):
        ...         return [x[:, :1, ::2, ::2], x[:, 1:2]]
        >>> network = wrap(Twice(), size=352)
        >>> [tuple(logits.shape) for logits in network(torch.zeros(1, 3, 8, 6))]
        [(1, 1, 8, 6), (1, 1, 8, 6)]
    """
    return WrappedNetwork(
        module,
        size=size,
        input_spec=InputSpec(mean=mean, std=std),
        output=output,
        output_spec=OutputSpec(activation, normalize, channel),
    )


class WrappedNetwork(Network):
    """A module of somebody else as a network; made by `wrap`.

    Attributes:
        module: what was wrapped; its parameters are named `module.*`.
        output: which of the maps that it returns is the prediction; see `wrap`.
        output_spec: how the values of a map become probabilities.
        source: the string that `load_model` builds the module from, such as `"py:mine:build"`; None if
            it was wrapped in Python.
        arguments: of the function that built the module.
        architecture: what Transformers builds the module from again.
    """

    facts: ClassVar[Facts] = Facts(WRAPPED, "a wrapped module", "yours", "yours", "yours")

    def __init__(
        self,
        module: nn.Module,
        *,
        input_spec: InputSpec = IMAGENET,
        size: int | Size | None = None,
        output: Output = -1,
        output_spec: OutputSpec = OutputSpec(),  # noqa: B008  (it is frozen)
    ) -> None:
        if not isinstance(module, nn.Module) or isinstance(module, Network):
            raise UsageError(f"only a PyTorch module of yours can be wrapped, got {short_repr(module)}")
        title = type(module).__name__
        super().__init__(title, input_spec)
        self.facts = Facts(title, title, "yours", "yours", "yours")  # type: ignore[misc]
        self.input_size = check_size(size)
        self.module = module
        self.output = output
        self.output_spec = output_spec
        self.source: str | None = None
        self.arguments: dict[str, Any] = {}
        self.architecture: dict[str, Any] | None = None

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the logit maps at the size of the input, the prediction first."""
        result = self.module(x)
        try:
            maps = _choose_maps(result, self.output)
        except (AttributeError, LookupError, TypeError) as error:
            raise InputError(
                f"{self.facts.title} returns {_describe(result)}, in which output="
                f"{short_repr(self.output)} finds no map ({describe_error(error)}); say with output "
                "which map is the prediction"
            ) from error
        return tuple(resize(self._logits(map_, len(x)), x) for map_ in maps)

    def saliency(self, logits: Tensor) -> Tensor:
        """Return the probabilities of the prediction's logits; a constant map is not stretched."""
        probs = super().saliency(logits)
        if self.output_spec.normalize == "none":
            return probs
        least, most = probs.amin((-2, -1), keepdim=True), probs.amax((-2, -1), keepdim=True)
        stretched = (probs - least) / (most - least).clamp(min=EPSILON)
        return torch.where(most - least < EPSILON, probs, stretched)

    def config(self) -> dict[str, Any]:
        """Return what decides the maps beside the module's own weights and code."""
        output = self.output
        if callable(output):
            output = str(getattr(output, "__qualname__", type(output).__name__))
        return super().config() | {
            "network": WRAPPED,
            "source": self.source,
            "arguments": self.arguments,
            "architecture": self.architecture,
            "output": output,
            "output_spec": asdict(self.output_spec),
        }

    def _logits(self, values: Any, batch: int) -> Tensor:
        """Return the logits (B, 1, h, w) of a map's values, (B, C, h, w) or (B, h, w)."""
        if isinstance(values, Tensor) and values.ndim == 3:
            values = values[:, None]
        is_map = isinstance(values, Tensor) and values.ndim == 4 and values.is_floating_point()
        if not is_map or len(values) != batch:
            raise InputError(
                f"{self.facts.title} returns {_describe(values)} among its maps; expected floating maps "
                f"of shape ({batch}, 1, height, width); choose them with output, a function"
            )
        spec = self.output_spec
        channel = spec.find_channel(values.shape[1], self.facts.title)
        chosen: Tensor = values[:, channel : channel + 1]
        if spec.activation == "sigmoid":
            return chosen
        if spec.activation == "softmax":
            others = torch.cat([values[:, :channel], values[:, channel + 1 :]], dim=1)
            return chosen - others.logsumexp(dim=1, keepdim=True)
        if not self.training and not torch.compiler.is_compiling():
            least, most = chosen.detach().aminmax()
            spec.check_values(float(least), float(most), self.facts.title)
        return chosen.clamp(EPSILON, 1 - EPSILON).logit()


def build_network(
    factory: Factory,
    arguments: Mapping[str, Any] | None = None,
    options: ModelOptions = ModelOptions(),  # noqa: B008  (it is frozen)
) -> Network:
    """Return the network that a function builds; naming it as a string imports and runs its module.

    Args:
        factory: `"module:function"`, or the function. It returns a PyTorch module, which is wrapped, or
            a network of `wrap` itself.
        arguments: keyword arguments of the function.
        options: of `wrap`, for a function that returns a module.
    """
    given = dict(arguments or {})
    name = factory if isinstance(factory, str) else getattr(factory, "__qualname__", short_repr(factory))
    function = import_attribute(factory, "factory") if isinstance(factory, str) else factory
    advice = f"check it and its arguments, {short_repr(given)}"
    with explain_errors(f"the factory {name!r} failed", advice):
        module = function(**given)
    if isinstance(module, Network):
        options.check_only(("size",), str(name))
    network = module if isinstance(module, Network) else wrap(module, **options.given())
    if isinstance(network, WrappedNetwork):
        network.source = f"py:{factory}" if isinstance(factory, str) else None
        network.arguments = given
    return network


def _choose_maps(result: Any, output: Output) -> list[Any]:
    """Return the maps among what a module returned, the prediction first."""
    if callable(output):
        maps = output(result)
    elif isinstance(output, str):
        maps = [result[output] if isinstance(result, Mapping) else getattr(result, output)]
    else:
        found = [result] if isinstance(result, Tensor) else result
        maps = [found[output], *(found[i] for i in range(len(found)) if i != output % len(found))]
    return [maps] if isinstance(maps, Tensor) else list(maps)


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)} and type {value.dtype}"
    names = shorten_list([str(key) for key in value], most=8) if isinstance(value, Mapping) else ""
    return f"a {type(value).__name__}" + (f" of {names}" if names else "")
