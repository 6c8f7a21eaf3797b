"""The kinds of models that can be brought, by the word before the colon, and what each needs.

Importing this module does not import PyTorch, so that ONNX files do without it.
"""

import re
from dataclasses import dataclass, fields
from pathlib import Path

from rich.table import Table

from sisod.common.arguments import brief, shown, unknown_name_message
from sisod.common.errors import UsageError, is_missing, printable, require
from sisod.networks.values import Activation, Normalization, Triple

_TORCH = ("torch", "safetensors", "huggingface_hub")


@dataclass(frozen=True)
class Kind:
    """A row of the table of `sisod networks`.

    Attributes:
        name: the word before the colon.
        form: how such a model is named.
        modules: that must be installed; the first belongs to the extra that installs all.
        package: the one of them that is particular to this kind, as pip calls it.
        example: one command.
    """

    name: str
    form: str
    modules: tuple[str, ...]
    package: str
    example: str

    @property
    def is_installed(self) -> bool:
        """Whether all of its packages are installed."""
        return not any(map(is_missing, self.modules))

    def check_installed(self) -> None:
        """Refuse a kind whose packages are missing, with the command that installs them."""
        require(f"a model {self.name}:", *self.modules)


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "onnx",
            "onnx:FILE",
            ("onnxruntime",),
            "onnxruntime",
            "sisod predict onnx:u2net.onnx images maps --activation none --normalize minmax",
        ),
        Kind(
            "hf",
            "hf:FOLDER_OR_REPOSITORY",
            ("transformers", *_TORCH),
            "transformers",
            "sisod predict hf:segformer-folder images maps --channel 1",
        ),
        Kind(
            "smp",
            "smp:FOLDER",
            ("segmentation_models_pytorch", *_TORCH),
            "segmentation-models-pytorch",
            "sisod predict smp:unet-folder images maps --size 320",
        ),
        Kind(
            "py",
            "py:MODULE:FUNCTION",
            _TORCH,
            "torch",
            "sisod predict py:mine:build images maps --size 1024",
        ),
        Kind(
            "timm",
            "timm:ENCODER",
            ("timm", *_TORCH),
            "timm",
            "sisod train fpn --set network.encoder=timm:convnext_tiny",
        ),
    )
}


def kinds_table() -> Table:
    """Return the table of what can be brought, one row per kind."""
    table = Table(title="Models that you can bring", caption="The examples are commands to adapt.")
    for head in ("model", "package", "installed", "example"):
        table.add_column(head, overflow="fold")
    for kind in KINDS.values():
        table.add_row(kind.form, kind.package, "yes" if kind.is_installed else "no", kind.example)
    return table


@dataclass(frozen=True)
class ModelOptions:
    """What the command line says about a model; None where the model's own configuration holds.

    The fields are the arguments of `networks.wrap`; the remote code of a repository runs only with
    `trust_remote_code`.
    """

    size: int | tuple[int, int] | None = None
    mean: Triple | None = None
    std: Triple | None = None
    output: int | str | None = None
    activation: Activation | None = None
    normalize: Normalization | None = None
    channel: int | None = None
    trust_remote_code: bool = False

    def given(self) -> dict[str, object]:
        """Return the options that are given, as keyword arguments; without `trust_remote_code`."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["trust_remote_code"]
        return {name: value for name, value in values.items() if value is not None}

    def refuse_all_but(self, *allowed: str, because: str) -> None:
        """Refuse options that would have no effect."""
        extra = [name for name in self.given() if name not in allowed]
        if self.trust_remote_code and "trust_remote_code" not in allowed:
            extra.append("trust-remote-code")
        if extra:
            listed = ", ".join(f"--{name}" for name in extra)
            raise UsageError(f"{listed} cannot be given: {because}; leave {listed} out")


def split_kind(model: str) -> tuple[str | None, str]:
    """Return the kind and the rest of a model's name; no kind for a checkpoint of sisod.

    Example:
        >>> split_kind("onnx:models/u2net.onnx"), split_kind("runs/edn")
        (('onnx', 'models/u2net.onnx'), (None, 'runs/edn'))
    """
    name, colon, rest = model.partition(":")
    if colon and name in KINDS:
        if not rest:
            raise UsageError(f"{model!r} names no model; expected {KINDS[name].form}")
        return name, rest
    # a drive of Windows has one letter
    if re.fullmatch(r"[A-Za-z]\w+", name) and colon and not Path(model).exists():
        raise UsageError(unknown_name_message("kind of model", brief(name), KINDS))
    if model.endswith(".onnx"):
        raise UsageError(f"{shown(model)} is an ONNX file; write onnx:{printable(model)}")
    return None, model


def refuse_checkpoint_options(model: str, *, network: str | None, factory: str | None) -> None:
    """Refuse the options of a checkpoint of sisod for a model of another kind."""
    if factory is not None:
        raise UsageError(f"--factory is for a checkpoint of sisod, got {model!r}; leave it out")
    if network is not None:
        raise UsageError(
            f"--network is for the file of an authors' checkpoint, got {model!r}; leave it out"
        )
