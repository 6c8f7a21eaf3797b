"""Beyond one machine: URLs instead of folders, and a real Dask scheduler with worker processes."""

import contextlib
import functools
import http.server
import os
import signal
import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import pytest
from platforms import posix_signals

import sisod
from sisod.errors import InputError
from sisod.scenes import make_scenes, sees_all_coarsely

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


def assert_same(result: sisod.Evaluation, other: sisod.Evaluation) -> None:
    """Bit for bit."""
    assert result.summary == other.summary
    assert result.defined == other.defined
    assert result.images.equals(other.images)
    assert result.objects.equals(other.objects)
    assert result.curves.equals(other.curves)
    assert result.image_curves.equals(other.image_curves)


def test_memory_url(folder: Path, local: sisod.Evaluation) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(f"{folder}/", "/sisod-test/", recursive=True)
    try:
        result = sisod.evaluate("memory://sisod-test/pred", "memory://sisod-test/gt", jobs=1)
    finally:
        memory.rm("/sisod-test", recursive=True)
    assert_same(result, local)
    with pytest.raises(InputError, match="'memory://nothing' does not exist or is not a folder"):
        sisod.evaluate("memory://nothing", "memory://nothing")


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """A web server on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A scheduler and two worker processes."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as started:
        yield started


def test_cluster_and_web_server(folder: Path, local: sisod.Evaluation, cluster: Any) -> None:
    pytest.importorskip("aiohttp", reason="fsspec reads http with aiohttp, which is not installed")
    with served(folder) as url:
        result = sisod.evaluate(f"{url}/pred", f"{url}/gt", cluster=cluster.scheduler_address)
    assert_same(result, local)


@posix_signals
def test_a_worker_that_dies(folder: Path, local: sisod.Evaluation, cluster: Any, tmp_path: Path) -> None:
    victim = next(iter(cluster.workers.values())).pid
    work = tmp_path / ".out.partial"

    def kill_after_the_first_batch() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list(work.glob("*.rows")):
            time.sleep(0.002)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill_after_the_first_batch)
    killer.start()
    address = cluster.scheduler_address
    result = sisod.evaluate(folder / "pred", folder / "gt", out=tmp_path / "out", cluster=address)
    killer.join()
    assert_same(result, local)
    assert not work.exists()


def test_bad_file_on_the_cluster(folder: Path, cluster: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.png").write_bytes((folder / "gt" / "000.png").read_bytes())
    (tmp_path / "a" / "x.png").write_text("not an image")
    with pytest.raises(InputError, match=r"a/x.png' is not an image that can be read"):
        sisod.evaluate(tmp_path / "a", tmp_path / "b", cluster=cluster.scheduler_address)


def test_nobody_at_the_address(folder: Path) -> None:
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:9'"):
        sisod.evaluate(folder / "pred", folder / "gt", cluster="tcp://127.0.0.1:9")
