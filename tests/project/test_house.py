"""The structure of the package: which room may import which, how many files a room has, class names."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest
from draw_rooms import EXCEPTIONS, PICTURE, draw
from import_graph import Graph, imports, module_graph, modules, reachable, room

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

MOST_FILES = 12  # of a room or a folder in one, beside __init__.py
LARGER_ROOMS = {
    "analysis": 13,
    "cli": 14,
    "common": 14,
    "data": 14,
    "evaluation": 18,
    "networks": 14,
    "report": 13,
    "scoring": 24,
    "training": 14,
}


def forbidden(edges: Graph) -> list[str]:
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


def cycles(edges: Graph) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or not."""
    downward = {
        module: {target for target in targets if (module, target) not in EXCEPTIONS}
        for module, targets in edges.items()
    }
    reach = {module: reachable(module, downward) for module in edges}
    groups = {
        frozenset(other for other in reach[module] if module in reach[other])
        for module in edges
        if module in reach[module]
    }
    return sorted(sorted(group) for group in groups)


def heavy(root: Path) -> list[str]:
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
    assert len(rooms) >= 13


def shared_class_names(root: Path) -> dict[str, list[str]]:
    """Return the names of public classes that several modules define, with the modules."""
    homes = defaultdict(list)
    for module, path in modules(root).items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    return {name: defining for name, defining in homes.items() if len(defining) > 1}


def crowded(root: Path, name: str) -> list[str]:
    """Return the folders of a room that hold too many files."""
    folders = [root / name, *(path for path in (root / name).rglob("*") if path.is_dir())]
    counts = {
        folder.relative_to(root).as_posix(): len({*folder.glob("*.py")} - {folder / "__init__.py"})
        for folder in folders
    }
    return [
        f"{folder} has {count} files"
        for folder, count in counts.items()
        if count > LARGER_ROOMS.get(folder, MOST_FILES)
    ]


@pytest.mark.parametrize("name", sorted(MAY_IMPORT))
def test_a_room_has_few_files(name: str) -> None:
    assert crowded(ROOT, name) == []


def test_no_room_imports_what_it_may_not() -> None:
    assert forbidden(module_graph(ROOT)) == []


def test_nothing_goes_round_in_circles() -> None:
    assert cycles(module_graph(ROOT)) == []


def test_heavy_packages_stay_in_their_rooms() -> None:
    assert heavy(ROOT) == []


def test_no_two_public_classes_share_a_name() -> None:
    assert shared_class_names(ROOT) == {}


def test_exceptions_are_still_needed() -> None:
    edges = module_graph(ROOT)
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
    edges = module_graph(broken)
    assert forbidden(edges) == [
        "sisod.common.errors imports sisod.data.pairs",
        "sisod.evaluation.rows imports sisod",
    ]
    assert cycles(edges) == [["sisod.common.errors", "sisod.data.pairs"]]
    assert heavy(broken) == ["sisod.data.pairs imports torch"]


def test_a_shared_class_name_is_seen(tmp_path: Path) -> None:
    for name, text in (
        ("a", "class Cell: ...\nclass _Own: ..."),
        ("b", "class Cell: ...\nclass _Own: ..."),
    ):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    assert shared_class_names(tmp_path) == {"Cell": ["sisod.a", "sisod.b"]}


def test_a_crowded_room_is_seen(tmp_path: Path) -> None:
    for folder, count in (("common", 15), ("common/parts", 13), ("losses", 13)):
        (tmp_path / folder).mkdir()
        for number in range(count):
            (tmp_path / folder / f"module{number}.py").touch()
        (tmp_path / folder / "__init__.py").touch()
    assert crowded(tmp_path, "common") == ["common has 15 files", "common/parts has 13 files"]
    assert crowded(tmp_path, "losses") == ["losses has 13 files"]


def test_the_picture_is_that_of_the_imports() -> None:
    assert PICTURE.read_text(encoding="utf-8") == draw(ROOT)


def test_the_page_states_the_rule() -> None:
    page = PICTURE.with_name("architecture.md").read_text(encoding="utf-8")
    stated = dict(
        re.findall(r"^\| (\w+) \| ((?:common|no other|everything)[^|]*?) \|$", page, flags=re.MULTILINE)
    )
    named = {
        name: ", ".join(other for other in MAY_IMPORT if other in allowed)
        for name, allowed in MAY_IMPORT.items()
        if name not in ("common", "reproduction", "cli")
    }
    whole = {
        "common": "no other room",
        "reproduction": "everything but cli and compat",
        "cli": "everything",
    }
    assert stated == named | whole


def test_the_page_names_what_exists() -> None:
    page = PICTURE.with_name("architecture.md").read_text(encoding="utf-8")
    files = re.findall(r"`(\w+(?:/\w+)+(?:\.py)?)`", page)
    assert len(files) > 10
    project = PICTURE.parents[1]
    assert [name for name in files if not (ROOT / name).exists() and not (project / name).exists()] == []
