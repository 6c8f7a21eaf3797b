"""Statistics of masks as tables, for documents and for programs."""

from typing import Any

from sisod.analysis.masks import MaskStatistics
from sisod.common.grid import Format, Grid, is_nan, number, render
from sisod.scoring.protocols import Protocol


def statistics_grids(statistics: MaskStatistics) -> tuple[Grid, ...]:
    """Return tables of an overview, of objects by size (twice), and of images by number of objects."""
    record = _record(statistics)
    overview = {
        "images": str(record["images"]),
        "objects": str(record["objects"]),
        "components below min_area, left out": str(record["left_out"]),
        "masks with grey areas": str(record["grey_masks"]),
        "objects per image, mean": f"{record['objects_per_image']:.2f}",
        "rho, least salient share of a frame": number(statistics.rho),
        "rho', least salient share of an image": number(statistics.rho_image),
    }
    by_percent = record["objects_by_percent_of_image"]
    sizes = {f"{group} % of the image": count for group, count in by_percent.items()}
    tables = (
        ("size of the object", "objects", sizes),
        ("the same, small ones apart", "objects", record["objects_by_log_size"]),
        ("objects in the image", "images", record["images_by_objects"]),
    )
    grids = [
        Grid(
            (first, what, "share"),
            tuple((group, str(n), f"{n / max(1, record[what]):.1%}") for group, n in counts.items()),
            n_text=1,
        )
        for first, what, counts in tables
    ]
    return (Grid(("statistic", "value"), tuple(overview.items()), n_text=1), *grids)


def render_statistics(statistics: MaskStatistics, protocol: Protocol, kind: Format) -> str:
    """Return the tables for a document, or all numbers for a program."""
    grids = statistics_grids(statistics)
    if kind in ("md", "latex"):
        return "\n\n".join(render(grid, (), None, kind) for grid in grids)
    content = {"protocol": protocol.name, **_record(statistics)}
    rows = [
        {"statistic": name, "group": group, "value": one}
        for name, value in content.items()
        for group, one in (value if isinstance(value, dict) else {"": value}).items()
    ]
    return render(grids[0], rows, content, kind)


def _record(statistics: MaskStatistics) -> dict[str, Any]:
    sizes = enumerate(statistics.size_groups().tolist())
    values = {
        "images": len(statistics.n_objects),
        "objects": len(statistics.shares),
        "components": statistics.n_components,
        "left_out": statistics.n_left_out,
        "grey_masks": statistics.n_grey,
        "emptied_masks": statistics.n_emptied,
        "objects_per_image": float(statistics.n_objects.mean()),
        "rho": statistics.rho,
        "rho_image": statistics.rho_image,
        "objects_by_percent_of_image": {f"{10 * i}-{10 * i + 10}": count for i, count in sizes},
        "objects_by_log_size": statistics.log_size_groups(),
        "images_by_objects": statistics.number_groups(),
    }
    return {key: None if is_nan(value) else value for key, value in values.items()}
