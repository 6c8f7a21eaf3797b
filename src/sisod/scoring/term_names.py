"""The names of a loss's terms, some with numbers such as `focal(2)`; read here without PyTorch."""

import re

from sisod.common.arguments import check_number, shown, unknown_name_message
from sisod.common.errors import UsageError

# of the numbers in brackets
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "bce": (),
    "mse": (),
    "l1": (),
    "focal": ("g",),
    "dice": (),
    "iou": (),
    "auc": (),
    "tversky": ("a", "b"),
}
_EXAMPLES = {"focal": "focal(2)", "tversky": "tversky(0.3,0.7)"}
TERM_NAMES = tuple(
    f"{name}({','.join(names)})" if names else name for name, names in _PARAMETERS.items()
)
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?")
_TERM = re.compile(r"([a-z0-9]+)(?:\((.*)\))?", re.DOTALL)


def parse_term(text: object) -> tuple[str, dict[str, float]]:
    """Return the name of a term and its numbers.

    Example:
        >>> parse_term("dice")
        ('dice', {})
        >>> parse_term("tversky(0.3, 0.7)")
        ('tversky', {'a': 0.3, 'b': 0.7})
    """
    match = _TERM.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[1] not in _PARAMETERS:
        raise UsageError(unknown_name_message("term", text, TERM_NAMES))
    name, inside = match[1], match[2]
    numbers = [] if inside is None else [number.strip() for number in inside.split(",")]
    parameters = _PARAMETERS[name]
    if len(numbers) != len(parameters) or not all(_NUMBER.fullmatch(number) for number in numbers):
        if not parameters:
            raise UsageError(f"term {shown(text)} takes no numbers; write {name!r}")
        count = "a number" if len(parameters) == 1 else f"{len(parameters)} numbers"
        raise UsageError(f"term {shown(text)} needs {count} from 0 on, as in {_EXAMPLES[name]!r}")
    return name, check_term_numbers(name, *map(float, numbers))


def check_term_numbers(name: str, *values: object) -> dict[str, float]:
    """Return the numbers of a term by name; refuse negative ones and those without meaning."""
    form = f"{name}({','.join(_PARAMETERS[name])})"
    numbers = {
        parameter: check_number(f"{parameter} of {form}", value)
        for parameter, value in zip(_PARAMETERS[name], values, strict=True)
    }
    if name == "tversky" and not any(numbers.values()):
        raise UsageError("tversky(0,0) counts no errors; give at least one number above 0")
    return numbers
