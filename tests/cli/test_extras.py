"""Without an extra, the commands that need it name it in one sentence; all others work."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import run_without_extras

import sisod
from sisod import networks
from sisod.common.exceptions import EXTRAS, TRAINING, is_missing

MODULES = [*EXTRAS, "scipy"]
TORCH = (
    *("convert", "export", "train", "ablate", "calibrate", "predict"),
    *("reproduce", "bench", "demo"),
)
# command -> the extra it needs
NEEDS = {
    **dict.fromkeys(TORCH, "torch"),
    "plot": "report",
    "report": "report",
    "paper": "report",
    "stats as a plot": "report",
    "evaluate a URL": "cluster",
    "evaluate on a cluster": "cluster",
}
NO_NUMBERS = "note: counting parameters needs PyTorch; install it with: pip install 'sisod[torch]'\n"
CALLS = {
    "losses": "torch",
    "networks.create": "torch",
    "networks.InputSpec": "torch",
    "training": "torch",
    "evaluation.plot": "report",
    "report.write_report": "report",
    "evaluate a URL": "cluster",
    "evaluate on a cluster": "cluster",
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("extras")
    gt = np.zeros((16, 16), dtype=bool)
    gt[2:8, 3:9] = gt[12, 12] = True
    for folder in ("maps", "mask"):
        (root / folder).mkdir()
        for name in "ab":
            np.save(root / folder / f"{name}.npy", gt)
    for method in "AB":
        sisod.evaluate(root / "maps", root / "mask", out=root / "results/D" / method, jobs=1)
    return root


def run_without(modules: list[str], work: Path, names: list[str]) -> dict[str, Any]:
    program = Path(run_without_extras.__file__)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", str(program), str(work), json.dumps(names), *modules],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_every_command_without_any_extra(work: Path) -> None:
    found = run_without(MODULES, work, [*run_without_extras.ARGS, *run_without_extras.CALLS])
    commands = found["commands"]
    run = {name for name in run_without_extras.ARGS if name in commands}
    assert run == set(commands), "give the new command arguments in run_without_extras.py"
    for name in run_without_extras.ARGS:
        code, stdout, stderr, raised = found[name]
        assert not raised, (name, raised)
        assert "Traceback" not in stderr
        if name not in NEEDS:
            assert code == 0, (name, stderr)
            continue
        assert code == 1, (name, stdout, stderr)
        assert stderr.count("\n") == 1
        assert stderr.startswith("error: ")
        assert stderr.rstrip().endswith(f"; install it with: pip install 'sisod[{NEEDS[name]}]'"), stderr
    _, stdout, stderr, _ = found["networks"]
    assert stderr == NO_NUMBERS
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in stdout.splitlines()]
    assert [row[0] for row in rows if len(row) == 3] == list(networks.names())
    assert ["icon", "ICON-R, TPAMI 2022", "MIT"] in rows
    assert "384" not in stdout
    assert found["bench"][2].startswith("error: sisod")
    for name, extra in CALLS.items():
        is_import_error, is_value_error, text = found["calls"][name]
        assert is_import_error, (name, text)
        assert is_value_error
        assert text.endswith(f"; install it with: pip install 'sisod[{extra}]'")


@pytest.mark.slow
def test_one_module_missing_stops_what_needs_it(work: Path) -> None:
    names = ["train", "ablate", "calibrate"]
    found = run_without(["lightning"], work, [*names, "stats"])
    # in an installation without the extra, the first of its modules is named
    first = next(one for one in TRAINING if one == "lightning" or is_missing(one))
    title, extra = EXTRAS[first]
    for name in names:
        code, _, stderr, raised = found[name]
        assert (code, raised) == (1, "")
        assert stderr.endswith(f"needs {title}; install it with: pip install 'sisod[{extra}]'\n")
    assert found["stats"][0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise ImportError('libcudart.so.12: cannot open')", "libcudart.so.12: cannot open"),
        ("import not_there_at_all", "No module named 'not_there_at_all'"),
    ],
)
def test_a_broken_installation_is_not_called_a_missing_extra(
    code: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(code)
    for module in ("lightning", "torchmetrics", "safetensors", "huggingface_hub"):
        (tmp_path / module).mkdir()
        (tmp_path / module / "__init__.py").write_text("")
    path = "import sys; sys.path.insert(0, sys.argv.pop(1)); from sisod.cli import app; app()"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", path, str(tmp_path), "networks"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert expected in done.stderr
    assert "install it with" not in done.stderr


def test_a_module_of_the_users_own_is_not_an_extra() -> None:
    from sisod.cli.shared import exit_on_user_error

    with pytest.raises(ModuleNotFoundError, match="no_such_module_of_mine"), exit_on_user_error():
        __import__("no_such_module_of_mine")
    with pytest.raises(ImportError, match="cannot import name"), exit_on_user_error():
        from sisod import nothing_of_this_name  # type: ignore[attr-defined]  # noqa: F401
