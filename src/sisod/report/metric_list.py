"""The list of all metrics, for people and programs."""

from typing import Any

from sisod.common.grid import Format, Grid, render
from sisod.scoring.metrics import METRICS, Metric

_BETTER = {"up": "higher", "down": "lower", "none": "neither"}


def metric_records() -> list[dict[str, Any]]:
    """Return what is known of each metric, by key."""
    return [
        {
            "key": key,
            "title": metric.title,
            "better": _BETTER[metric.better],
            "computed": _when(metric),
            "meaning": metric.meaning,
            "trivial": metric.trivial,
        }
        for key, metric in METRICS.items()
    ]


def metric_grid(*, titles: bool = True) -> Grid:
    """Return the list as a table, with or without titles; a section for each family."""
    rows: list[tuple[str, ...]] = []
    starts = []
    for row, record in enumerate(metric_records()):
        metric = METRICS[record["key"]]
        if row and metric.family is not METRICS[rows[-1][0]].family:
            starts.append(row)
        meaning = record["meaning"] + (f"; trivial: {metric.trivial}" if metric.trivial else "")
        title = (record["title"],) * titles
        rows.append((record["key"], *title, record["better"], record["computed"], meaning))
    headings = ("key", *("title",) * titles, "better", "computed", "meaning")
    return Grid(headings, tuple(rows), n_text=len(headings), sections=frozenset(starts))


def render_metrics(kind: Format) -> str:
    """Return the list in one of the formats for documents and programs."""
    records = metric_records()
    return render(metric_grid(), records, records, kind)


def _when(metric: Metric) -> str:
    if metric.family.detections:
        return "infrared only"
    return "on request" if metric.family.on_request else "by default"
