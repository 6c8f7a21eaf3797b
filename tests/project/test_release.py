"""Releases: versions that agree, links, the content of the archives, and the workflows."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT

import sisod

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = ROOT / ".github" / "workflows"
in_repository = pytest.mark.skipif(
    not WORKFLOWS.is_dir(), reason="an unpacked source archive has no workflows"
)


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def named_pythons() -> list[str]:
    """Python versions that the classifiers name, like 3.11."""
    prefix = "Programming Language :: Python :: "
    named = [line.removeprefix(prefix) for line in PROJECT["classifiers"] if line.startswith(prefix)]
    return [version for version in named if "." in version]


def test_versions_agree() -> None:
    headings = re.findall(r"^## (\d\S*) \((.*)\)$", text_of("CHANGELOG.md"), flags=re.MULTILINE)
    assert headings[0][0] == sisod.__version__
    assert all(re.fullmatch(r"20\d\d-[01]\d-[0-3]\d", date) for _, date in headings)
    assert PROJECT["requires-python"] == f">={named_pythons()[0]}"
    assert PROJECT["version"] == sisod.__version__
    assert re.findall(r"^version: (.*)$", text_of("CITATION.cff"), flags=re.MULTILINE) == [
        sisod.__version__
    ]


# ------------------------------------------------------------------------------------ documents


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md"])
def test_document_names_what_exists(name: str) -> None:
    if not (ROOT / "src").is_dir():
        pytest.skip("the tests of a wheel have no sources")
    text = text_of(name)
    named = re.findall(r"`((?:src|tests|docs|benchmarks|tools)/[\w./-]*)(?:::(\w+))?`", text)
    for path, test in named:
        assert (ROOT / path.replace("NAME", "edn")).exists(), path
        assert not test or f"def {test}(" in text_of(path), f"{path}::{test}"
    called = re.findall(r"`make ([a-z ]+)`", text)
    assert {target for line in called for target in line.split()} <= targets()


# ------------------------------------------------------------------------------------ workflows


def targets() -> set[str]:
    lines = re.findall(r"^([a-z ]+):", text_of("Makefile"), flags=re.MULTILINE)
    return {target for line in lines for target in line.split()}


def workflows() -> dict[str, dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="PyYAML, which Dask brings, is not installed")
    return {
        path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in WORKFLOWS.glob("*.yml")
    }


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for file, content in workflows().items():
        for name, job in content["jobs"].items():
            yield f"{file}: {name}", job


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for where, job in jobs():
        for step in job.get("steps", ()):
            yield where, step


@in_repository
def test_workflows_call_targets_that_exist() -> None:
    called = {
        target: where
        for where, step in steps()
        for target in re.findall(r"\bmake +([a-z]+)", step.get("run", ""))
    }
    assert {"test", "docs", "dist", "newest", "lowest"} <= called.keys()
    assert {target: where for target, where in called.items() if target not in targets()} == {}


@in_repository
def test_workflows_run_on_the_named_pythons() -> None:
    used = set()
    for where, job in jobs():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job.get("steps", ()):
            version = step.get("with", {}).get("python-version")
            if version == "${{ matrix.python }}":
                used |= set(matrix["python"])
            elif version is not None:
                used.add(version)
        assert all(isinstance(version, str) for version in used), f"{where}: 3.10 in YAML is 3.1"
    assert sorted(used) == sorted(named_pythons())


@in_repository
def test_workflows_may_do_little() -> None:
    for file, content in workflows().items():
        assert content["permissions"] == {"contents": "read"}, file
        assert content["concurrency"], file
    more = {where: job["permissions"] for where, job in jobs() if "permissions" in job}
    assert more == {
        "docs.yml: publish": {"pages": "write", "id-token": "write"},
        "publish.yml: publish": {"id-token": "write"},
    }


@in_repository
def test_actions_are_pinned_and_jobs_end() -> None:
    for where, job in jobs():
        if "uses" in job:  # another workflow of ours
            continue
        assert job["timeout-minutes"] <= 120, where
        for step in job["steps"]:
            used = step.get("uses")
            assert used is None or re.search(r"@(release/)?v\d+$", used), f"{where}: {used}"


# ------------------------------------------------------------------------------------ archives


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """The names in the source archive, and in the wheel built from it once unpacked."""
    pytest.importorskip("setuptools", reason="the build backend is not installed")
    if not (ROOT / "src").is_dir():
        pytest.skip("the tests of a wheel have no sources")
    folder = tmp_path_factory.mktemp("archives")
    [source] = built(ROOT, "sdist", folder)
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
        inside = [member.name.partition("/")[2] for member in archive if member.isfile()]
    unpacked = folder / f"sisod-{sisod.__version__}"
    # without a compiler: the installation succeeds, and the wheel has no kernel
    environment = os.environ | {"CC": "no-such-compiler", "CXX": "no-such-compiler"}
    [wheel] = built(unpacked, "wheel", folder, environment)
    with zipfile.ZipFile(wheel) as packed:
        return inside, packed.namelist()


def built(
    project: Path, kind: str, folder: Path, environment: dict[str, str] | None = None
) -> list[Path]:
    before = set(folder.iterdir())
    code = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
    command = [sys.executable, "-c", code, str(folder)]
    subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)  # noqa: S603
    return [path for path in folder.iterdir() if path.is_file() and path not in before]


def files_below(name: str) -> set[str]:
    left_out = {"__pycache__", ".hypothesis", ".pytest_cache", "sisod.egg-info"}
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / name).rglob("*")
        if path.is_file() and not left_out & set(path.parts) and path.suffix not in (".so", ".pyd")
    }


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_package(archives: tuple[list[str], list[str]]) -> None:
    packed = {f"src/{name}" for name in archives[1] if name.startswith("sisod/")}
    assert packed == files_below("src/sisod")
    kinds = {Path(name).suffix for name in packed}
    assert kinds == {".py", ".pyi", ".typed", ".toml", ".html", ".css", ".js"}


@pytest.mark.slow
def test_source_archive_holds_what_its_tests_read(archives: tuple[list[str], list[str]]) -> None:
    inside = set(archives[0])
    for folder in ("src", "tests", "docs", "examples", "benchmarks", "tools"):
        assert files_below(folder) <= inside
    assert {path for path in inside if "/" not in path} == {
        *("pyproject.toml", "README.md", "LICENSE", "PKG-INFO", "setup.py", "setup.cfg", "MANIFEST.in"),
        *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md"),
        *("Makefile", "constraints.txt"),
    }
    assert not [path for path in inside if path.startswith((".ci", ".github"))]
