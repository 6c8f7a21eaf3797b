"""The structure of the package: which subpackage may import which, sizes, names of classes."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from helpers.paths import ROOT as PROJECT

import sisod

Graph = dict[str, set[str]]
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
# heavy packages -> the subpackages that may import them
HEAVY = {
    "typer": {"cli"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "torch": {"losses", "networks", "training", "reproduction"},
}
MOST_FILES = 12  # in a folder, beside __init__.py
MOST_LINES = 440  # of a file: not much more than 400


def trees(root: Path) -> dict[str, ast.Module]:
    """Return the syntax tree of every module by its dotted name."""
    return {
        ".".join(("sisod", *path.relative_to(root).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob("*.py"))
    }


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield what a module imports, in functions and by import_module too, except for type checking."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "write the absolute import, which shows the direction"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                yield str(getattr(node.args[0], "value", ""))  # a name that is written out
            yield from imports(node)


def module_graph(modules: dict[str, ast.Module]) -> Graph:
    """Return the modules of the package that each module imports."""
    return {
        name: {
            target if target in modules else target.rpartition(".")[0]
            for target in imports(tree)
            if target.startswith("sisod")
        }
        for name, tree in modules.items()
    }


def subpackage(module: str) -> str:
    """Return the subpackage of a module; an empty string for the root package."""
    return module.split(".")[1] if "." in module else ""


def forbidden(edges: Graph) -> list[str]:
    """Return the imports that break the rule."""
    return [
        f"{module} imports {target}"
        for module, targets in edges.items()
        for target in sorted(targets)
        if subpackage(module) not in ("", "__main__", subpackage(target))
        and subpackage(target) not in MAY_IMPORT[subpackage(module)]
    ]


def cycle(edges: Graph) -> set[str]:
    """Return modules that import each other in a circle, if there are any."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return set(error.args[1])
    return set()


def heavy(modules: dict[str, ast.Module]) -> list[str]:
    """Return imports of a heavy package outside its subpackages."""
    return [
        f"{name} imports {package}"
        for name, tree in modules.items()
        for package in sorted({target.split(".")[0] for target in imports(tree)} & HEAVY.keys())
        if subpackage(name) not in HEAVY[package]
    ]


def shared_class_names(modules: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Return the names of public classes that several modules define, with the modules."""
    homes = defaultdict(list)
    for module, tree in modules.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    return {name: defining for name, defining in homes.items() if len(defining) > 1}


def crowded(root: Path) -> list[str]:
    """Return the folders that hold too many files, and the files that are too long."""
    counts: defaultdict[str, int] = defaultdict(int)
    found = []
    for path in sorted(root.rglob("*.py")):
        counts[path.parent.relative_to(root).as_posix()] += path.name != "__init__.py"
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        if n_lines > MOST_LINES:
            found.append(f"{path.relative_to(root).as_posix()} has {n_lines} lines")
    return found + [f"{name} has {count} files" for name, count in counts.items() if count > MOST_FILES]


@pytest.fixture(scope="module")
def package() -> dict[str, ast.Module]:
    return trees(ROOT)


def test_the_structure_of_the_package(package: dict[str, ast.Module]) -> None:
    assert forbidden(module_graph(package)) == []
    assert cycle(module_graph(package)) == set()
    assert heavy(package) == []
    assert shared_class_names(package) == {}
    assert crowded(ROOT) == []
    assert {path.name for path in ROOT.iterdir()} - {"__pycache__"} == {
        *MAY_IMPORT,
        *("__init__.py", "__main__.py", "py.typed"),
    }


def test_each_rule_sees_what_breaks_it(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from sisod.scoring.metrics import a\n",
        "common/exceptions.py": "def f():\n    from sisod.data.pairs import b\nclass Cell: ...\n",
        "data/pairs.py": "import sisod.common.exceptions\nimport torch\nclass Cell: ...\n",
        "scoring/metrics.py": "if TYPE_CHECKING:\n    import torch\n    import sisod.data.pairs\n",
        "evaluation/rows.py": "from sisod import score\n",
        "analysis/ranks.py": "x = import_module('sisod.report.gallery')\n",
        **{f"losses/parts/module{number}.py": "\n" * 441 * (number == 7) for number in range(13)},
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    modules = trees(tmp_path)
    assert forbidden(module_graph(modules)) == [
        "sisod.analysis.ranks imports sisod.report",
        "sisod.common.exceptions imports sisod.data.pairs",
        "sisod.evaluation.rows imports sisod",
    ]
    assert cycle(module_graph(modules)) == {"sisod.common.exceptions", "sisod.data.pairs"}
    assert heavy(modules) == ["sisod.data.pairs imports torch"]
    assert shared_class_names(modules) == {"Cell": ["sisod.common.exceptions", "sisod.data.pairs"]}
    assert crowded(tmp_path) == ["losses/parts/module7.py has 441 lines", "losses/parts has 13 files"]


def test_no_message_names_a_file_of_the_repository(package: dict[str, ast.Module]) -> None:
    """Who installed a wheel has no docs, tests or Makefile; the help of commands includes docstrings."""
    repository = re.compile(
        r"\b(docs|tests|tools|benchmarks|examples)/|constraints\.txt|\b(README|Makefile)\b"
    )
    for name, tree in package.items():
        documented = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and subpackage(name) != "cli"
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert id(node) in documented or not repository.search(node.value), (name, node.value)


def test_the_page_states_the_rule_and_names_what_exists() -> None:
    page = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]*) \|$", page, flags=re.MULTILINE)
    named = {
        name: ", ".join(other for other in MAY_IMPORT if other in allowed)
        for name, allowed in MAY_IMPORT.items()
    }
    assert dict(stated) == named | {
        "common": "nothing",
        "reproduction": "all but `cli` and `compat`",
        "cli": "all",
    }
    files = re.findall(r"`(\w+(?:/\w+)+(?:\.py)?)`", page)
    assert len(files) > 6
    if not (ROOT / "src").is_dir():  # the tests of a wheel have no sources
        files = [name for name in files if not name.startswith("src/")]
    assert [name for name in files if not (ROOT / name).exists() and not (PROJECT / name).exists()] == []
