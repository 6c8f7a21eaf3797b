"""Models of other people: how they are named, what each kind needs and takes.

`wrapped` and `hf` build them as networks, `networks.onnx_model` runs ONNX files. Importing this package
does not import PyTorch, so that ONNX files do without it.
"""

import re
from dataclasses import dataclass, fields
from pathlib import Path

from rich.table import Table

from sisod.common.arguments import one_line, short_repr, unknown_name_message
from sisod.common.exceptions import UsageError, is_missing, printable, require
from sisod.networks.specs import Activation, Normalization, Size, Triple

_TORCH = ("torch", "safetensors", "huggingface_hub")
_OF_WRAP = ("size", "mean", "std", "output", "activation", "normalize", "channel")
_OF_CHECKPOINTS = ("size", "network", "origin", "factory")


@dataclass(frozen=True)
class ModelOptions:
    """What the command line says about a model; the defaults where the model's own configuration holds.

    Attributes:
        size: as for `networks.wrap`, and so are the next six.
        trust_remote_code: run the code that comes with a repository on the hub.
        network: as for `networks.saved.load_network`, and so are the next two.
    """

    size: int | Size | None = None
    mean: Triple | None = None
    std: Triple | None = None
    output: int | str | None = None
    activation: Activation | None = None
    normalize: Normalization | None = None
    channel: int | None = None
    trust_remote_code: bool = False
    network: str | None = None
    origin: str = "authors"
    factory: str | None = None

    def given(self) -> dict[str, object]:
        """Return the options that are not the defaults, as keyword arguments."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value != getattr(ModelOptions, name)}

    def check_only(self, allowed: tuple[str, ...], model: str) -> None:
        """Raise if an option is given that has no effect on a model."""
        extra = [f"--{name.replace('_', '-')}" for name in self.given() if name not in allowed]
        if extra:
            raise UsageError(f"{', '.join(extra)} cannot be given for {model!r}; leave it out")


@dataclass(frozen=True)
class Kind:
    """A row of the table of `sisod networks`.

    Attributes:
        form: how such a model is named.
        modules: that must be installed; the first is particular to this kind.
        options: of `ModelOptions` that have an effect.
        example: one command.
    """

    form: str
    modules: tuple[str, ...]
    options: tuple[str, ...]
    example: str


KINDS = {
    "onnx": Kind(
        "onnx:FILE",
        ("onnxruntime",),
        _OF_WRAP,
        "sisod predict onnx:u2net.onnx images maps --activation none --normalize minmax",
    ),
    "hf": Kind(
        "hf:FOLDER_OR_REPOSITORY",
        ("transformers", *_TORCH),
        (*_OF_WRAP, "trust_remote_code"),
        "sisod predict hf:segformer-folder images maps --channel 1",
    ),
    "py": Kind(
        "py:MODULE:FUNCTION", _TORCH, _OF_WRAP, "sisod predict py:mine:build images maps --size 1024"
    ),
    "timm": Kind(
        "timm:ENCODER",
        ("timm", *_TORCH),
        (),
        "sisod train fpn --set network.encoder=timm:convnext_tiny",
    ),
}


def kinds_table() -> Table:
    """Return the table of what can be brought, one row per kind."""
    table = Table(title="Models that you can bring", caption="The examples are commands to adapt.")
    for head in ("model", "package", "installed", "example"):
        table.add_column(head, overflow="fold")
    for kind in KINDS.values():
        installed = "no" if any(map(is_missing, kind.modules)) else "yes"
        table.add_row(kind.form, kind.modules[0], installed, kind.example)
    return table


def check_model(model: str, options: ModelOptions = ModelOptions()) -> tuple[str | None, str]:  # noqa: B008
    """Return the kind and the rest of a model's name; no kind for a checkpoint of sisod.

    Raises if the kind is unknown, does not take an option that is given, or needs what is not installed.

    Example:
        >>> check_model("py:models.unet:build"), check_model("runs/edn")
        (('py', 'models.unet:build'), (None, 'runs/edn'))
    """
    name, colon, rest = model.partition(":")
    if colon and name in KINDS:
        require(f"a model {name}:", *KINDS[name].modules)
        options.check_only(KINDS[name].options, model)
        return name, rest
    # a drive of Windows has one letter
    if re.fullmatch(r"[A-Za-z]\w+", name) and colon and not Path(model).exists():
        raise UsageError(unknown_name_message("kind of model", one_line(name), KINDS))
    if model.endswith(".onnx"):
        raise UsageError(f"{short_repr(model)} is an ONNX file; write onnx:{printable(model)}")
    options.check_only(_OF_CHECKPOINTS, model)
    return None, model
