"""Other people's PyTorch modules behind the contract of our networks: `wrap`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from sisod.common.arguments import shown
from sisod.common.errors import InputError, UsageError, shorten_list
from sisod.common.imports import describe_error
from sisod.networks.architectures.blocks import resize
from sisod.networks.input_spec import IMAGENET, InputSpec
from sisod.networks.network import Network
from sisod.networks.registry import Facts
from sisod.networks.values import (
    EPSILON,
    Activation,
    Normalization,
    Triple,
    check_probabilities,
    check_reading,
    check_size,
    object_channel,
)

Output = int | str | Callable[[Any], Any]
WRAPPED = "wrapped"  # in the config, where our own networks have their name


def wrap(
    module: nn.Module,
    *,
    size: int | tuple[int, int] | None = None,
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
    if not isinstance(module, nn.Module):
        raise UsageError(f"wrap takes a PyTorch module, got {shown(module)}")
    if isinstance(module, Network):
        raise UsageError(f"{module.facts.name} is a network of sisod already; use it without wrap")
    return WrappedNetwork(
        module,
        size=size,
        input_spec=InputSpec(mean=mean, std=std),
        output=output,
        activation=activation,
        normalize=normalize,
        channel=channel,
    )


class WrappedNetwork(Network):
    """A module of somebody else as a network; made by `wrap`.

    Attributes:
        module: what was wrapped; its parameters are named `module.*`.
        source: the text that `load_model` builds the module from, such as `"py:mine:build"`; None if it
            was wrapped in Python.
        arguments: of the function that built the module.
        architecture: what the module's own library builds it from again, for `hf:` and `smp:`.
    """

    facts: ClassVar[Facts] = Facts(WRAPPED, "a wrapped module", "yours", "yours", "yours")

    def __init__(
        self,
        module: nn.Module,
        *,
        size: int | tuple[int, int] | None = None,
        input_spec: InputSpec | None = None,
        output: Output = -1,
        activation: Activation = "sigmoid",
        normalize: Normalization = "none",
        channel: int | None = None,
    ) -> None:
        title = type(module).__name__
        super().__init__(title, input_spec)
        self.channel = check_reading(activation, normalize, channel)
        if isinstance(output, bool) or not (isinstance(output, int | str) or callable(output)):
            raise UsageError(f"output must be a position, a name or a function, got {shown(output)}")
        self.facts = Facts(title, title, "yours", "yours", "yours")  # type: ignore[misc]
        self.input_size = check_size(size)
        self.module = module
        self.output = output
        self.activation = activation
        self.normalize = normalize
        self.source: str | None = None
        self.arguments: dict[str, Any] = {}
        self.architecture: dict[str, Any] | None = None

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the logit maps at the size of the input, the prediction first."""
        maps = self._select(self.module(x))
        return tuple(resize(self._to_logits(self._check_map(map_, x)), x) for map_ in maps)

    def saliency(self, logits: Tensor) -> Tensor:
        """Return the probabilities of the prediction's logits; a constant map is not stretched."""
        probs = super().saliency(logits)
        if self.normalize == "none":
            return probs
        least, most = probs.amin((-2, -1), keepdim=True), probs.amax((-2, -1), keepdim=True)
        stretched = (probs - least) / (most - least).clamp(min=EPSILON)
        return torch.where(most - least < EPSILON, probs, stretched)

    def config(self) -> dict[str, Any]:
        """Return what decides the maps beside the module's own weights and code."""
        output = self.output if isinstance(self.output, int | str) else _function_name(self.output)
        return super().config() | {
            "network": WRAPPED,
            "source": self.source,
            "arguments": self.arguments,
            "architecture": self.architecture,
            "size": self.input_size,
            "output": output,
            "activation": self.activation,
            "normalize": self.normalize,
            "channel": self.channel,
        }

    def how_to_load(self) -> str:
        """Return what loads a saved network, with the factory if one has to be named."""
        kind, _, name = (self.source or "").partition(":")
        if self.architecture is not None:  # its own library builds it again
            return super().how_to_load()
        if kind == "py":
            factory = f'`factory="{name}"` (in commands `--factory {name}`), the function that builds it'
        else:
            factory = "`factory`, a function of yours that builds the module"
        return f"{super().how_to_load()} and {factory}"

    def on_meta(self) -> Self | None:
        """Return None: how the module was built is not known."""
        return None

    def load_encoder(self, weights: str | Path) -> None:
        """Refuse: which part is the encoder is not known."""
        raise InputError(
            f"{self.facts.title} is wrapped, and its encoder is not known to sisod, got "
            f"encoder_weights={str(weights)!r}; load them where the module is built"
        )

    def _select(self, result: Any) -> list[Any]:
        """Return the maps among what the module returned, the prediction first."""
        if isinstance(self.output, str):
            return [_named(result, self.output, self.facts.title)]
        maps = self.output(result) if callable(self.output) else result
        if isinstance(maps, Tensor):
            maps = [maps]
        if not isinstance(maps, Sequence) or isinstance(maps, str) or not maps:
            raise InputError(
                f"{self.facts.title} returns {_kind(maps)}; expected a tensor, or a list or tuple of "
                f"them; say with output which map is the prediction{_known_names(maps)}"
            )
        if callable(self.output):
            return list(maps)
        if not -len(maps) <= self.output < len(maps):
            raise InputError(
                f"output is {self.output}, but {self.facts.title} returns {len(maps)} maps; expected "
                f"{-len(maps)} to {len(maps) - 1}"
            )
        first = self.output % len(maps)
        return [maps[first], *maps[:first], *maps[first + 1 :]]

    def _check_map(self, map_: Any, x: Tensor) -> Tensor:
        """Return a map as (B, C, h, w); refuse what is none."""
        if isinstance(map_, Tensor) and map_.ndim == 3:
            map_ = map_[:, None]
        if (
            not isinstance(map_, Tensor)
            or map_.ndim != 4
            or len(map_) != len(x)
            or not map_.is_floating_point()
        ):
            raise InputError(
                f"{self.facts.title} returns {_kind(map_)} among its maps; expected floating maps of "
                f"shape ({len(x)}, 1, height, width); choose them with output, a function"
            )
        return map_

    def _to_logits(self, values: Tensor) -> Tensor:
        """Return the logits (B, 1, h, w) of a map's values."""
        channel = object_channel(values.shape[1], self.channel, self.activation, self.facts.title)
        chosen = values[:, channel : channel + 1]
        if self.activation == "sigmoid":
            return chosen
        if self.activation == "softmax":
            others = torch.cat([values[:, :channel], values[:, channel + 1 :]], dim=1)
            return chosen - others.logsumexp(dim=1, keepdim=True)
        if not self.training and not torch.compiler.is_compiling():
            least, most = chosen.detach().aminmax()
            check_probabilities(float(least), float(most), self.facts.title)
        return chosen.clamp(EPSILON, 1 - EPSILON).logit()


