"""A matplotlib figure that notebooks display."""

import io

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure that a notebook displays as the value of a cell, with any backend."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()
