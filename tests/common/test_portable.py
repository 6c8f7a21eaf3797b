"""Rules for other systems than Linux: encodings, line ends, calls."""

import ast
from collections.abc import Iterator
from functools import cache
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest

import sisod

PACKAGE = Path(sisod.__file__).parent
TRANSLATED = {"write_text", "open", "fdopen"}  # \n becomes \r\n on Windows unless told otherwise


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package, by its path."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Every call in the package: where, the function's last name, and the call."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                yield f"{path}:{node.lineno}", name, node


def mode(call: ast.Call) -> str:
    """How a file is opened: the first short text among the arguments that can be a mode."""
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [node.value for node in given if isinstance(node, ast.Constant)]
    return next((text for text in texts if isinstance(text, str) and set(text) <= set("rwxab+t")), "r")


# ------------------------------------------------------------------------------------ rules


def test_text_files_name_their_encoding_and_line_ends() -> None:
    faults = []
    for where, name, call in calls():
        given = {word.arg for word in call.keywords}
        if name in {"read_text", "write_text"}:
            named = "encoding" in given or len(call.args) > (name == "write_text")
            faults += [] if named else [f"{where}: {name} without encoding"]
        is_descriptor = ast.unparse(call.func) == "os.open"
        if name in {"open", "fdopen"} and "b" not in mode(call) and not is_descriptor:
            faults += [] if "encoding" in given else [f"{where}: {name} without encoding"]
        writes = name == "write_text" or (name in TRANSLATED and set(mode(call)) & set("wxa"))
        if writes and "b" not in mode(call) and "newline" not in given:
            faults.append(f"{where}: {name} without newline")
        if (
            name in {"run", "Popen"}
            and given & {"text", "universal_newlines"}
            and "encoding" not in given
        ):
            faults.append(f"{where}: output decoded by the locale")
    others = ("reproduction/run.py", "data/images.py")  # an empty file; a member of an archive
    assert [fault for fault in faults if not fault.startswith(others)] == []


@pytest.mark.needs("lightning")
def test_loaders_can_be_sent_to_processes_that_are_not_forked(tmp_path: Path) -> None:
    """Windows, macOS and, from Python 3.14 on, Linux start workers afresh and send them everything."""
    from sisod.data.datasets import open_dataset
    from sisod.data.textured_scenes import write_scenes
    from sisod.training.data import TrainingSet, ValidationSet
    from sisod.training.loaders import make_loaders
    from sisod.training.recipe import find_recipe

    samples = open_dataset(write_scenes(tmp_path, 8, shape=(32, 32))).samples
    recipe = find_recipe("tiny")
    training, validation = TrainingSet(samples, recipe.data, seed=0), ValidationSet(samples, 32)
    for loader in make_loaders(recipe.train, training, validation, workers=1):
        assert loader is not None
        for part in (loader.dataset, loader.collate_fn, loader.worker_init_fn):
            assert len(ForkingPickler.dumps(part)) > 0