@contextmanager
def module_errors(network: Network, shape: Sequence[int]) -> Iterator[None]:
    """Turn what a wrapped module raises into one sentence; a lack of memory is reported elsewhere."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if not isinstance(network, WrappedNetwork) or "memory" in str(error):
            raise
        size, own = "", network.input_size
        if own is not None and own != tuple(shape[-2:]):
            size = f"; it is wrapped for images of {own[0]} x {own[1]}"
        raise InputError(
            f"{network.facts.title} failed on a batch of shape {tuple(shape)}: "
            f"{describe_error(error)}{size}"
        ) from error


def _named(result: Any, name: str, title: str) -> Any:
    """Return an entry of a dictionary or a field of a dataclass."""
    value = None
    if isinstance(result, Mapping):
        value = result.get(name)
    elif not isinstance(result, Tensor):  # which has attributes of its own
        value = getattr(result, name, None)
    if value is None:
        raise InputError(f"{title} returns {_kind(result)} without {name!r}{_known_names(result)}")
    return value


def _known_names(result: Any) -> str:
    fields = result if isinstance(result, Mapping) else getattr(result, "__dataclass_fields__", {})
    known = [str(key) for key in fields]
    return f"; available: {shorten_list(known, most=8)}" if known else ""


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)} and type {value.dtype}"
    return f"a {type(value).__name__}"


def _function_name(function: Callable[[Any], Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))
