"""The import graph of the package, read from its syntax trees; imports inside functions count."""

import ast
from collections.abc import Iterator
from pathlib import Path

Graph = dict[str, set[str]]


def modules(root: Path) -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    return {_dotted(path, root): path for path in sorted(root.rglob("*.py"))}


def _dotted(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(("sisod", *(part for part in parts if part != "__init__")))


def imports(path: Path) -> Iterator[str]:
    """Yield what a file imports, except for type checking.

    `from a import b` yields `a.b`, whether b is a module or a name in a.
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
            if node.level:
                raise ValueError(
                    f"{path}: relative import; write the absolute one, which shows the direction"
                )
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_graph(root: Path) -> Graph:
    """Return the modules of the package that each module imports."""
    known = modules(root)
    edges: Graph = {}
    for name, path in known.items():
        ours = {target for target in imports(path) if target.split(".")[0] == "sisod"}
        edges[name] = {target if target in known else target.rpartition(".")[0] for target in ours}
    return edges


def room(module: str) -> str:
    """Return the room of a module; an empty string for the root package."""
    return module.split(".")[1] if "." in module else ""


def room_graph(root: Path, *, without: frozenset[tuple[str, str]] = frozenset()) -> Graph:
    """Return the rooms that each room imports; `without` leaves out single imports between modules."""
    edges: Graph = {}
    for module, targets in module_graph(root).items():
        if "." in module and module != "sisod.__main__":
            rooms = {room(target) for target in targets if (module, target) not in without}
            edges.setdefault(room(module), set()).update(rooms - {room(module)})
    return edges


def reachable(start: str, edges: Graph) -> set[str]:
    """Return the nodes that can be reached over any number of edges."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in edges.get(waiting.pop(), set()):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


def reduced(edges: Graph) -> Graph:
    """Return the transitive reduction of an acyclic graph: edges that no longer path replaces."""
    return {
        node: {
            target
            for target in targets
            if not any(target in reachable(other, edges) for other in targets - {target})
        }
        for node, targets in edges.items()
    }
