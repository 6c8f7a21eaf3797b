"""Test the built wheel in an empty environment, from a folder without `src`.

    python tools/test_wheel.py newest dist tests
    python tools/test_wheel.py lowest dist -m "not slow" tests/scoring tests/data

What follows the folder of the wheel is for pytest.

Only the standard library is used: it runs before anything is installed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEST_TOOLS = ("pytest", "pytest-xdist", "hypothesis", "scipy")


def main() -> None:
    """Make the environment, copy the tests, run those that the arguments select."""
    versions, dist, *selected = sys.argv[1:]
    (wheel,) = Path(dist).resolve().glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="sisod-wheel-") as name:
        outside = Path(name)
        python = make_environment(outside / "venv")
        pinned = lower_bounds() if versions == "lowest" else []
        pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
        run(*pip, "install", wheel, *pinned, *TEST_TOOLS)
        run(*pip, "freeze")
        copy_tests(outside / "project")
        options = ("-n", "auto", "--dist", "loadfile", "--allow-missing-packages")
        run(python, "-m", "pytest", *options, *selected, cwd=outside / "project")


def make_environment(folder: Path) -> Path:
    """Make an empty virtual environment; return its Python."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def lower_bounds() -> list[str]:
    """Return the core's dependencies, each at the lowest version that pyproject.toml admits."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.sub(">=", "==", dependency) for dependency in project["dependencies"]]


def copy_tests(folder: Path) -> None:
    """Copy what the tests read: neither the sources, nor hidden folders, nor build output."""
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    for name in ("tests", "examples", "benchmarks", "docs", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Run a command; exit with its code if it fails."""
    code = subprocess.run([str(part) for part in command], cwd=cwd, check=False).returncode  # noqa: S603
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    main()
