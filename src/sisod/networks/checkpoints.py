"""Weights in files: safetensors and state dicts, never pickled objects."""

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn

from sisod.common.exceptions import InputError, shorten_list
from sisod.common.imports import describe_error, explain_errors
from sisod.common.output import system_error, write_file
from sisod.common.run_folder import partial_folder, read_run
from sisod.networks.specs import CONFIG_KEY

Rules = Sequence[tuple[str, str]]
WEIGHTS_FILE = "model.safetensors"
_WRAPPERS = ("state_dict", "model")
_COUNTER = ".num_batches_tracked"  # no output depends on it


def find_weights(path_or_id: str | Path, **hub_options: Any) -> Path:
    """Return the safetensors file of a folder or of a repository on the hub, or the file itself.

    Args:
        path_or_id: a file, a folder of `save_pretrained` or `sisod train`, or `owner/name`.
        hub_options: as for `hf_hub_download`.

    Raises:
        InputError: there is no such file, the training is not finished, or the hub is out of reach.
    """
    path = Path(path_or_id)
    if path.is_file():
        return path
    if (path / WEIGHTS_FILE).is_file():
        return path / WEIGHTS_FILE
    # a run that is to replace another one is beside it
    if read_run(path if path.exists() else partial_folder(path)).get("kind") == "training":
        raise InputError(unfinished_message(path))
    if path.is_dir() or path.suffix or len(path.parts) != 2 or path.is_absolute():
        raise InputError(
            f"{str(path)!r} {'has no ' + WEIGHTS_FILE if path.is_dir() else 'does not exist'}; expected "
            "a folder of save_pretrained, a safetensors file or the id of a repository on the Hugging "
            "Face hub (owner/name)"
        )
    advice = f"download its {WEIGHTS_FILE} and pass that file"
    return fetch(str(path_or_id), WEIGHTS_FILE, advice=advice, **hub_options)


def unfinished_message(run: Path) -> str:
    """Say that a run has no network yet, and how to get it."""
    return (
        f"{str(run)!r} has no network yet, because its training is not finished; repeat the command of "
        f"the training with --resume (sisod train ... --out {run} --resume)"
    )


def fetch(repo_id: str, file: str, *, advice: str, **hub_options: Any) -> Path:
    """Return the path of a file of a hub repository, downloaded unless it is in the cache."""
    from huggingface_hub import hf_hub_download

    what = f"{file} of {repo_id!r} could not be fetched from the Hugging Face hub"
    with explain_errors(what, f"on a machine with internet access, {advice}"):
        return Path(hf_hub_download(repo_id, file, **hub_options))


