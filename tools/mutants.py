"""Break random lines of the package, one at a time, and see whether its tests notice.

    python tools/mutants.py scoring losses evaluation data --before CHECKOUT

In every subpackage 20 lines are changed: a comparison, an operator, a number, a condition. Its tests
must fail: first those that name the module are run, then the others of the subpackage, then those of
subpackages that use it. A change that they miss is tried with the tests of CHECKOUT, an earlier state of
the project, in its own code: only lines that both have are changed. Prints a table in Markdown.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.And: (" and ", " or "),
    ast.Or: (" or ", " and "),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
# what also uses the subpackage, and so may notice
NEIGHBOURS = {
    "scoring": ("evaluation", "compat", "analysis"),
    "losses": ("training",),
    "evaluation": ("cli", "analysis", "report"),
    "data": ("evaluation", "training", "networks"),
    "report": ("cli",),
}


@dataclass(frozen=True)
class Mutant:
    """One changed line: the file below the package, the line as it is and as it becomes."""

    file: str
    line: str
    changed: str


def mutants_of(path: Path, package: Path) -> Iterator[Mutant]:
    """Yield every change of every line of a file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    tree = ast.parse(text)
    for node in ast.walk(tree):  # annotations are not run
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                setattr(node, name, None)

    def mutant(node: ast.expr, start: int, end: int, new: str) -> Mutant:
        line = lines[node.lineno - 1]
        return Mutant(str(path.relative_to(package)), line, line[:start] + new + line[end:])

    for node in ast.walk(tree):
        if (
            not isinstance(node, ast.expr)
            or node.lineno != node.end_lineno
            or node.end_col_offset is None
        ):
            continue
        line = lines[node.lineno - 1]
        if not line.isascii() or line.lstrip().startswith(("raise", '"', 'f"', "@")):
            continue
        if isinstance(node, ast.Constant) and type(node.value) is bool:
            yield mutant(node, node.col_offset, node.end_col_offset, str(not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield mutant(node, node.col_offset, node.end_col_offset, f"{node.value + 1}")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield mutant(node, node.col_offset, node.col_offset + 4, "")
        else:
            sides: list[tuple[ast.expr, ast.AST, ast.expr]] = []
            if isinstance(node, ast.BinOp):
                sides = [(node.left, node.op, node.right)]
            elif isinstance(node, ast.Compare) and len(node.ops) == 1:
                sides = [(node.left, node.ops[0], node.comparators[0])]
            elif isinstance(node, ast.BoolOp):
                sides = [(node.values[0], node.op, node.values[1])]
            for left, op, right in sides:
                if type(op) in SWAPS and left.end_col_offset is not None:
                    old, new = SWAPS[type(op)]
                    at = line.find(old, left.end_col_offset, right.col_offset)
                    if at >= 0:
                        yield mutant(node, at, at + len(old), new)


def choose(subpackage: str, count: int, seed: int, before: Path | None) -> list[Mutant]:
    """Return random mutants of different lines that both states have exactly once."""
    package = PROJECT / "src" / "sisod"
    files = sorted((package / subpackage).rglob("*.py"))
    seen = Counter(line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    known = seen
    if before is not None:
        older = (before / "src" / "sisod" / subpackage).rglob("*.py")
        known = Counter(line for file in older for line in file.read_text(encoding="utf-8").splitlines())
    found: dict[str, list[Mutant]] = {}
    for file in files:
        for mutant in mutants_of(file, package):
            if seen[mutant.line] == known[mutant.line] == 1:
                found.setdefault(mutant.line, []).append(mutant)
    generator = random.Random(f"{seed} {subpackage}")  # noqa: S311
    lines = generator.sample(sorted(found), min(count, len(found)))
    return [generator.choice(found[line]) for line in lines]


def stages(project: Path, subpackage: str, mutant: Mutant) -> list[list[str]]:
    """Return the files of tests to run: those that name the module, of the subpackage, of its users."""
    module = ".".join(Path(mutant.file).with_suffix("").parts).removesuffix(".__init__")
    below = {
        folder: sorted((project / "tests" / folder).rglob("test_*.py"))
        for folder in (subpackage, *NEIGHBOURS[subpackage])
    }
    near = [
        path
        for paths in below.values()
        for path in paths
        if f"sisod.{module} import" in path.read_text(encoding="utf-8")
    ]
    own = [path for path in below.pop(subpackage) if path not in near]
    rest = [path for paths in below.values() for path in paths if path not in near]
    return [[str(path) for path in paths] for paths in (near, own, rest) if paths]


def notices(project: Path, subpackage: str, mutant: Mutant, seconds: float) -> str:
    """Run the tests with the line changed; return the one that fails, or an empty string."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "src"
        shutil.copytree(project / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        changed = 0
        for file in (copy / "sisod" / subpackage).rglob("*.py"):
            lines = file.read_text(encoding="utf-8").splitlines()
            if mutant.line in lines:
                lines[lines.index(mutant.line)] = mutant.changed
                file.write_text("\n".join(lines) + "\n", encoding="utf-8")
                changed += 1
        assert changed == 1, mutant
        for files in stages(project, subpackage, mutant):
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "--dist", "loadfile"]
            environment = os.environ | {"PYTHONPATH": str(copy), "HYPOTHESIS_PROFILE": "default"}
            try:
                run = subprocess.run(  # noqa: S603
                    [*command, *files],
                    cwd=project,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=seconds,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"unknown: no end within {seconds:.0f} seconds"
            if run.returncode != 0:
                failed = [
                    line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
                ]
                return failed[0].split(" - ")[0] if failed else "an error"
    return ""


def main() -> None:
    """Parse the command line, try every mutant, print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("subpackages", nargs="+", choices=sorted(NEIGHBOURS))
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--seconds", type=float, default=900, help="for the tests of one stage")
    options = parser.parse_args()
    print("| file | line | becomes | noticed by |", "|---|---|---|---|", sep="\n", flush=True)
    missed = Counter[str]()
    for subpackage in options.subpackages:
        for mutant in choose(subpackage, options.count, options.seed, options.before):
            answer = notices(PROJECT, subpackage, mutant, options.seconds)
            if not answer:
                missed[subpackage] += 1
                before = options.before and notices(options.before, subpackage, mutant, options.seconds)
                answer = f"**missed**; before: {before or 'missed'}"
            cells = (mutant.file, f"`{mutant.line.strip()}`", f"`{mutant.changed.strip()}`", answer)
            print("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |", flush=True)
    for subpackage in options.subpackages:
        print(f"\n{subpackage}: {missed[subpackage]} of {options.count} missed")


if __name__ == "__main__":
    main()
