"""Evaluating URLs instead of folders, and on a real Dask scheduler with worker processes."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import pytest
from helpers.command_line import error_message, run
from helpers.container_files import write_parquet, write_tar
from helpers.dask_clusters import in_memory, killing_a_worker, local_cluster
from helpers.folder_contents import content as files_of
from helpers.platforms import posix_signals
from helpers.results import assert_same_result

import sisod
from sisod.common.exceptions import InputError, UsageError
from sisod.common.output import write_atomically
from sisod.common.run_folder import partial_folder
from sisod.data.scenes import make_scenes, sees_all_coarsely
from sisod.data.storage import read_bytes
from sisod.evaluation import driver, executors

fsspec = pytest.importorskip("fsspec", reason="extra cluster is not installed")
distributed = pytest.importorskip("distributed", reason="extra cluster is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """160 small pairs: five batches."""
    root = tmp_path_factory.mktemp("data")
    (root / "pred" / "deep").mkdir(parents=True)
    (root / "gt" / "deep").mkdir(parents=True)
    scenes = make_scenes(20, seed=2, shape=(48, 64))
    for index in range(160):
        scene = scenes[index % 20]
        name = f"{'deep/' if index % 3 else ''}{index:03d}.png"
        cv2.imwrite(str(root / "pred" / name), sees_all_coarsely(scene))
        cv2.imwrite(str(root / "gt" / name), scene.mask)
    return root


@pytest.fixture(scope="module")
def local(folder: Path) -> sisod.Evaluation:
    return sisod.evaluate(folder / "pred", folder / "gt", jobs=1)


def test_memory_url(folder: Path, local: sisod.Evaluation) -> None:
    with in_memory(folder, "sisod-test") as url:
        result = sisod.evaluate(f"{url}/pred", f"{url}/gt", jobs=1)
    assert_same_result(result, local)
    with pytest.raises(InputError, match="'memory://nothing' does not exist or is not a folder"):
        sisod.evaluate("memory://nothing", "memory://nothing")
    with pytest.raises(InputError, match=r"^'memory://nothing/a.png' cannot be read: it does not"):
        read_bytes("memory://nothing", "a.png")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A scheduler and two worker processes."""
    with local_cluster(2) as started:
        yield started


@posix_signals
@pytest.mark.slow
@pytest.mark.parametrize(("pred", "gt"), [("pred", "gt"), ("pred.tar", "gt.parquet")])
def test_a_worker_that_dies(
    folder: Path, local: sisod.Evaluation, cluster: Any, tmp_path: Path, pred: str, gt: str
) -> None:
    write_tar(folder / "pred.tar", files_of(folder / "pred"))
    write_parquet(folder / "gt.parquet", files_of(folder / "gt"))
    address = cluster.scheduler_address
    with killing_a_worker(cluster, tmp_path / "out"):
        result = sisod.evaluate(folder / pred, folder / gt, out=tmp_path / "out", cluster=address)
    assert_same_result(result, local)


