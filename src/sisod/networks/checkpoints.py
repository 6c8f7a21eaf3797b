"""Reading and writing of weights: safetensors and state dicts, never pickled objects."""

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn

from sisod.common.arguments import brief, check_text
from sisod.common.errors import InputError, shorten_list
from sisod.common.output import system_error, write_file
from sisod.networks.calibration import Calibration
from sisod.networks.input_spec import InputSpec

Rules = Sequence[tuple[str, str]]
METADATA_KEY = "sisod"  # in the header of our safetensors files: the network's config as JSON
_WRAPPERS = ("state_dict", "model")


def read_state(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file or of a state dict saved by PyTorch."""
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{str(path)!r} {problem}; expected a safetensors file or a state dict")
    if path.suffix == ".safetensors":
        return _read_safetensors(path)[0]
    try:
        loaded = load_tensors(path)
    except InputError as error:
        raise InputError(
            f"{str(path)!r} cannot be read as a state dict ({error}); expected tensors "
            "only, saved by torch.save(model.state_dict(), path)"
        ) from error
    return _unwrap(loaded, path)


def load_tensors(path: Path) -> Any:
    """Return the content of a file saved by PyTorch, without running code; say why it cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols; the error below is clearer
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # PyTorch raises several kinds for what is not a state dict
        # PyTorch's own message advises to load such files with code execution
        unsafe = isinstance(error, UnpicklingError) and "weights_only" in str(error)
        why = "it holds other objects than tensors" if unsafe else _first_line(error)
        if path.is_file() and path.stat().st_size == 0:
            why = "it is empty"
        raise InputError(why) from error


def read_config(path: Path) -> dict[str, Any]:
    """Return the network's config from the header of a safetensors file written by sisod."""
    header = _read_safetensors(path)[1]
    if METADATA_KEY not in header:
        raise InputError(
            f"{str(path)!r} does not say which network it is of; expected a file that save_pretrained "
            "or sisod convert has written"
        )
    return parse_config(header[METADATA_KEY], source=str(path))


def parse_config(text: str, *, source: str) -> dict[str, Any]:
    """Return a network's config from its JSON text, the inverse of `Network.config`."""
    try:
        config: dict[str, Any] = json.loads(text)
        InputSpec(**config["input_spec"])
        check_text("network", config["network"])
        check_text("encoder", config["encoder"])
        config_calibration(config)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{source}: the config is not one of sisod ({_first_line(error)}); expected JSON with "
            "network, encoder and input_spec, as save_pretrained writes it"
        ) from error
    return config


def config_calibration(config: Mapping[str, Any]) -> Calibration | None:
    """Return the calibration that a network's config names; None if it names none."""
    return Calibration(**config["calibration"]) if "calibration" in config else None


def read_calibration(path: Path) -> Calibration | None:
    """Return the calibration in the header of a safetensors file; None also if there is no config."""
    header = _read_safetensors(path)[1]
    if METADATA_KEY not in header:
        return None
    return config_calibration(parse_config(header[METADATA_KEY], source=str(path)))


def write_state(path: Path, state: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    """Write tensors and config as one safetensors file, atomically."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors: dict[str, Tensor] = {}
    addresses: set[int] = set()
    for key, value in state.items():
        tensor = value.detach().cpu().contiguous()
        # safetensors refuses tensors that share memory, such as tied weights
        tensors[key] = tensor.clone() if tensor.data_ptr() in addresses else tensor
        addresses.add(tensor.data_ptr())
    metadata = {METADATA_KEY: json.dumps(config, sort_keys=True), "format": "pt"}
    with write_file(path) as unfinished:
        try:
            save_file(tensors, unfinished, metadata)
        except SafetensorError as error:
            raise system_error(error, unfinished.parent) from error


def fetch(repo_id: str, file: str, **hub_options: Any) -> Path:
    """Return the path of a file of a hub repository, downloaded unless it is in the cache."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(repo_id, file, **hub_options))
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        raise InputError(
            f"{repo_id!r} is not a local folder or file, and its {file} could not be fetched from the "
            f"Hugging Face hub ({type(error).__name__}); on a machine with internet access, download "
            "its config.json and model.safetensors into a folder and pass that folder"
        ) from error


def rename(state: Mapping[str, Tensor], rules: Rules) -> tuple[dict[str, Tensor], list[str]]:
    """Return the published tensors under our names, and the keys that match no rule.

    Strips the `module.` of data-parallel training, drops the classifier, casts to float32.
    """
    renamed: dict[str, Tensor] = {}
    unexpected = []
    for published, value in state.items():
        key = published.removeprefix("module.")
        if re.search(r"(^|\.)fc\.(weight|bias)$", key):
            continue
        new_key = _apply_rules(key, rules)
        if new_key is None:
            unexpected.append(published)
        else:
            renamed[new_key] = value.float() if value.is_floating_point() else value
    return renamed, unexpected


def load_strictly(
    module: nn.Module, state: Mapping[str, Tensor], *, source: str, unexpected: Sequence[str] = ()
) -> None:
    """Load a state dict whose names and shapes must all match.

    Only the counter `num_batches_tracked`, which no output depends on, may be missing (older files lack
    it; it starts at 0) or superfluous (frozen norms have none).
    """
    counter = ".num_batches_tracked"
    own = module.state_dict()
    given = {key: value for key, value in state.items() if key in own or not key.endswith(counter)}
    problems = [
        _describe("missing", [key for key in own if key not in given and not key.endswith(counter)]),
        _describe("not known", [*unexpected, *(key for key in given if key not in own)]),
        _describe(
            "of another shape",
            [
                f"{key} {tuple(given[key].shape)} instead of {tuple(own[key].shape)}"
                for key in own
                if key in given and given[key].shape != own[key].shape
            ],
        ),
        _describe(
            "of another type",
            [
                f"{key} {given[key].dtype} instead of {own[key].dtype}"
                for key in own
                if key in given and given[key].is_floating_point() != own[key].is_floating_point()
            ],
        ),
        _describe("not finite", [key for key in own if key in given and not _is_finite(given[key])]),
    ]
    if any(problems):
        raise InputError(
            f"{source}: the weights do not fit this {type(module).__name__}: "
            f"{'; '.join(text for text in problems if text)}"
        )
    module.load_state_dict({key: given.get(key, own[key]) for key in own})


def _is_finite(values: Tensor) -> bool:
    # larger float64 values overflow to infinity in the network
    largest = torch.finfo(torch.float32).max
    return not values.is_floating_point() or bool((values.abs() <= largest).all())


def _describe(what: str, keys: list[str]) -> str:
    return f"{len(keys)} {what} ({shorten_list(keys)})" if keys else ""


def _apply_rules(key: str, rules: Iterable[tuple[str, str]]) -> str | None:
    for pattern, replacement in rules:
        renamed, n_replaced = re.subn(f"^{pattern}", replacement, key)
        if n_replaced:
            return renamed
    return None


def _read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return {key: file.get_tensor(key) for key in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} is not a safetensors file ({_first_line(error)})") from error


def _unwrap(loaded: object, path: Path) -> dict[str, Tensor]:
    """Return the state dict inside the dictionary that training scripts wrap it in."""
    if isinstance(loaded, dict):
        for name in _WRAPPERS:
            if isinstance(loaded.get(name), dict):
                loaded = loaded[name]
                break
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise InputError(f"{str(path)!r} holds no state dict; expected names and tensors")
    return {str(key): value for key, value in loaded.items()}


def _first_line(error: Exception) -> str:
    return brief((str(error).splitlines() or [type(error).__name__])[0], most=200)
