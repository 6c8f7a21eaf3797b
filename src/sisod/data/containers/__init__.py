"""Containers of image files: Parquet and tar, in one file or in a folder of shards.

A root names a container like a folder: `masks.tar`, `data` (a folder of shards), `train.parquet#mask`.
The part after `#` selects a column of Parquet, or an extension in WebDataset's naming (`#mask.png`).

`list_files` and `read_bytes` of `sisod.data.storage` take such roots, so most code needs nothing of this
folder. To work shard by shard, take `list_shards` of `sisod.data.storage` and `read_shard`.
"""

from sisod.data.containers.shards import (
    Shard,
    find_member,
    is_container,
    is_shard,
    list_members,
    list_selections,
    open_shard,
    plain_root,
    read_member,
    read_shard,
    split_root,
    works_in_fork,
)

__all__ = [
    "Shard",
    "find_member",
    "is_container",
    "is_shard",
    "list_members",
    "list_selections",
    "open_shard",
    "plain_root",
    "read_member",
    "read_shard",
    "split_root",
    "works_in_fork",
]
