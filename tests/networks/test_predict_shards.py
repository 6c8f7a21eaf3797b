"""`sisod predict` writes Parquet and tar shards: the same maps, resumable, and read back by evaluate."""

import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl
import pytest
from helpers.container_files import write_parquet, write_tar
from helpers.folder_contents import content as files_of
from helpers.platforms import posix_signals

torch = pytest.importorskip("torch", reason="extra torch is not installed")

from helpers.command_line import error_message, run  # noqa: E402

import sisod  # noqa: E402
from sisod import networks  # noqa: E402
from sisod.data.images import decode  # noqa: E402
from sisod.data.pairs import files_by_name  # noqa: E402
from sisod.data.storage import list_files, read_bytes  # noqa: E402
from sisod.networks import map_folder  # noqa: E402
from sisod.networks.predict import predict_folder  # noqa: E402

COUNT = 11


@pytest.fixture(scope="module")
def network() -> networks.Network:
    torch.manual_seed(0)
    return networks.create("tiny").eval()


@pytest.fixture(autouse=True)
def _images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven images, some in a folder; shards of four maps."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(map_folder, "SHARD", 4)
    rng = np.random.default_rng(0)
    Path("images/night").mkdir(parents=True)
    Path("gt/night").mkdir(parents=True)
    for index in range(COUNT):
        name = f"{'night/' if index % 3 == 0 else ''}im{index:02d}"
        cv2.imwrite(f"images/{name}.png", rng.integers(0, 256, (20, 24, 3), dtype=np.uint8))
        mask = np.zeros((20, 24), np.uint8)
        mask[4 : 8 + index % 5, 3:15] = 255
        cv2.imwrite(f"gt/{name}.png", mask)


def predict(network: networks.Network, out: str, images: str = "images", **options: Any) -> Any:
    return predict_folder(network, images, out, size=32, batch=3, device="cpu", **options)


@pytest.mark.parametrize("write", [write_tar, write_parquet])
def test_the_same_maps_in_shards(network: networks.Network, write: Any) -> None:
    """Also of images in a container."""
    container = write.__name__.removeprefix("write_")
    write(f"images.{container}", files_of("images"))
    predict(network, "single")
    done = predict(network, "packed", images=f"images.{container}", container=container)
    assert (done.n_new, done.n_kept) == (COUNT, 0)
    shards = [f"maps-0000{index}.{container}" for index in range(3)]
    assert sorted(path.name for path in Path("packed").rglob("*")) == [*shards, "run.json"]
    maps = {
        f"{name}.png": read_bytes("packed", file.path) for name, file in files_by_name("packed").items()
    }
    single = files_of("single")
    del single["run.json"]
    assert maps == single
    results = [sisod.evaluate(root, "gt", jobs=1, metrics=["mae"]) for root in ("single", "packed")]
    assert results[0].images.equals(results[1].images)
    again = predict(network, "packed", images=f"images.{container}", container=container, resume=True)
    assert (again.n_new, again.n_kept) == (0, COUNT)


def test_layouts_of_others(network: networks.Network) -> None:
    """Parquet as Hugging Face's, tar as WebDataset's; read without sisod."""
    predict(network, "p", container="parquet")
    predict(network, "t", container="tar")
    table = pl.read_parquet("p/maps-00000.parquet")
    assert table.schema == {"prediction": pl.Struct({"bytes": pl.Binary, "path": pl.String})}
    first = table["prediction"][0]
    with tarfile.open("t/maps-00000.tar") as archive:
        members = archive.getmembers()
        content = archive.extractfile(members[0])
        assert content is not None
        assert (members[0].name, content.read()) == (first["path"], first["bytes"])
    assert [member.name for member in members] == table["prediction"].struct.field("path").to_list()
    assert decode(first["bytes"], "map.png").shape == (20, 24)


# `sisod` with shards of four maps, killed at the second shard: with half of it in a temporary file, or
# with all of it in place and its maps still beside it
KILLED = """
import os, signal, sys
from sisod.cli import app
from sisod.common import output
from sisod.networks import map_folder

map_folder.SHARD = 4
write_atomically = map_folder.write_atomically
moment = sys.argv.pop(1)

def kill(path, data):
    is_second = path.name.startswith("maps-00001")
    if is_second and moment == "writing":
        output._temporary(path).write_bytes(data[: len(data) // 2])
    else:
        write_atomically(path, data)
    if is_second:
        os.kill(os.getpid(), signal.SIGKILL)

map_folder.write_atomically = kill
app()
"""


@posix_signals
@pytest.mark.slow
@pytest.mark.parametrize(
    ("container", "moment", "n_shards"), [("parquet", "writing", 1), ("tar", "written", 2)]
)
def test_killed_and_resumed(
    network: networks.Network, container: Any, moment: str, n_shards: int
) -> None:
    network.save_pretrained("model")
    command = ["predict", "model", "images", "out", "--container", container]
    command += ["--size", "32", "--batch", "3", "--device", "cpu"]
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-c", KILLED, moment, *command], capture_output=True, timeout=120, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    shards = sorted(Path("out").glob("maps-*"))
    assert [path.name for path in shards] == [f"maps-0000{i}.{container}" for i in range(n_shards)]
    for shard in shards:
        maps = [decode(read_bytes(shard, file.path), "map.png") for file in list_files(shard)]
        assert [one.shape for one in maps] == [(20, 24)] * 4
    assert "unfinished; use --resume to go on with it" in error_message(run(*command))
    result = run(*command, "--resume")
    assert result.exit_code == 0, result.stderr
    predict(network, "whole", container=container)
    resumed, whole = files_of("out"), files_of("whole")
    assert resumed.pop("run.json")
    assert whole.pop("run.json")
    assert resumed == whole  # and no temporary file is left
