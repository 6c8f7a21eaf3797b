"""What a notebook shows: figures and results that display themselves."""

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure that a notebook draws when it is the value of a cell, whatever the backend."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()
