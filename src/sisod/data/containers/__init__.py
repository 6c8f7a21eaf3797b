"""Containers of image files: Parquet and tar, in one file or in a folder of shards.

A root names a container like a folder: `masks.tar`, `data` (a folder of shards), `train.parquet#mask`.
The part after `#` selects a column of Parquet, or an extension in WebDataset's naming (`#mask.png`).

`list_files` and `read_bytes` of `sisod.data.storage` take such roots, so most code needs nothing of this
folder. To work shard by shard, take `list_shards` of `sisod.data.storage` and `read_shard`.
"""

from sisod.data.containers.shards import find_member as find_member
from sisod.data.containers.shards import is_container as is_container
from sisod.data.containers.shards import is_shard as is_shard
from sisod.data.containers.shards import list_members as list_members
from sisod.data.containers.shards import list_selections as list_selections
from sisod.data.containers.shards import open_shard as open_shard
from sisod.data.containers.shards import plain_root as plain_root
from sisod.data.containers.shards import read_member as read_member
from sisod.data.containers.shards import read_shard as read_shard
from sisod.data.containers.shards import split_root as split_root
from sisod.data.containers.shards import works_in_fork as works_in_fork
from sisod.data.stored_file import Shard as Shard
