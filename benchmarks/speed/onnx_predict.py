"""Whether `sisod predict onnx:FILE` keeps the session busy: its loop against the bare session.

`python -m benchmarks.speed.onnx_predict` prints the table and writes `onnx_predict.json` and
`onnx_predict.md` to `benchmarks/results`; with `--quick` it measures little and writes nothing. The file
is EDN with random weights, exported by sisod. The bare session gets the same images in the same batches,
read and prepared before; the loop reads JPEG files of 400 x 300 pixels and writes PNG maps.
Both take turns; wall-clock and processor time.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.timing import TABLE_HEAD, Row, machine, markdown, progress, write_results
from sisod import networks
from sisod.data.scenes import make_scenes
from sisod.networks.export import export_onnx
from sisod.networks.onnx_model import OnnxModel, predict_onnx

_TARGET = 1.1
_BATCH = 4
_KINDS = ("wall-clock time", "processor time")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and, unless quick, write."""
    parser = argparse.ArgumentParser(description="Measure the loop of predict with an ONNX file.")
    parser.add_argument("--quick", action="store_true", help="a small network, few images, no files")
    quick = parser.parse_args(arguments).quick
    name, size, count = ("tiny", 32, 4) if quick else ("edn", 384, 40)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        progress(f"  exporting {name}")
        export_onnx(networks.create(name), folder / "model.onnx", size=(size, size))
        images = _write_images(folder / "images", count)
        seconds = _measure(OnnxModel(folder / "model.onnx"), images, folder, rounds=1 if quick else 5)
    content = {
        "machine": machine(("sisod", "onnxruntime", "numpy")),
        "network": name,
        "size": size,
        "images": count,
        "seconds": seconds,
    }
    print(page(content), end="")
    if not quick:
        write_results("onnx_predict", content, page(content))


def page(content: Mapping[str, Any]) -> str:
    """What onnx_predict.md says, from what onnx_predict.json holds."""
    size, count, seconds = content["size"], content["images"], content["seconds"]
    rows = []
    for kind in _KINDS:
        loop, bare = (seconds[what][kind] / count for what in ("loop", "bare"))
        what = f"{content['network']} at {size} x {size}, {kind} of an image; bare session"
        rows.append(Row(what, (loop,), bare, loop / bare, _TARGET, at_least=False))
    table = markdown(TABLE_HEAD, [row.cells() for row in rows])
    return f"Made by `python -m benchmarks.speed.onnx_predict`.\n\n{table}\n"


def _write_images(folder: Path, count: int) -> Path:
    folder.mkdir()
    for scene in make_scenes(count, seed=1, shape=(300, 400)):
        cv2.imwrite(str(folder / f"{scene.name}.jpg"), scene.image)
    return folder


def _measure(
    model: OnnxModel, images: Path, folder: Path, *, rounds: int
) -> dict[str, dict[str, float]]:
    """Return the median seconds of all images, by contender and kind of time."""
    prepared = [model.prepare(np.asarray(cv2.imread(str(path)))) for path in sorted(images.iterdir())]
    batches = [np.stack(prepared[begin : begin + _BATCH]) for begin in range(0, len(prepared), _BATCH)]

    def bare() -> None:
        for batch in batches:
            model.run(batch)

    def loop() -> None:
        predict_onnx(model, images, folder / "maps", batch=_BATCH, overwrite=True)

    contenders: dict[str, Callable[[], None]] = {"loop": loop, "bare": bare}
    times: dict[str, list[tuple[float, float]]] = {what: [] for what in contenders}
    for number in range(rounds + 1):  # the first warms up
        for what in (*contenders,) if number % 2 else (*reversed(contenders),):
            before = time.perf_counter(), time.process_time()
            contenders[what]()
            after = time.perf_counter(), time.process_time()
            if number:
                times[what].append((after[0] - before[0], after[1] - before[1]))
        progress(f"  round {number} of {rounds}")
    return {
        what: dict(zip(_KINDS, map(statistics.median, zip(*rows, strict=True)), strict=True))
        for what, rows in times.items()
    }


if __name__ == "__main__":
    main()
