"""One web page about saved results, in one file that needs no network."""

from sisod.report.page.page import write_report

__all__ = ["write_report"]
