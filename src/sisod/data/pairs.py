"""Pairing of predictions and ground truths by their names."""

import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sisod.common.arguments import check_text, check_utf8, short_repr
from sisod.common.exceptions import InputError, InputWarning, pluralize, shorten_list
from sisod.data.containers import is_coco
from sisod.data.files import EXTENSIONS, read_file
from sisod.data.storage import StoredFile, list_files

# names of folders of images and of masks, without case and punctuation
IMAGE_WORDS = frozenset(
    {"image", "images", "img", "imgs", "im", "ims", "picture", "pictures"}
    | {"photo", "photos", "rgb", "src"}
)
MASK_WORDS = frozenset(
    {"mask", "masks", "gt", "gts", "groundtruth", "groundtruths", "groundtruthmask", "groundtruthmasks"}
    | {"label", "labels", "annotation", "annotations", "truth", "truths"}
    | {"pixelwisegtnewpng", "gtpixelwise", "gtpixelwisezip"}  # DUT-OMRON
)


@dataclass(frozen=True, slots=True)
class Pair:
    """One image: its name, and its two files relative to their roots."""

    name: str
    pred: StoredFile
    gt: StoredFile


@dataclass(frozen=True)
class Pairing:
    """All pairs, sorted by name; ground truths and predictions that have no partner."""

    pairs: tuple[Pair, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]


def pair_files(
    pred_root: str | Path,
    gt_root: str | Path,
    *,
    pred_suffix: str = "",
    gt_suffix: str = "",
    names: Sequence[str] | None = None,
    allow_missing: bool = False,
) -> Pairing:
    """Pair files by their path below each root, whatever the extension.

    Args:
        pred_root: folder, container or URL of the predictions; or a COCO result file.
        gt_root: folder, container or URL of the ground truths; or a COCO annotation file.
        pred_suffix: end of every prediction's name that is not part of the image's, like `_sal`.
        gt_suffix: the same for ground truths, like `_mask`.
        names: only these images; each must have a ground truth.
        allow_missing: go on without the images that have no prediction.

    Returns:
        The pairs in the order of their names, and the names of what has no partner.

    Raises:
        InputError: there is nothing to pair, or predictions are missing.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as root:
        ...     for name in ("maps/a_sal.png", "maps/c_sal.png", "masks/a.png", "masks/b.png"):
        ...         Path(root, name).parent.mkdir(exist_ok=True)
        ...         _ = Path(root, name).write_bytes(b"")
        ...     roots = f"{root}/maps", f"{root}/masks"
        ...     found = pair_files(*roots, pred_suffix="_sal", allow_missing=True)
        >>> [pair.name for pair in found.pairs], found.missing, found.extra
        (['a'], ('b',), ('c',))
    """
    truths = files_by_name(gt_root, gt_suffix, all_used=names is None)
    expected = sorted(_chosen(truths, names, gt_root, gt_suffix))
    if is_coco(pred_root):
        from sisod.data.containers.coco import list_results

        results = {file.path: file for file in list_results(pred_root, gt_root)}
        preds = {name: results[file.path] for name, file in truths.items()}
    else:
        preds = files_by_name(pred_root, pred_suffix, all_used=False)
    missing = [name for name in expected if name not in preds]
    pairs = tuple(Pair(name, preds[name], truths[name]) for name in expected if name in preds)
    if missing and not (pairs and allow_missing):
        advice = f"use --allow-missing to score the other {len(pairs)}"
        if not pairs:
            advice = (
                f"it has {shorten_list(sorted(preds), most=2) or 'no image files at all'}; if names end "
                "differently use --pred-suffix or --gt-suffix"
            )
        raise InputError(
            f"{len(missing)} of {len(expected)} ground truths have no prediction in {str(pred_root)!r} "
            f"({shorten_list(missing)}); {advice}{_spelling_note(missing, preds)}"
        )
    with_truth = set(expected) if names is None else set(truths)
    extra = sorted(name.encode(errors="backslashreplace").decode() for name in preds.keys() - with_truth)
    return Pairing(pairs, tuple(missing), tuple(extra))


def find_masks(
    gt_root: str | Path, *, gt_suffix: str = "", names: Sequence[str] | None = None
) -> dict[str, StoredFile]:
    """Return the masks of a root by the names of their images.

    Args:
        gt_root: folder, container or URL; or a COCO annotation file.
        gt_suffix: end of every file's name that is not part of the image's, like `_mask`.
        names: only these images.

    Raises:
        InputError: there are no masks, or not for all of the names.
    """
    check_text("gt_suffix", gt_suffix)
    files = files_by_name(gt_root, gt_suffix, all_used=names is None)
    return {name: files[name] for name in _chosen(files, names, gt_root, gt_suffix)}


