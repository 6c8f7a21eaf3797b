"""Data sets: folders in any of the usual layouts, and images paired with their masks."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sisod.common.arguments import check_known
from sisod.common.exceptions import InputError, shorten_list
from sisod.data.catalogue import KNOWN, Known, recognise
from sisod.data.containers import is_container, is_shard, list_selections, plain_root, split_root
from sisod.data.files import EXTENSIONS, is_hidden, url_errors
from sisod.data.pairs import IMAGE_WORDS, MASK_WORDS, files_by_name, find_photographs, normalise
from sisod.data.storage import list_shards

_DEEPEST = 3  # folders between a root and a data set's own


@dataclass(frozen=True)
class Sample:
    """One image and its mask.

    Attributes:
        name: path below the folder, without extension.
        image: path of the image file; in a container it also says where the content is.
        mask: path of the mask file, alike.
    """

    name: str
    image: Path
    mask: Path


@dataclass(frozen=True)
class Dataset:
    """Samples in the order of their names.

    Attributes:
        name: of a known data set, or of its folder.
        image_dir: folder, or container, of the images.
        mask_dir: folder, or container, of the masks.
        samples: one of each image.
        mask_suffix: end of the masks' names that is not part of the images', like `_mask`.
    """

    name: str
    image_dir: Path
    mask_dir: Path
    samples: tuple[Sample, ...]
    mask_suffix: str = ""


@dataclass(frozen=True)
class DatasetFolders:
    """The folders of a data set; `mask_dir` is None if there are images only."""

    name: str
    image_dir: Path
    mask_dir: Path | None
    problem: str | None = None


def open_dataset(
    root: Path | str,
    *,
    masks: Path | str | None = None,
    mask_suffix: str = "",
    prefer: Sequence[str] = ("DUTS-TR",),
) -> Dataset:
    """Return the samples of a data set; every image must have its mask, and every mask its image.

    Args:
        root: a data set's own folder, with its folders of images and masks in any of the usual names; a
            folder that holds one of `prefer`; or a folder of images, with `masks` beside it.
        masks: the folder of masks, if `root` is a folder of images.
        mask_suffix: end of the masks' names, like `_mask`. If all masks have the same, as in SIRST, it
            is found without.
        prefer: which of the known data sets to take below `root`, the first that exists.

    Returns:
        The samples in the order of their names, with the paths of image and mask.

    Raises:
        InputError: there is no data set, or not every image has its mask.

    Example:
        >>> import tempfile
        >>> from sisod.data.scenes import write_scenes
        >>> with tempfile.TemporaryDirectory() as root:
        ...     dataset = open_dataset(write_scenes(f"{root}/ships", 2))
        >>> dataset.name, [sample.name for sample in dataset.samples]
        ('ships', ['made00000', 'made00001'])
    """
    if masks is None:
        folders = _search(Path(root), prefer)
    else:
        owner = Path(plain_root(Path(root).absolute()))
        owner = owner.parent if normalise(owner.name) in IMAGE_WORDS else owner
        folders = DatasetFolders(_title(owner), Path(root), Path(masks))
    if folders.problem is not None or folders.mask_dir is None:
        raise InputError(
            folders.problem
            or f"{str(folders.image_dir)!r} has images but no folder of masks beside it; expected one "
            "called mask, gt, masks or the like; name it if it is elsewhere"
        )
    matched = match_files(folders.image_dir, folders.mask_dir, mask_suffix)
    if not matched[0] and (found := _common_suffix(*matched[1:])):
        mask_suffix, matched = found, match_files(folders.image_dir, folders.mask_dir, found)
    samples, without_mask, without_image = matched
    problems = [
        f"{len(names)} of {len(samples) + len(names)} {what} in {str(folder)!r} "
        f"({shorten_list(list(names))})"
        for names, what, folder in (
            (without_mask, "images have no mask", folders.mask_dir),
            (without_image, "masks have no image", folders.image_dir),
        )
        if names
    ]
    if problems or not samples:
        problem = " and ".join(problems) or f"{str(folders.image_dir)!r} has no image files"
        raise InputError(f"{problem}; add what is missing, or move the others away")
    return Dataset(folders.name, folders.image_dir, folders.mask_dir, samples, mask_suffix)


def join_datasets(datasets: Sequence[Dataset]) -> Dataset:
    """Return several data sets as one, whose samples are called `DATASET/NAME`; a single one as it is.

    Raises:
        InputError: two of them have the same name.
    """
    if len(datasets) == 1:
        return datasets[0]
    names = [dataset.name for dataset in datasets]
    if len(set(names)) < len(names):
        raise InputError(f"two data sets have the same name ({', '.join(names)}); rename a folder")
    samples = tuple(
        replace(sample, name=f"{dataset.name}/{sample.name}")
        for dataset in datasets
        for sample in dataset.samples
    )
    return replace(datasets[0], name="+".join(names), samples=samples)


def find_images(root: Path | str) -> Path:
    """Return the folder of images of a data set, or a folder of images itself; masks are not needed.

    Args:
        root: a data set's own folder, or a folder of images.

    Raises:
        InputError: there are no images.
    """
    try:
        return _search(Path(root), ()).image_dir
    except InputError:
        if find_photographs(root, all_used=True):
            return Path(root)
        raise


def _common_suffix(images: Sequence[str], masks: Sequence[str]) -> str:
    """Return what the names of all masks have more than those of the images; empty if they differ."""
    ends = [mask.removeprefix(images[0]) for mask in masks if images and mask.startswith(images[0])]
    return next((end for end in ends if {image + end for image in images} == {*masks}), "")


def match_files(
    image_dir: Path, mask_dir: Path, mask_suffix: str = ""
) -> tuple[tuple[Sample, ...], tuple[str, ...], tuple[str, ...]]:
    """Pair images and masks by their path below each folder, whatever the extension.

    Returns:
        The samples, the names of images without a mask, and those of masks without an image.
    """
    images, masks = find_photographs(image_dir, all_used=True), files_by_name(mask_dir, mask_suffix)
    samples = tuple(
        Sample(name, image_dir / images[name].path, mask_dir / masks[name].path)
        for name in sorted(images.keys() & masks.keys())
    )
    without_mask, without_image = images.keys() - masks.keys(), masks.keys() - images.keys()
    return samples, tuple(sorted(without_mask)), tuple(sorted(without_image))


def find_known(root: Path | str) -> dict[str, DatasetFolders]:
    """Return the folders of the known data sets at or below a folder, by name.

    One that cannot be read has a `problem`: the others can still be read.

    Args:
        root: a folder that holds data sets, a data set's own folder, or a container of one.

    Example:
        >>> import tempfile
        >>> from sisod.data.scenes import write_scenes
        >>> with tempfile.TemporaryDirectory() as root:
        ...     folders = find_known(write_scenes(f"{root}/ECSSD", 1))
        >>> folders["ECSSD"].mask_dir.name
        'mask'
    """
    top = Path(root).absolute()
    found: dict[str, DatasetFolders] = {}
    if is_container(top):
        _add_container(found, top)
        return found
    for folder in _folders(top):
        for known in KNOWN.values():
            if known.name not in found and (folders := _folders_of(known, folder)):
                found[known.name] = folders
        for path in (folder, *_shard_files(folder)):
            _add_container(found, path)
    return {name: found[name] for name in KNOWN if name in found}


def _search(root: Path, prefer: Sequence[str]) -> DatasetFolders:
    for name in prefer:
        check_known("data set", name, KNOWN)
    if _holds_shards(root):
        return _split_container(root, _title(Path(plain_root(root.absolute()))))
    pair = _pair(root, normalise)
    if pair is not None and pair[1] is not None:
        return DatasetFolders(_title(root.absolute()), *pair)
    known = find_known(root)
    own = recognise(root.absolute().name, root.absolute().parent.name)
    for name in (*prefer, *([own.name] if own else ())):
        if name in known:
            return known[name]
    if (pair := _pair(root, normalise, _last_word)) is not None:
        return DatasetFolders(_title(root.absolute()), *pair)
    holds = f"it holds {', '.join(known)}" if known else "or name the folder of masks with --masks"
    preferred = f" and does not hold {' or '.join(prefer)}" if prefer else ""
    raise InputError(
        f"{str(root)!r} has no folder of images (image, images, imgs or the like){preferred}; give a "
        f"folder that has folders of images and masks inside; {holds}"
    )


def _title(folder: Path) -> str:
    known = recognise(folder.name, folder.parent.name)
    return known.name if known else folder.name or "data"


# ------------------------------------------------------------------------------------------- containers


def _add_container(found: dict[str, DatasetFolders], path: Path) -> None:
    """Add the data set that a container is called after, unless there is one already."""
    plain = Path(plain_root(path))
    known = recognise(plain.name, plain.parent.name)
    if known is None or known.name in found:
        return
    try:
        if _holds_shards(path):
            found[known.name] = _split_container(path, known.name)
    except InputError as error:
        found[known.name] = DatasetFolders(known.name, path, None, str(error))


def _holds_shards(root: Path) -> bool:
    """Tell whether a root is a container: a file, or a folder of shards and of nothing else to read."""
    base = Path(split_root(str(root))[0])
    if is_container(base):
        return True
    return bool(_shard_files(base)) and _pair(base, normalise) is None and bool(list_shards(root))


def _shard_files(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in _entries(folder) if is_shard(entry.name) and entry.is_file()]


def _split_container(root: Path, title: str) -> DatasetFolders:
    """Return the images and masks of one container, by the names of its columns or extensions."""
    base, selection = split_root(str(root))
    if selection:
        return DatasetFolders(title, root, None)
    choices = list_selections(list_shards(base)[0])
    masks = [choice for choice in choices if normalise(choice.split(".")[0]) in MASK_WORDS]
    images = [choice for choice in choices if normalise(choice.split(".")[0]) in IMAGE_WORDS]
    images = images or [choice for choice in choices if f".{choice}" in EXTENSIONS]
    if len(images) != 1 or len(masks) > 1:
        raise InputError(
            f"{str(root)!r} holds {', '.join(choices) or 'nothing to choose from'}; expected image and "
            f"mask; name the images and the masks like this: {root.name}#image and {root.name}#mask"
        )
    mask_dir = Path(f"{base}#{masks[0]}") if masks else None
    return DatasetFolders(title, Path(f"{base}#{images[0]}"), mask_dir)


# ---------------------------------------------------------------------------------------------- folders


def _folders_of(known: Known, folder: Path) -> DatasetFolders | None:
    """Return a data set's two folders if `folder` is the set's own, or holds them by the set's name."""
    for image_dir, mask_dir in known.layouts:
        if (folder / image_dir).is_dir():
            masks = folder / mask_dir
            return DatasetFolders(known.name, folder / image_dir, masks if masks.is_dir() else None)
    own = recognise(folder.name, folder.parent.name) == known

    def without_set(name: str) -> str:
        """Return what follows the set's name, as in `DUTS-TR-Image`."""
        plain = normalise(name)
        return next((plain.removeprefix(one) for one in known.spellings if plain.startswith(one)), "")

    try:
        pair = _pair(folder, *((normalise, without_set, _last_word) if own else (without_set,)))
    except InputError as error:
        return DatasetFolders(known.name, folder, None, str(error))
    return None if pair is None else DatasetFolders(known.name, *pair)


