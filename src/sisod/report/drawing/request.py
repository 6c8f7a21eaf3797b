"""What the figures are drawn from: results, photographs, and the options of `sisod plot`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sisod.common.arguments import check_known
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.style import Width


@dataclass(frozen=True, eq=False)
class FigureRequest:
    """The inputs of figures.

    Attributes:
        results: saved results.
        image_roots: data set -> folder of its photographs.
        ablation: the table of `sisod ablate`, or None.
        examples: names of images for the figure of examples; by default those on which methods differ
            most.
        fetch: whether to read maps from URLs too.
        metrics: keys of the scores to draw, for figures of scores; by default each figure's own.
        methods: which to draw, in this order; by default all.
        width: of the figures, that of a column or of the text of a two-column paper.
    """

    results: Sequence[Result]
    image_roots: Mapping[str, Path] = field(default_factory=dict)
    ablation: Path | None = None
    examples: Sequence[str] = ()
    fetch: bool = False
    metrics: Sequence[str] = ()
    methods: Sequence[str] = ()
    width: Width = "double"

    @property
    def chosen(self) -> list[Result]:
        """The results of the chosen methods, in the order of their names."""
        if not self.methods:
            return list(self.results)
        for method in self.methods:
            check_known("method", method, methods_of(self.results))
        found = {(result.dataset, result.method): result for result in self.results}
        keys = [(name, method) for name in datasets_of(self.results) for method in self.methods]
        return [found[key] for key in keys if key in found]
