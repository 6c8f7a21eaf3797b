"""Folders of the project that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
RESULTS = ROOT / "benchmarks" / "results"