def _pair(folder: Path, *readings: Callable[[str], str]) -> tuple[Path, Path | None] | None:
    """Return the folders of images and masks inside a folder, by their names.

    Args:
        folder: to look into.
        readings: each turns a folder's name into the word that counts; the first that fits is taken.
    """
    subfolders = _subfolders(folder)

    def choose(words: frozenset[str]) -> Path | None:
        groups = [[sub for sub in subfolders if read(sub.name) in words] for read in readings]
        fitting = next((group for group in groups if group), [])
        if len(fitting) > 1:
            raise InputError(
                f"{str(folder)!r} has {len(fitting)} folders that could hold the same thing "
                f"({shorten_list([sub.name for sub in fitting])}); name the folders of images and masks"
            )
        return _skip_wrappers(fitting[0]) if fitting else None

    images = choose(IMAGE_WORDS)
    return None if images is None else (images, choose(MASK_WORDS))


def _last_word(name: str) -> str:
    return re.split(r"[\W_]+", name.lower())[-1]


def _skip_wrappers(folder: Path) -> Path:
    """Go down as long as a folder holds one folder only, as some unpacked archives do."""
    for _ in range(_DEEPEST):
        entries = _entries(folder)
        if len(entries) != 1 or not entries[0].is_dir():
            break
        folder = Path(entries[0].path)
    return folder


def _folders(root: Path) -> Iterator[Path]:
    """Yield a folder and those below it, the nearest first."""
    level = [root]
    for _ in range(_DEEPEST + 1):
        yield from level
        level = [sub for folder in level for sub in _subfolders(folder)]


def _subfolders(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in _entries(folder) if entry.is_dir()]


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    with url_errors(str(folder)), os.scandir(folder) as entries:
        visible = [entry for entry in entries if not is_hidden(entry.name)]
    return sorted(visible, key=lambda entry: entry.name)
