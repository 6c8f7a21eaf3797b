"""Checkpoints from which a run is resumed: reading, and checks before they are used."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from sisod.common.errors import InputError
from sisod.networks.checkpoints import load_strictly, load_tensors

_PARTS = ("state_dict", "global_step", "epoch", "optimizer_states", "lr_schedulers", "loops")
_ADVICE = "put back a copy of it, or begin again with --overwrite"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return a checkpoint that Lightning saved; say in one sentence why it cannot be used."""
    try:
        loaded = load_tensors(path)
    except InputError as error:
        raise InputError(f"the checkpoint {str(path)!r} cannot be read ({error}); {_ADVICE}") from error
    missing = [part for part in _PARTS if not isinstance(loaded, dict) or part not in loaded]
    if missing:
        raise InputError(
            f"{str(path)!r} is not a checkpoint of sisod train: it lacks {', '.join(missing)}; {_ADVICE}"
        )
    checkpoint: dict[str, Any] = loaded
    return checkpoint


def resume_step(path: Path, module: nn.Module) -> int:
    """Return the step of a checkpoint, which must match the module; check the best one beside it too."""
    best = path.with_name("best.ckpt")
    if best.exists():  # it is needed at the end; a broken one should be reported now
        read_checkpoint(best)
    checkpoint = read_checkpoint(path)
    state, step = checkpoint["state_dict"], checkpoint["global_step"]
    if not isinstance(state, dict) or not isinstance(step, int) or step < 0:
        raise InputError(f"{str(path)!r} is not a checkpoint of sisod train; {_ADVICE}")
    load_strictly(module, state, source=str(path))
    return step


@contextmanager
def resume_errors(path: Path, module: Any) -> Iterator[None]:
    """Say that a checkpoint cannot be resumed from, if Lightning fails before the first step."""
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if module.has_started:
            raise
        why = (str(error).splitlines() or [""])[0]
        raise InputError(
            f"the run cannot go on from {str(path)!r} ({type(error).__name__}: {why}); {_ADVICE}"
        ) from error