def read_state(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file or of a state dict saved by PyTorch.

    Args:
        path: of the file; a training script may have wrapped the dict as `state_dict` or `model`.

    Raises:
        InputError: it cannot be read without running code, or holds something else.
    """
    if path.suffix == ".safetensors":
        return read_safetensors(path)[0]
    loaded = load_tensors(path)
    if isinstance(loaded, dict):  # as training scripts wrap it
        loaded = next((loaded[key] for key in _WRAPPERS if isinstance(loaded.get(key), dict)), loaded)
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise InputError(f"{str(path)!r} holds no state dict; expected names and tensors")
    return {str(key): value for key, value in loaded.items()}


def load_tensors(path: Path) -> Any:
    """Return the content of a file saved by PyTorch, without running code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols; the error below is clearer
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # PyTorch raises several kinds for what is not a state dict
        # PyTorch's own message advises to load such files with code execution
        unsafe = isinstance(error, UnpicklingError) and "weights_only" in str(error)
        why = "it holds other objects than tensors" if unsafe else describe_error(error)
        raise InputError(f"{str(path)!r} cannot be read as a file of tensors ({why})") from error


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a safetensors file, and its metadata."""
    from safetensors import safe_open

    with explain_errors(f"{str(path)!r} is not a safetensors file"), safe_open(path, "pt") as file:
        return {key: file.get_tensor(key) for key in file.keys()}, file.metadata() or {}  # noqa: SIM118


def write_state(path: Path, state: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    """Write tensors and config as one safetensors file, atomically.

    Args:
        path: of the file.
        state: names and tensors, on any device.
        config: of the network, which `read_config` returns; plain data.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    # copies: safetensors refuses tensors that share memory, such as tied weights
    tensors = {
        key: value.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for key, value in state.items()
    }
    metadata = {CONFIG_KEY: json.dumps(config, sort_keys=True), "format": "pt"}
    with write_file(path) as unfinished:
        try:
            save_file(tensors, unfinished, metadata)
        except SafetensorError as error:
            raise system_error(error, unfinished.parent) from error


def rename(state: Mapping[str, Tensor], rules: Rules) -> tuple[dict[str, Tensor], list[str]]:
    r"""Return the published tensors under our names, and the keys that match no rule.

    Strips the `module.` of data-parallel training, drops the classifier, casts to float32.

    Args:
        state: names and tensors as published.
        rules: regular expressions of the beginning of a name and their replacements; the first counts.

    Example:
        >>> state = {"module.base.w": torch.ones(1), "fc.bias": torch.ones(1), "x": torch.ones(1)}
        >>> renamed, unknown = rename(state, [(r"base\.", "encoder.")])
        >>> list(renamed), unknown
        (['encoder.w'], ['x'])
    """
    renamed: dict[str, Tensor] = {}
    unknown = []
    for published, value in state.items():
        key = published.removeprefix("module.")
        if re.search(r"(^|\.)fc\.(weight|bias)$", key):
            continue
        for pattern, replacement in rules:
            new_key, n_replaced = re.subn(f"^{pattern}", replacement, key)
            if n_replaced:
                renamed[new_key] = value.float() if value.is_floating_point() else value
                break
        else:
            unknown.append(published)
    return renamed, unknown


def conv_norm_rules(published: str, ours: str) -> Rules:
    """Return the rules for a convolution and the norm behind it, 0 and 1 in a sequence of ours.

    Example:
        >>> conv_norm_rules("decoder.{}.", "levels.0.")
        [('decoder.conv.', 'levels.0.0.'), ('decoder.bn.', 'levels.0.1.')]
    """
    return [(published.replace("{}", kind), f"{ours}{i}.") for i, kind in enumerate(("conv", "bn"))]


def load_strictly(
    module: nn.Module, state: Mapping[str, Tensor], *, source: str, unknown: Sequence[str] = ()
) -> None:
    """Load a state dict whose names, shapes and types must all match, and whose values are finite.

    Only the counter `num_batches_tracked` may be missing (older files lack it; it starts at 0) or
    superfluous (frozen norms have none).

    Args:
        module: to load into.
        state: names and tensors.
        source: of the state dict, for messages.
        unknown: further names of the source, which no tensor of the module has.

    Raises:
        InputError: names what does not fit.

    Example:
        >>> load_strictly(nn.Linear(1, 1), {"weight": torch.ones(1, 1)}, source="a.pth")
        Traceback (most recent call last):
        sisod.common.exceptions.InputError: a.pth: the weights do not fit this Linear: 1 missing (bias)
    """
    own = module.state_dict()
    given = {key: value for key, value in state.items() if key in own or not key.endswith(_COUNTER)}
    needed = [key for key in own if key in given or not key.endswith(_COUNTER)]
    problems = {
        "missing": [key for key in needed if key not in given],
        "not known": [*unknown, *(key for key in given if key not in own)],
        "of another shape or type, or not finite": [
            f"{key} {tuple(given[key].shape)} {given[key].dtype}"
            for key in needed
            if key in given and not _fits(given[key], own[key])
        ],
    }
    found = [f"{len(keys)} {what} ({shorten_list(keys)})" for what, keys in problems.items() if keys]
    if found:
        raise InputError(
            f"{source}: the weights do not fit this {type(module).__name__}: {'; '.join(found)}"
        )
    module.load_state_dict({**own, **given})


def _fits(values: Tensor, own: Tensor) -> bool:
    if values.shape != own.shape or values.is_floating_point() != own.is_floating_point():
        return False
    # larger float64 values overflow to infinity in the network
    largest = torch.finfo(torch.float32).max
    return not values.is_floating_point() or bool((values.abs() <= largest).all())
