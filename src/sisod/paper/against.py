"""A run compared with a published row."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sisod.common.exceptions import InputError, pluralize
from sisod.common.grid import Format, Grid, json_rows, number, render
from sisod.paper.published import PublishedRow, find_row
from sisod.scoring.metrics import METRICS, arrow

if TYPE_CHECKING:
    import polars as pl

    from sisod.evaluation.result import Evaluation


@dataclass(frozen=True, eq=False)
class AgainstPaper:
    """A run compared with a published row.

    Attributes:
        row: the published row.
        table: one row per metric: `metric`, `ours`, `published`, `difference` (ours minus published),
            `note` (on a misprint, else empty).
        images: number of images scored.
        code: the released code that scored them, SI-SOD or SI_Metric.
    """

    row: PublishedRow
    table: "pl.DataFrame"
    images: int
    code: str

    def grid(self) -> Grid:
        """Return the table as text."""
        rows = tuple(
            (
                f"{METRICS[row['metric']].title} {arrow(row['metric'])}",
                number(row["ours"]),
                number(row["published"]),
                number(row["difference"], sign=True),
            )
            for row in self.table.iter_rows(named=True)
        )
        return Grid(("metric", "ours", f"paper, {self.row.name}", "difference"), rows, n_text=1)

    def render(self, kind: Format) -> str:
        """Return the table for a document or a program."""
        content = {"row": self.row.name, "images": self.images, "metrics": json_rows(self.table)}
        return render(self.grid(), self.table.iter_rows(named=True), content, kind)

    def caption(self) -> str:
        """Return how the numbers were computed, and a line for each misprint."""
        origin = (
            f"{pluralize(self.images, 'image')}, scored as the paper's released code {self.code} does"
        )
        notes = [f"{METRICS[key].title} is {note}" for key, note in self.row.notes.items()]
        return "\n".join([origin, *notes])

    def _repr_html_(self) -> str:
        return self.grid().html(self.caption())


def against_paper(evaluation: "Evaluation", published: PublishedRow | str) -> AgainstPaper:
    """Compare a run with a published row; the run must have been scored as the released code does.

    Args:
        evaluation: the run, `sisod.evaluate(..., protocol="official")`, or `"official-metric"`.
        published: a row or its name, such as `MSOD/EDN+SI`.
    """
    import polars as pl

    row = find_row(published) if isinstance(published, str) else published
    code = evaluation.protocol.released_code
    if not code:
        raise InputError(
            f"the run was scored under the protocol {evaluation.protocol.name!r}, the paper's numbers "
            "under that of its released code; evaluate again with --protocol official"
        )
    rows: list[Mapping[str, Any]] = [
        {
            "metric": key,
            "ours": evaluation.summary[key],
            "published": value,
            "difference": evaluation.summary[key] - value,
            "note": row.notes.get(key, ""),
        }
        for key, value in row.values.items()
        if key in evaluation.summary
    ]
    return AgainstPaper(row, pl.DataFrame(rows), evaluation.images.height, code)
