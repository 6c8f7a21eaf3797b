"""The list of all metrics, for people and programs."""

from typing import Any

from sisod.analysis.scores import direction, object_scores, title
from sisod.common.grid import UNLIMITED, Format, Grid, render
from sisod.scoring.metrics import METRICS

_COLUMNS = ("key", "title", "better", "computed", "meaning")  # from the most needed one on
_LEAST_MEANING = 20  # characters; fewer say nothing
_BETTER = {"up": "higher", "down": "lower", "none": "neither"}


def metric_records() -> list[dict[str, Any]]:
    """Return what is known of each metric.

    The last ones are the means over objects, which only comparisons and figures of groups have.
    """
    records = []
    for key, metric in METRICS.items():
        when = "on request" if metric.family.on_request else "by default"
        records.append(
            {
                "key": key,
                "title": metric.title,
                "better": _BETTER[metric.better],
                "computed": "infrared only" if metric.family.detections else when,
                "meaning": metric.meaning,
                "trivial": metric.trivial,
            }
        )
    for key, column in object_scores().items():
        meaning = "Same as object_recall; also of results without predicted objects"
        if key != "found":
            meaning = f"{METRICS[column].title} inside the frame of each object; mean over all objects"
        more = {"computed": "by compare", "meaning": meaning, "trivial": ""}
        records.append({"key": key, "title": title(key), "better": _BETTER[direction(key)], **more})
    return records


def metric_grid(width: int = UNLIMITED) -> Grid:
    """Return the list as a table, a line for each metric and a section for each family.

    Args:
        width: of a terminal. In a narrow one, meanings are shortened or left out, and then the columns
            before them.
    """
    records = metric_records()
    for record in records:
        record["meaning"] += f"; trivial: {record['trivial']}" if record["trivial"] else ""
    room = width - 1
    shown: dict[str, list[str]] = {}
    for name in _COLUMNS:
        cells = [record[name] for record in records]
        room -= 3  # of the borders
        needed = max(map(len, [name, *cells]))
        if name == "meaning" and room >= _LEAST_MEANING:
            cells = [c if len(c) <= room else f"{c[: room - 1].rstrip()}…" for c in cells]
        elif needed > room and name != "key":
            break
        shown[name] = cells
        room -= needed
    families = [METRICS[r["key"]].family.key if r["key"] in METRICS else "" for r in records]
    starts = [row for row in range(1, len(families)) if families[row] != families[row - 1]]
    rows = zip(*shown.values(), strict=True)
    return Grid(tuple(shown), tuple(rows), n_text=len(shown), sections=frozenset(starts))


def render_metrics(kind: Format) -> str:
    """Return the list in one of the formats for documents and programs."""
    records = metric_records()
    return render(metric_grid(), records, records, kind)
