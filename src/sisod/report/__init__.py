"""Results -> pages: tables, figures and the web page about saved results."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sisod.report.page.page import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> object:
    if name == "write_report":  # only when asked for: the tables of a command need no page
        from sisod.report.page.page import write_report

        return write_report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
