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
# a small run of every command, {out} is a new folder -> the extra that it needs
COMMANDS = {
    "evaluate A=maps mask --out {out} --jobs 1": None,
    "evaluate A=memory://x/maps mask --out {out}": "cluster",
    "evaluate A=maps mask --out {out} --cluster tcp://x:1": "cluster",
    "table results": None,
    "check maps mask": None,
    "metrics": None,
    "frames mask --out {out}": None,
    "stats mask": None,
    "stats mask --plot {out}/x.png": "report",
    "demo --out {out}": "torch",
    "demo --quick --out {out}": None,
    "errors results": None,
    "compare results/D/A results/D/B --resamples 9": None,
    "datasets .": None,
    "networks": None,
    "convert mask/a.png {out}/x.safetensors": "torch",
    "export nowhere/at/all {out}/x.onnx": "torch",
    "train tiny --data nowhere --out {out}": "torch",
    "ablate tiny --data nowhere --out {out} --test nowhere": "torch",
    "calibrate nowhere --out {out}": "torch",
    "predict nowhere/at/all mask {out}": "torch",
    "plot results --out {out}": "report",
    "report results --out {out}/report.html": "report",
    "paper results --out {out}": "report",
    "reproduce --scale tiny --out {out}": "torch",
    "bench --quick": "torch",
}
CODES = {
    "import sisod.losses": "torch",
    "from sisod import networks; networks.create('tiny')": "torch",
    "from sisod.networks import InputSpec": "torch",
    "import sisod.training.train": "torch",
    "import sisod; sisod.Evaluation.load('results/D/A').plot()": "report",
    "import sisod.report, pathlib; sisod.report.write_report([], pathlib.Path('x.html'))": "report",
    "import sisod; sisod.evaluate('memory://x', 'memory://y')": "cluster",
    "import sisod; sisod.evaluate('maps', 'mask', cluster='tcp://x:1')": "cluster",
}
NO_NUMBERS = "note: counting parameters needs PyTorch; install it with: pip install 'sisod[torch]'\n"


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


def run_without(modules: list[str], work: Path, *things: list[str]) -> dict[str, Any]:
    program = [sys.executable, "-W", "ignore", run_without_extras.__file__, str(work)]
    done = subprocess.run(  # noqa: S603
        [*program, *map(json.dumps, things), *modules],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_every_command_without_any_extra(work: Path) -> None:
    found = run_without(MODULES, work, [*COMMANDS], [*CODES])
    assert {command.split()[0] for command in COMMANDS} == set(found["names"])
    for command, extra in COMMANDS.items():
        code, stdout, stderr, raised = found[command]
        assert not raised, (command, raised)
        assert "Traceback" not in stderr
        if extra is None:
            assert code == 0, (command, stderr)
            continue
        assert code == 1, (command, stdout, stderr)
        assert stderr.count("\n") == 1
        assert stderr.startswith("error: ")
        assert stderr.rstrip().endswith(f"; install it with: pip install 'sisod[{extra}]'"), stderr
    _, stdout, stderr, _ = found["networks"]
    assert stderr == NO_NUMBERS
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in stdout.splitlines()]
    assert [row[0] for row in rows if len(row) == 3] == list(networks.names())
    assert ["icon", "ICON-R, TPAMI 2022", "MIT"] in rows
    assert "384" not in stdout
    assert found["bench --quick"][2].startswith("error: sisod")
    for code, extra in CODES.items():
        is_import_error, is_value_error, text = found[code]
        assert is_import_error, (code, text)
        assert is_value_error
        assert text.endswith(f"; install it with: pip install 'sisod[{extra}]'")


@pytest.mark.slow
def test_one_module_missing_stops_what_needs_it(work: Path) -> None:
    names = [name for name in COMMANDS if name.startswith(("train", "ablate", "calibrate"))]
    found = run_without(["lightning"], work, [*names, "stats mask"], [])
    # in an installation without the extra, the first of its modules is named
    first = next(one for one in TRAINING if one == "lightning" or is_missing(one))
    title, extra = EXTRAS[first]
    for name in names:
        code, _, stderr, raised = found[name]
        assert (code, raised) == (1, "")
        assert stderr.endswith(f"needs {title}; install it with: pip install 'sisod[{extra}]'\n")
    assert found["stats mask"][0] == 0


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
