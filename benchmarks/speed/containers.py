"""Speed of `sisod evaluate` on Parquet and tar, against the same pairs in folders.

Run as `python -m benchmarks.speed.containers`; writes containers.json and containers.md to
`benchmarks/results`. `--quick` measures less and writes nothing. Processor time is compared, that of all
processes together: it depends less on what else the machine does than the time on the clock. Only MAE is
scored, so that reading has a large share. COCO run lengths, read into label maps, are compared with
pycocotools, which decodes them to masks.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from pycocotools import mask as coco_mask

from benchmarks.speed.folders import write_pairs
from benchmarks.timing import TABLE_HEAD, Row, machine, markdown, progress, write_results
from sisod.data.containers.coco import read_instances
from sisod.data.containers.parquet import parquet_file
from sisod.data.containers.tar import tar_file
from sisod.data.pairs import pair_files
from sisod.data.storage import read_bytes

_SHARD = 500  # pairs in a shard, as `sisod predict --container` packs maps
_KINDS = ("folder", "tar", "tar shards", "parquet", "parquet shards")
_SCORED = ("folder", "tar", "parquet")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and unless quick write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer files, nothing written")
    quick = parser.parse_args(arguments).quick
    n_files, repetitions = (16, 1) if quick else (5000, 3)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        progress(f"writing {n_files} pairs as files, tar and Parquet")
        write_pairs(root, n_files)
        pack(root)
        write_coco(root)
        seconds = measure_reading(root, 3 * repetitions) | measure(root, repetitions)
        seconds |= measure_coco(root, 3 * repetitions)
    facts = machine(("sisod", "numpy", "opencv-python-headless", "polars", "pycocotools"))
    content = {"files": n_files, "seconds": seconds, "machine": facts}
    print(page(content), end="")
    if not quick:
        write_results("containers", content, page(content))


def page(content: Mapping[str, Any]) -> str:
    """What containers.md says, from what containers.json holds."""
    coco_peer = ", of COCO files pycocotools" if "coco labels" in content["seconds"] else ""
    parts = [
        f"Made by `python -m benchmarks.speed.containers`: processor time on "
        f"{content['files']} pairs of 300 x 400 PNG files, MAE, start of processes included; the "
        f"peer is the folder{coco_peer}.",
        markdown(TABLE_HEAD, [row.cells() for row in ratios(content["seconds"])]),
    ]
    return "\n\n".join(parts) + "\n"


def pack(root: Path) -> None:
    """Write the pairs to one tar, to one Parquet file, and to shards of each."""
    for what in ("pred", "gt"):
        members = {path.name: path.read_bytes() for path in sorted((root / what).iterdir())}
        (root / f"{what}.tar").write_bytes(tar_file(members))
        (root / f"{what}.parquet").write_bytes(parquet_file(members, column="image"))
        names = sorted(members)
        for kind in ("tar", "parquet"):
            folder = root / f"{what} {kind} shards"
            folder.mkdir()
            for at in range(0, len(names), _SHARD):
                part = {name: members[name] for name in names[at : at + _SHARD]}
                content = tar_file(part) if kind == "tar" else parquet_file(part, column="image")
                (folder / f"{at:06d}.{kind}").write_bytes(content)


def write_coco(root: Path) -> None:
    """Write the components of all ground truths as annotations with compressed run lengths."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for path in sorted((root / "gt").iterdir()):
        gt = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        assert gt is not None
        count, labels = cv2.connectedComponents((gt >= 128).astype(np.uint8))
        image = {"id": len(images), "file_name": path.name}
        images.append(image | {"height": labels.shape[0], "width": labels.shape[1]})
        for label in range(1, count):
            runs = coco_mask.encode(np.asfortranarray(labels == label))
            segmentation = {"size": list(labels.shape), "counts": runs["counts"].decode()}
            entry = {"id": len(annotations), "image_id": image["id"], "category_id": 1, "iscrowd": 0}
            annotations.append(entry | {"segmentation": segmentation})
    categories = [{"id": 1, "name": "object"}]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (root / "coco.json").write_text(json.dumps(content))


def measure_coco(root: Path, repetitions: int) -> dict[str, float]:
    """Return the median processor time of label maps by us and of masks by pycocotools.

    Both have parsed the file before.
    """
    file = root / "coco.json"
    content = json.loads(file.read_text())
    names = [image["file_name"] for image in content["images"]]
    masks: dict[int, list[Any]] = {}
    for one in content["annotations"]:
        masks.setdefault(one["image_id"], []).append(one["segmentation"])
    read_instances(file, names[0])
    times: dict[str, list[float]] = {"coco labels": [], "coco masks": []}
    for _ in range(repetitions):
        begin = time.process_time()
        for name in names:
            read_instances(file, name)
        middle = time.process_time()
        for segmentations in masks.values():
            coco_mask.decode(segmentations)
        times["coco labels"].append(middle - begin)
        times["coco masks"].append(time.process_time() - middle)
    return {name: statistics.median(values) for name, values in times.items()}


def measure_reading(root: Path, repetitions: int) -> dict[str, float]:
    """Return the median processor time of listing and reading all pairs, in this process."""
    times: dict[str, list[float]] = {}
    for _ in range(repetitions):
        for kind in _KINDS:
            pred, gt = roots(root, kind)
            begin = time.process_time()
            for pair in pair_files(pred, gt).pairs:
                read_bytes(gt, pair.gt.path)
                read_bytes(pred, pair.pred.path)
            times.setdefault(f"read {kind}", []).append(time.process_time() - begin)
    return {name: statistics.median(values) for name, values in times.items()}


def roots(root: Path, kind: str) -> tuple[str, str]:
    """Return predictions and ground truths of one kind."""
    ends = {"folder": "", "tar": ".tar", "parquet": ".parquet"}
    end = ends.get(kind, f" {kind}")
    return str(root / f"pred{end}"), str(root / f"gt{end}")


def measure(root: Path, repetitions: int) -> dict[str, float]:
    """Return the median processor time of every kind with one and with two processes, in turn."""
    times: dict[str, list[float]] = {}
    for repetition in range(repetitions):
        for jobs in (1, 2):
            for kind in _SCORED:
                times.setdefault(f"{kind} {jobs}", []).append(processor_time(root, kind, jobs))
        progress(f"  repetition {repetition + 1} of {repetitions}")
    return {name: statistics.median(values) for name, values in times.items()}


def processor_time(root: Path, kind: str, jobs: int) -> float:
    """Evaluate once; return the seconds of processor time of all processes."""
    pred, gt = roots(root, kind)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "sisod", "evaluate", f"maps={pred}", gt, "--dataset", "data"]
        command += ["--out", out, "--jobs", str(jobs), "--metrics", "mae", "--format", "csv"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratios(seconds: Mapping[str, float]) -> list[Row]:
    """Set every container against the folder, and COCO against pycocotools."""
    cases = [(f"read {kind}", f"list and read, {kind}", "read folder") for kind in _KINDS[1:]]
    cases += [
        (f"{kind} {jobs}", f"evaluate, {kind}, {processes}", f"folder {jobs}")
        for jobs, processes in ((1, "one process"), (2, "two processes"))
        for kind in _SCORED[1:]
    ]
    targets = [(*case, 1.0) for case in cases]
    if "coco labels" in seconds:  # not in results of before
        what = "COCO run lengths to label maps; pycocotools, to masks"
        targets.append(("coco labels", what, "coco masks", 2.0))
    return [
        Row(what, (seconds[ours],), seconds[peer], seconds[ours] / seconds[peer], most, at_least=False)
        for ours, what, peer, most in targets
    ]


if __name__ == "__main__":
    main()
