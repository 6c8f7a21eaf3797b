"""What every subpackage builds on: exceptions, output, tables of text, settings, processes."""

from collections.abc import Callable
from typing import Any

# kind of result -> the function that draws it, set by the root package: figures are built on results
DRAWINGS: dict[str, Callable[..., Any]] = {}