@pytest.mark.slow
def test_relative_paths(
    folder: Path, local: sisod.Evaluation, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers are in a folder of their own, where other files have the same names."""
    for name in ("pred", "gt"):
        shutil.copytree(folder / "gt", tmp_path / name)
    archive = shutil.make_archive(str(tmp_path / "gt"), "zip", folder / "gt")
    monkeypatch.chdir(folder)
    address = cluster.scheduler_address
    with distributed.Client(address) as client:
        before = client.run(os.getcwd)
        client.run(os.chdir, str(tmp_path))
        try:
            for pred, gt in (("pred", "gt"), ("file://pred", f"zip://::{os.path.relpath(archive)}")):
                assert_same_result(sisod.evaluate(pred, gt, cluster=address), local)
        finally:
            for worker, place in before.items():
                client.run(os.chdir, place, workers=[worker])


def test_what_a_worker_does_not_see(folder: Path, cluster: Any) -> None:
    fsspec.filesystem("memory").put(f"{folder}/gt/", "/sisod-seen/", recursive=True)
    with pytest.raises(
        InputError,
        match=r"^'memory://sisod-seen.*' cannot be read: it does not exist \(on the worker '.+';",
    ):
        sisod.evaluate("memory://sisod-seen", "memory://sisod-seen", cluster=cluster.scheduler_address)


@pytest.mark.slow
def test_ray(folder: Path, local: sisod.Evaluation, tmp_path: Path) -> None:
    """In a process of its own: Ray leaves threads and sockets behind."""
    pytest.importorskip("ray", reason="extra ray is not installed")
    out = tmp_path / "out"
    code = f"import sisod; sisod.evaluate({str(folder / 'pred')!r}, {str(folder / 'gt')!r}, "
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", f"{code}out={str(out)!r}, cluster='ray')"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert_same_result(sisod.Evaluation.load(out), local)


# addresses where there is no cluster


def refusal(folder: Path, address: str, **options: Any) -> str:
    with pytest.raises(InputError) as info:
        sisod.evaluate(folder / "pred", folder / "gt", cluster=address, **options)
    assert "\n" not in str(info.value)
    assert isinstance(info.value, UsageError) == str(info.value).startswith("--cluster")
    return str(info.value)


@pytest.mark.parametrize("address", [" ", "nonsense", "http://localhost:8000"])
def test_addresses_that_are_none(address: str, folder: Path, tmp_path: Path) -> None:
    said = refusal(folder, address, out=tmp_path / "out")
    assert said.startswith("--cluster ")
    assert address in said
    assert list(tmp_path.iterdir()) == []  # nothing was begun that would have to be resumed


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    assert executors._PATIENCE == 10
    monkeypatch.setattr(executors, "_PATIENCE", 0.5)


@pytest.mark.usefixtures("impatient")
def test_nobody_or_somebody_else_at_the_address(folder: Path, cluster: Any) -> None:
    worker = next(iter(cluster.workers.values())).worker_address
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ports = (9, silent.getsockname()[1])
        for address in (worker, *(f"tcp://127.0.0.1:{port}" for port in ports)):
            began = time.monotonic()
            assert refusal(folder, address).startswith(
                f"no Dask scheduler answers at {address!r} in 0.5 seconds; start one with 'dask "
            )
            assert time.monotonic() - began < 5


@pytest.mark.usefixtures("impatient")
def test_a_scheduler_without_workers(folder: Path) -> None:
    with local_cluster(0) as idle:
        address = idle.scheduler_address
        assert refusal(folder, address) == (
            f"the Dask scheduler at {address!r} has no workers; start some with 'dask worker {address}'"
        )


ALONE = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    print(LocalCluster(**options, protocol="tcp://").scheduler_address, flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_a_scheduler_that_is_killed(
    folder: Path, local: sisod.Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = subprocess.Popen([sys.executable, "-c", ALONE], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert started.stdout is not None
    address = started.stdout.readline().strip()

    def write_and_kill(path: Path, data: bytes) -> None:
        write_atomically(path, data)
        if path.suffix == ".rows":
            started.kill()
            started.wait()

    with monkeypatch.context() as patch:
        patch.setattr(driver, "write_atomically", write_and_kill)
        said = refusal(folder, address, out=tmp_path / "out")
    started.stdout.close()
    # the tasks are cancelled, or the scheduler is found missing, whatever comes first
    assert said.endswith("does not answer any more; what was finished is kept, use --resume")
    assert list(partial_folder(tmp_path / "out").glob(".parts/*.rows"))
    out = tmp_path / "out"
    assert_same_result(
        sisod.evaluate(folder / "pred", folder / "gt", out=out, resume=True, jobs=1), local
    )


@pytest.mark.slow
def test_workers_that_are_lost(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_NO_WORKERS", 0.5)
    monkeypatch.setattr(executors, "_CHECK_AFTER", 0.2)
    with local_cluster(1) as small:
        address = small.scheduler_address

        def write_and_stop(path: Path, data: bytes) -> None:
            write_atomically(path, data)
            if path.suffix == ".rows":
                small.scale(0)
                while small.scheduler.workers:
                    time.sleep(0.01)

        monkeypatch.setattr(driver, "write_atomically", write_and_stop)
        assert refusal(folder, address, out=tmp_path / "out") == (
            f"the Dask scheduler at {address!r} has lost all its workers, or does not answer any more; "
            "what was finished is kept, use --resume"
        )


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("foo://maps", "Protocol not known: foo"),
        ("zip://x::no.zip", "[Errno 2] No such file or directory: "),
        ("zip://x::pred/000.png", "File is not a zip file"),
        ("ftp://127.0.0.1:9/x", ""),
        ("http://127.0.0.1:9/x", "Cannot connect to host "),
    ],
)
def test_urls_that_cannot_be_read(
    url: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if url.startswith("http"):
        pytest.importorskip("aiohttp", reason="fsspec reads http with aiohttp, which is not installed")
    monkeypatch.chdir(folder)
    for pred, gt in ((url, "gt"), ("pred", url)):
        result = run("evaluate", f"A={pred}", gt, "--dataset", "D", "--out", "out")
        assert error_message(result).startswith(f"'{url}' cannot be read: {text}")
    assert not (folder / "out").exists()
