"""The pages are run as tests; a metric that one of them registers must not reach other tests."""

from helpers.custom_metrics import built_in_metrics

__all__ = ["built_in_metrics"]
