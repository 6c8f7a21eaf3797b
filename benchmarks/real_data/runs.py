"""The paper's claims on real data, small: train, predict, score, keep the tables.

    python -m benchmarks.real_data.runs --data ROOT --out DIR          # everything, hours on a CPU
    python -m benchmarks.real_data.runs --data ROOT --out DIR NAME...  # some runs, for several machines
    python -m benchmarks.real_data.runs --out DIR --gather             # the tables of what is finished

ROOT holds DUTS-TR, DUTS-TE, ECSSD and MSOD. What is finished is not done again and an unfinished run
goes on where it stopped. The tables go to `benchmarks/results/real_data/`, from which
`tables.py` makes all that `docs/reproduction.md` shows.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl

import sisod
from benchmarks.timing import RESULTS, machine, progress
from sisod.common.parquet import read_table, write_table
from sisod.data.datasets import open_dataset
from sisod.data.images import read_map, read_mask
from sisod.data.pairs import pair_files
from sisod.scoring.arrays import unit_values
from sisod.scoring.metrics import PAPER_KEYS

TABLES = RESULTS / "real_data"
TESTS = ("MSOD", "DUTS-TE", "ECSSD")
N_TRAINING = 2000
SIDE = 128
_IMAGE_COLUMNS = ("image", "height", "width", "n_objects")
_OBJECT_COLUMNS = (
    *("image", "index", "area", "share"),
    *("mae", "f_mean", "f_max", "auc", "iou_binary", "recall_binary"),
)
# kept to four digits, which makes the files small; recall is not, since one half of it decides
_ROUNDED = {*PAPER_KEYS, *_OBJECT_COLUMNS[4:-1]}


@dataclass(frozen=True)
class Run:
    """One training: a recipe, a loss and what is set otherwise."""

    recipe: str
    loss: str  # plain, si, or released: the one of examples/train_with_your_loss.py
    seed: int = 0
    settings: tuple[str, ...] = ()

    def all_settings(self) -> list[str]:
        """What `--set` takes."""
        return [f"data.size={SIDE}", f"train.seed={self.seed}", *self.settings]


RUNS = {
    "edn-plain-0": Run("edn-lite", "plain"),
    "edn-si-0": Run("edn-lite", "si"),
    "edn-plain-1": Run("edn-lite", "plain", seed=1),
    "edn-si-1": Run("edn-lite", "si", seed=1),
    "edn-plain-2": Run("edn-lite", "plain", seed=2),
    "edn-si-2": Run("edn-lite", "si", seed=2),
    "edn-printed-0": Run("edn-lite", "si", settings=("loss.normalize=false",)),
    "edn-released-0": Run("edn-lite", "released"),
    "edn-alpha1-0": Run("edn-lite", "si", settings=("loss.alpha=1",)),
    "edn-alpha0-0": Run("edn-lite", "si", settings=("loss.alpha=0",)),
    "edn-warm-0": Run("edn-lite", "si", settings=("loss.warmup_epochs=1",)),
    "edn-long-plain-0": Run("edn-lite", "plain", settings=("train.epochs=8",)),
    "edn-long-si-0": Run("edn-lite", "si", settings=("train.epochs=8",)),
    "edn-bce-plain-0": Run("edn-lite", "plain", settings=('loss.terms=["bce"]',)),
    "edn-bce-si-0": Run("edn-lite", "si", settings=('loss.terms=["bce"]',)),
    "ldf-plain-0": Run("ldf-lite", "plain"),
    "ldf-si-0": Run("ldf-lite", "si"),
    "poolnet-plain-0": Run("poolnet-lite", "plain"),
    "poolnet-si-0": Run("poolnet-lite", "si"),
    "icon-plain-0": Run("icon-lite", "plain"),
    "icon-si-0": Run("icon-lite", "si"),
    "gatenet-plain-0": Run("gatenet-lite", "plain"),
    "gatenet-si-0": Run("gatenet-lite", "si"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(RUNS)}; by default all")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gather", action="store_true", help="only gather the tables of finished runs")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.runs if name not in RUNS]
    if unknown or (chosen.data is None and not chosen.gather):
        parser.error(f"unknown runs {unknown}" if unknown else "--data is needed")
    if not chosen.gather:
        for name in chosen.runs or RUNS:
            progress(name)
            train_run(RUNS[name], chosen.data, chosen.out / "runs" / name)
            score_run(name, chosen.data, chosen.out)
    gather(chosen.out)


def train_run(run: Run, data: Path, out: Path) -> None:
    """Train, or go on."""
    from sisod.training.recipe import find_recipe
    from sisod.training.train import Machine, TrainingRequest, train

    recipe = find_recipe(run.recipe, run.all_settings())
    criterion = None
    if run.loss == "released":
        sys.path.insert(0, str(RESULTS.parents[1] / "examples"))
        from train_with_your_loss import ReleasedLoss

        criterion = ReleasedLoss(*recipe.loss.terms)
    loss = "si" if criterion else run.loss
    request = TrainingRequest(data=data, out=out, loss=loss, limit=N_TRAINING, resume=out.exists())
    train(recipe, request, Machine(workers=1), criterion=criterion)


def score_run(name: str, data: Path, out: Path) -> None:
    """Predict and score every test set."""
    from sisod import networks
    from sisod.networks.predict import predict_folder

    network = networks.from_pretrained(out / "runs" / name)
    for test in TESTS:
        result, levels = out / "results" / test / name, out / "levels" / test / name
        found = open_dataset(data / test)
        maps = out / "maps" / test / name
        if not result.exists():
            predict_folder(network, found.image_dir, maps, size=SIDE, resume=maps.exists())
            sisod.evaluate(maps, found.mask_dir, metrics=PAPER_KEYS, out=result)
        if not (levels / "marked.parquet").exists():
            levels.mkdir(parents=True, exist_ok=True)
            objects, marked = score_levels(maps, found.mask_dir)
            write_table(objects, levels / "objects.parquet")
            write_table(marked, levels / "marked.parquet")


def score_levels(maps: Path, masks: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Say at which thresholds objects are found, and what share of the background is marked at each.

    Returns:
        `image`, `index`, `level` of every object: up to this threshold it is found, that is, at least
        half of its pixels are above it; and `threshold`, `marked`: the mean over images of the
        share of pixels of no object above it. Maps are stretched as the default protocol does,
        and thresholds count in 256ths.
    """
    objects: list[dict[str, Any]] = []
    shares = []
    gt_level = sisod.PROTOCOLS["default"].gt_level
    for pair in pair_files(maps, masks).pairs:
        mask = read_mask(masks, pair.gt.path, level=gt_level)
        array = cv2.resize(read_map(maps, pair.pred.path), mask.shape[::-1])
        unit = unit_values(array, normalize="minmax")
        array = np.ceil(256 * unit - 1).clip(0, 255).astype(np.uint8)  # the last threshold it is above
        for frame in sisod.partition(mask):
            values = np.sort(array[frame.window][mask[frame.window]])
            level = int(values[len(values) // 2])  # it and all after it: at least half of the pixels
            objects.append({"image": pair.name, "index": frame.index, "level": level})
        counts = np.bincount(array[~mask], minlength=256)
        shares.append(counts[::-1].cumsum()[::-1] / max(1, counts.sum()))
    marked = {"threshold": np.arange(256), "marked": np.mean(shares, axis=0)}
    return pl.DataFrame(objects), pl.DataFrame(marked)


def gather(out: Path) -> None:
    """Put the rows of all finished runs into three small tables."""
    images, objects, marked, records = [], [], [], {}
    for name, run in RUNS.items():
        folders = [out / "results" / test / name for test in TESTS]
        if not all((out / "levels" / test / name / "marked.parquet").exists() for test in TESTS):
            continue
        for test, folder in zip(TESTS, folders, strict=True):
            found = sisod.Evaluation.load(folder)
            images.append(_small(found.images.select(*_IMAGE_COLUMNS, *PAPER_KEYS), name, test))
            levels = out / "levels" / test / name
            rows = found.objects.select(_OBJECT_COLUMNS)
            rows = rows.join(read_table(levels / "objects.parquet"), on=["image", "index"])
            objects.append(_small(rows.cast({"level": pl.UInt8}), name, test))
            marked.append(_small(read_table(levels / "marked.parquet"), name, test))
        records[name] = _record(run, out / "runs" / name)
    TABLES.mkdir(exist_ok=True)
    for kind, tables in (("images", images), ("objects", objects), ("marked", marked)):
        write_table(pl.concat(tables), TABLES / f"{kind}.parquet", compression_level=19)
    content = {"runs": records, "machine": machine(("sisod", "torch", "numpy"))}
    (TABLES / "runs.json").write_text(json.dumps(content, indent=2) + "\n")


def _small(table: pl.DataFrame, run: str, dataset: str) -> pl.DataFrame:
    kinds = pl.Enum(list(RUNS)), pl.Enum(TESTS)
    rounded = [pl.col(key).round(4) for key in table.columns if key in _ROUNDED]
    return table.with_columns(rounded).with_columns(
        pl.col(pl.Float64).cast(pl.Float32),
        pl.lit(run).cast(kinds[0]).alias("run"),
        pl.lit(dataset).cast(kinds[1]).alias("dataset"),
    )


def _record(run: Run, folder: Path) -> dict[str, Any]:
    made = json.loads((folder / "run.json").read_text())
    return {
        "recipe": run.recipe,
        "loss": run.loss,
        "settings": run.all_settings(),
        "steps": made["steps"],
        "seconds": made["seconds"],
    }


if __name__ == "__main__":
    main()