def _chosen(
    files: dict[str, StoredFile], names: Sequence[str] | None, root: str | Path, suffix: str
) -> list[str]:
    """Return the names of the ground truths to use; raise if there are none, or if one is missing."""
    if not files or (names is not None and not names):
        ending = f" ending in {short_repr(suffix)}" if suffix else ""
        subject = "names is empty" if files else f"{str(root)!r} has no image files{ending}"
        extensions = ", ".join(extension[1:] for extension in EXTENSIONS)
        raise InputError(f"{subject}; expected ground truths as {extensions}")
    if names is None:
        return list(files)
    if unknown := [name for name in names if name not in files]:
        raise InputError(
            f"{len(unknown)} of {len(names)} listed images have no ground truth in {str(root)!r} "
            f"({shorten_list(unknown)}); correct the list{_spelling_note(unknown, files)}"
        )
    for name in names:
        check_utf8(files[name].path, f"{root}: the file name")
    return sorted(set(names))


def read_names(path: Path) -> list[str]:
    """Return the image names of a list file, one a line.

    Blank lines are left out and known extensions dropped, so that a list of files serves as well.

    Args:
        path: of a text file in UTF-8.

    Raises:
        InputError: it cannot be read, or names no image.
    """
    try:  # only a newline ends a line: names may contain other line separators
        lines = read_file(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        lines = []
    names = [_without_extension(line.strip()) for line in lines if line.strip()]
    if not names:
        raise InputError(f"list file {str(path)!r} names no image; expected one a line, in utf-8")
    return names


def files_by_name(root: str | Path, suffix: str = "", *, all_used: bool = True) -> dict[str, StoredFile]:
    """Return the image files below a root by the name of their image.

    Tables and JSON cannot hold a name that is not UTF-8. If all files are used, such a name is an error;
    if files are only looked up by name, it is never looked up.

    Args:
        root: folder, container, COCO file or URL.
        suffix: end of every file's name that is not part of the image's.
        all_used: whether all files are used; then there is a warning about those without the suffix.
    """
    files: dict[str, StoredFile] = {}
    others = []
    for file in list_files(root):
        name = image_name(file, suffix)
        if name is None:
            others.append(image_name(file))
            continue
        if all_used:
            check_utf8(file.path, f"{root}: the file name")
        if name in files:
            raise InputError(
                f"{str(root)!r} has two files for the image {name!r}: {files[name].path!r} and "
                f"{file.path!r}; keep one of them"
            )
        files[name] = file
    # a file whose name begins like that of a known image is its photograph, or another map of it
    unused = sorted(
        name
        for name in others
        if name and not any(name[:end] in files for end in range(1, len(name) + 1))
    )
    if files and all_used and unused:
        warnings.warn(
            f"not used: {pluralize(len(unused), 'file')} in {str(root)!r} whose name does not end in "
            f"{short_repr(suffix)} ({shorten_list(unused)})",
            InputWarning,
            stacklevel=3,
        )
    return files


def image_name(file: StoredFile, suffix: str = "") -> str | None:
    """Return the name of the image that a file holds; None for another file, or another suffix.

    Example:
        >>> image_name(StoredFile("night/im1_sal.png", stamp=""), "_sal")
        'night/im1'
    """
    name = _without_extension(file.name)
    is_image = file.is_image or name != file.name
    if not is_image or not name.endswith(suffix):
        return None
    return name.removesuffix(suffix) or None


def find_photographs(root: str | Path, *, all_used: bool = False) -> dict[str, StoredFile]:
    """Return the photographs below a root by the names of their images.

    Of several files for one image, one is taken in the order of `EXTENSIONS`; a warning says so.

    Args:
        root: folder, container or URL.
        all_used: whether all files are used; then a name that is not UTF-8 is an error.
    """
    files: dict[str, StoredFile] = {}
    replaced: dict[str, StoredFile] = {}

    def rank(file: StoredFile) -> tuple[int, str]:
        fits = [file.path.lower().endswith(extension) for extension in EXTENSIONS]
        return [*fits, True].index(True), file.path

    for file in list_files(root):
        name = image_name(file)
        if name in files:
            files[name], replaced[name] = sorted((files[name], file), key=rank)
        elif name is not None:
            files[name] = file
    if replaced:
        first = min(replaced)
        warnings.warn(
            f"{len(replaced)} images in {str(root)!r} have more than one file; one of them is used, in "
            f"the order {', '.join(extension[1:] for extension in EXTENSIONS[:-2])}: "
            f"{files[first].path!r} and not {replaced[first].path!r}",
            InputWarning,
            stacklevel=2,
        )
    for file in files.values() if all_used else ():
        check_utf8(file.path, f"{root}: the file name")
    return files


def _without_extension(path: str) -> str:
    # only a known extension is one: the name of 'a.b.png' is 'a.b'
    for extension in EXTENSIONS:
        if path.lower().endswith(extension) and path[: -len(extension)].rpartition("/")[2]:
            return path[: -len(extension)]
    return path


def _spelling_note(missing: Iterable[str], others: Iterable[str]) -> str:
    """Return a note on names that look like those of other files; "" if there are none."""
    normal = {unicodedata.normalize("NFC", name) for name in others}
    if normal.isdisjoint(unicodedata.normalize("NFC", name) for name in missing):
        return ""
    return (
        "; names that look the same differ in the Unicode form of their accents (NFC, or NFD as macOS "
        "writes it): rename the files to one form"
    )


def normalise(name: str) -> str:
    """Return a name without case and punctuation.

    Example:
        >>> normalise("DUTS_TR-Image")
        'dutstrimage'
    """
    return re.sub(r"[\W_]", "", name.lower())
