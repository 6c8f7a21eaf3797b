"""The rule of direction: which room of the package may import which, read off the syntax trees."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sisod

ROOT = Path(sisod.__file__).parent

MAY_IMPORT: dict[str, set[str]] = {
    "common": set(),
    "scoring": {"common"},
    "data": {"common", "scoring"},
    "evaluation": {"common", "scoring", "data"},
    "analysis": {"common", "scoring", "data", "evaluation"},
    "paper": {"common", "scoring", "evaluation"},
    "report": {"common", "scoring", "data", "evaluation", "analysis", "paper"},
    "losses": {"common", "scoring"},
    "networks": {"common", "data"},
    "training": {"common", "scoring", "data", "evaluation", "analysis", "losses", "networks"},
    "compat": {"common", "scoring"},
}
MAY_IMPORT["reproduction"] = {*MAY_IMPORT} - {"compat"}
MAY_IMPORT["cli"] = {*MAY_IMPORT}

# heavy or special packages -> the rooms that may import them
HEAVY = {
    "typer": {"cli"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "torch": {"losses", "networks", "training", "reproduction"},
}

# results draw themselves in a notebook: the only calls up, made when a user asks for a picture
EXCEPTIONS = {
    ("sisod.evaluation.result", "sisod.report.notebook"),
    ("sisod.analysis.comparison", "sisod.report.notebook"),
}


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    return {dotted(path, root): path for path in sorted(root.rglob("*.py"))}


def dotted(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(("sisod", *(part for part in parts if part != "__init__")))


def imports(path: Path) -> Iterator[str]:
    """Yield what a file imports, inside functions too, but not for type checking only.

    `from a import b` yields `a.b`: whether b is a module or a name of a is seen by whoever asks.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for part in node.body
        for inner in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the direction; write them in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def graph(root: Path = ROOT) -> dict[str, set[str]]:
    """Return the modules of ours that each module imports."""
    known = modules(root)
    edges: dict[str, set[str]] = {}
    for name, path in known.items():
        ours = {target for target in imports(path) if target.split(".")[0] == "sisod"}
        edges[name] = {t if t in known else t.rpartition(".")[0] for t in ours}
    return edges


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def forbidden(edges: dict[str, set[str]]) -> list[str]:
    """Return the edges that break the rule."""
    return [
        f"{module} imports {target}"
        for module, targets in edges.items()
        for target in sorted(targets)
        if (module, target) not in EXCEPTIONS
        and room(module)  # the root itself is what users import
        and room(module) != "__main__"
        and (
            target == "sisod"
            or (room(target) != room(module) and room(target) not in MAY_IMPORT[room(module)])
        )
    ]


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or not."""
    reach = {module: _reachable(module, edges) for module in edges}
    groups = {
        frozenset(other for other in reach[module] if module in reach[other])
        for module in edges
        if module in reach[module]
    }
    return sorted(sorted(group) for group in groups)


def _reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        module = waiting.pop()
        for target in edges[module]:
            if (module, target) not in EXCEPTIONS and target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


def heavy(root: Path = ROOT) -> list[str]:
    """Return imports of a heavy package outside its rooms."""
    return [
        f"{name} imports {package}"
        for name, path in modules(root).items()
        for package in sorted({target.split(".")[0] for target in imports(path)} & HEAVY.keys())
        if room(name) not in HEAVY[package]
    ]


def test_the_root_holds_nothing_but_the_public_names() -> None:
    files = {path.name for path in ROOT.iterdir() if path.is_file()}
    assert files == {"__init__.py", "__main__.py", "py.typed"}
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= MAY_IMPORT.keys()
    assert len(rooms) >= 12


@pytest.mark.parametrize("name", sorted(MAY_IMPORT))
def test_a_room_has_few_files(name: str) -> None:
    assert len(list((ROOT / name).glob("*.py"))) <= 15  # about twelve, and __init__


def test_no_room_imports_what_it_may_not() -> None:
    assert forbidden(graph()) == []


def test_nothing_goes_round_in_circles() -> None:
    assert cycles(graph()) == []


def test_heavy_packages_stay_in_their_rooms() -> None:
    assert heavy() == []


def test_exceptions_are_still_needed() -> None:
    edges = graph()
    assert [edge for edge in EXCEPTIONS if edge[1] not in edges[edge[0]]] == []


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A small package that breaks every rule once."""
    files = {
        "__init__.py": "from sisod.scoring.metrics import a\n",
        "common/errors.py": "def f():\n    from sisod.data.pairs import b\n",
        "data/pairs.py": "import sisod.common.errors\nimport torch\n",
        "scoring/metrics.py": "if TYPE_CHECKING:\n    import torch\n    import sisod.data.pairs\n",
        "evaluation/rows.py": "from sisod import score\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_each_rule_sees_what_breaks_it(broken: Path) -> None:
    edges = graph(broken)
    assert forbidden(edges) == [
        "sisod.common.errors imports sisod.data.pairs",
        "sisod.evaluation.rows imports sisod",
    ]
    assert cycles(edges) == [["sisod.common.errors", "sisod.data.pairs"]]
    assert heavy(broken) == ["sisod.data.pairs imports torch"]
