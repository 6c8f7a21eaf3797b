"""Results -> pages: tables, figures and the web page of saved results."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sisod.report.page.render import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> object:
    if name == "write_report":  # imported on first use: the tables of a command do not need the page
        from sisod.report.page.render import write_report

        return write_report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
