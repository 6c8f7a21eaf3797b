"""Scores Parquet shards with Ray Data: `python examples/ray_scores.py SHARDS`.

SHARDS is a folder (or URL) of Parquet files with the columns name, prediction and ground_truth, the last
two with image files as bytes. Without it, shards of synthetic scenes are written first. Needs ray[data].
"""

import sys
import tempfile
from pathlib import Path

import polars as pl
import ray
from ray.data import read_parquet

import sisod
from sisod.reproduction.demo import run_demo


def score_shards(shards: str) -> sisod.Evaluation:
    """Score every shard on the cluster that Ray is connected to; combine the results here."""
    scores = read_parquet(shards).map_batches(
        sisod.score_table,
        fn_kwargs={"metrics": "paper", "details": True},
        batch_format="pyarrow",
        batch_size=256,
    )
    return sisod.combine_scores(scores.iter_batches(batch_format="pyarrow", batch_size=None))


def write_shards(preds: Path, masks: Path, folder: Path, *, images_per_shard: int) -> None:
    """Write two folders of images as Parquet shards."""
    names = sorted(path.stem for path in masks.glob("*.png"))
    for start in range(0, len(names), images_per_shard):
        shard = names[start : start + images_per_shard]
        columns = {
            "name": shard,
            "prediction": [(preds / f"{name}.png").read_bytes() for name in shard],
            "ground_truth": [(masks / f"{name}.png").read_bytes() for name in shard],
        }
        pl.DataFrame(columns).write_parquet(folder / f"{start:05d}.parquet")


def main(arguments: list[str]) -> sisod.Evaluation:
    """Score the given shards, or synthetic scenes in a small cluster of this machine."""
    if arguments:
        result = score_shards(arguments[0])
    else:
        ray.init(num_cpus=1, object_store_memory=100 << 20, include_dashboard=False, log_to_driver=False)
        try:
            with tempfile.TemporaryDirectory() as name:
                run_demo(Path(name), count=12)
                shards = Path(name, "shards")
                shards.mkdir()
                write_shards(Path(name, "A"), Path(name, "mask"), shards, images_per_shard=4)
                result = score_shards(str(shards))
        finally:
            ray.shutdown()
    print(result)
    return result


if __name__ == "__main__":
    main(sys.argv[1:])
