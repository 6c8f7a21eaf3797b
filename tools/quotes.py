"""Copies the output of the demo and of the benchmarks into the documents; tests check that both agree.

Run `python tools/quotes.py` after the demo or a benchmark has changed.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from sisod.cli import app

ROOT = Path(__file__).parent.parent


def demo_text(out_dir: Path) -> str:
    """Return the output of the demo as a code block."""
    printed = CliRunner().invoke(app, ["demo", "--quick", "--out", str(out_dir)]).stdout
    lines = [line.rstrip() for line in printed.splitlines() if not line.startswith("The picture")]
    return "\n".join(["```text", *lines, "```"])


def run_commands(text: str, folder: Path) -> str:
    """Return a page with, below each of its commands, what the command printed in a folder."""
    lines, blocks = text.split("\n"), []
    printed: list[str] = []
    inside = False
    for line in lines:
        if line.startswith("    sisod "):
            command = [sys.executable, "-m", "sisod", *shlex.split(line)[1:]]
            done = subprocess.run(  # noqa: S603  (a command of our own page)
                command,
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                env=os.environ | {"COLUMNS": "140", "NO_COLOR": "1"},
            )
            printed = (done.stdout + done.stderr).splitlines()
        if not inside or line == "```":
            blocks.append(line)
        if line == "```text":
            inside = True
            blocks += [one.rstrip() for one in printed]
        elif line == "```":
            inside = False
    return "\n".join(blocks)


def bench_text(name: str = "engine") -> str:
    """Return the first table that a benchmark wrote, or another: `losses:2` is the third."""
    name, _, index = name.partition(":")
    written = (ROOT / "benchmarks" / "results" / f"{name}.md").read_text()
    tables = re.findall(r"^\|.*(?:\n\|.*)*", written, flags=re.MULTILINE)
    assert tables, f"benchmarks/results/{name}.md has no table"
    return str(tables[int(index or 0)])


def quoted(text: str, name: str) -> str:
    """Return the text between two markers of a document."""
    match = re.search(f"<!-- {name} -->\n(.*?)\n?<!-- /{name} -->", text, flags=re.DOTALL)
    assert match, f"no markers for {name}"
    return match.group(1)


def with_quote(text: str, name: str, quote: str) -> str:
    """Return the document with a new text between two markers."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, rest = text.split(begin)
    return before + begin + quote + "\n" + end + rest.split(end)[1]


# document, marker, benchmark whose table is copied between the markers
TABLES = (
    ("docs/performance.md", "bench", "engine"),
    ("docs/losses.md", "losses", "losses"),
    ("docs/losses.md", "advice", "real_data/losses_advice"),
    ("docs/reproduce.md", "epochs", "bench:0"),
    ("docs/reproduce.md", "boxes", "bench:1"),
    ("docs/performance.md", "scale", "scale"),
    ("docs/compat.md", "conventions", "conventions"),
    ("docs/compat.md", "compat", "compat"),
    ("docs/formats.md", "containers", "containers"),
    ("docs/networks.md", "onnx_predict", "onnx_predict"),
    ("docs/theory.md", "rho", "rho"),
    ("docs/theory.md", "decomposition", "decomposition"),
    ("docs/rankings.md", "rankings_covid", "rankings:0"),
    ("docs/rankings.md", "rankings_covid_changes", "rankings:1"),
    ("docs/rankings.md", "rankings_sod", "rankings:2"),
    ("docs/rankings.md", "rankings_sod_changes", "rankings:3"),
    ("docs/real-data.md", "real_data/losses_advice", "real_data/losses_advice"),
    ("docs/real-data.md", "real_data/claims", "real_data/claims"),
    ("docs/real-data.md", "real_data/group_claims", "real_data/group_claims"),
)

# document, marker, file that is copied as a whole between the markers
WHOLE = (("docs/reproduce.md", "trained", "trained_demo"),)


def whole_text(name: str) -> str:
    """Return the whole file that a benchmark wrote."""
    return (ROOT / "benchmarks" / "results" / f"{name}.md").read_text().rstrip("\n")


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(with_quote(readme.read_text(), "demo", demo_text(ROOT / "demo")))
    start = ROOT / "docs" / "start.md"
    with tempfile.TemporaryDirectory() as folder:
        start.write_text(run_commands(start.read_text(), Path(folder)))
    for document, marker, benchmark in TABLES:
        path = ROOT / document
        path.write_text(with_quote(path.read_text(), marker, bench_text(benchmark)))
    for document, marker, benchmark in WHOLE:
        path = ROOT / document
        path.write_text(with_quote(path.read_text(), marker, whole_text(benchmark)))
