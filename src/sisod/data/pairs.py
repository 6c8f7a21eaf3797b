"""Pairing of predictions and ground truths by their names."""

import unicodedata
import warnings
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sisod.common.arguments import check_text, check_utf8, shown
from sisod.common.errors import InputError, InputWarning, counted, shorten_list
from sisod.data.containers.coco import is_coco, list_results
from sisod.data.images import EXTENSIONS
from sisod.data.storage import StoredFile, list_files

# of two photographs of one image the first of these is taken; JPEG first, since some data sets keep the
# masks, as PNG, beside their photographs
PHOTOGRAPH_ORDER = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".npy", ".npz")


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
        pred_root: folder or URL of the predictions.
        gt_root: folder or URL of the ground truths.
        pred_suffix: end of every prediction's name that is not part of the image's, like `_sal`.
        gt_suffix: the same for ground truths, like `_mask`.
        names: only these images; each must have a ground truth.
        allow_missing: go on without the images that have no prediction.
    """
    truths = files_by_name(gt_root, gt_suffix, all_used=names is None)
    if not truths:
        raise InputError(
            f"{str(gt_root)!r} has no image files{_ending(gt_suffix)}; expected ground truths as "
            + ", ".join(extension[1:] for extension in EXTENSIONS)
        )
    if is_coco(pred_root):
        results = {file.path: file for file in list_results(pred_root, gt_root)}
        preds = {name: results[file.path] for name, file in truths.items()}
    else:
        preds = files_by_name(pred_root, pred_suffix, all_used=False)
    expected = sorted(truths) if names is None else _listed(names, truths, gt_root)
    missing = [name for name in expected if name not in preds]
    pairs = tuple(Pair(name, preds[name], truths[name]) for name in expected if name in preds)
    if not pairs:
        raise InputError(
            f"none of the {len(expected)} ground truths has a prediction in {str(pred_root)!r}; "
            f"{_mismatch(sorted(preds), expected)}{_spelling_note(expected, preds)}"
        )
    if missing and not allow_missing:
        raise InputError(
            f"{len(missing)} of {len(expected)} ground truths have no prediction in {str(pred_root)!r} "
            f"({shorten_list(missing)}); use --allow-missing to score the other {len(pairs)}"
            f"{_spelling_note(missing, preds)}"
        )
    with_truth = set(expected) if names is None else set(truths)
    extra = sorted(name.encode(errors="backslashreplace").decode() for name in preds.keys() - with_truth)
    return Pairing(pairs, tuple(missing), tuple(extra))


def find_masks(
    gt_root: str | Path, *, gt_suffix: str = "", names: Sequence[str] | None = None
) -> dict[str, StoredFile]:
    """Return the masks of a folder by the names of their images; with `names`, only these."""
    check_text("gt_suffix", gt_suffix)
    files = files_by_name(gt_root, gt_suffix, all_used=names is None)
    if not files:
        raise InputError(
            f"{str(gt_root)!r} has no image files{_ending(gt_suffix)}; expected a folder of masks"
        )
    return files if names is None else {name: files[name] for name in _listed(names, files, gt_root)}


def read_names(path: Path) -> list[str]:
    """Read a list of image names, one a line; blank lines are left out, known extensions dropped."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split(
            "\n"
        )  # names may contain other line separators
    except OSError as error:
        raise InputError(f"list file {str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"list file {str(path)!r} cannot be read: it is not utf-8 text") from error
    names = [_without_extension(line.strip()) for line in lines if line.strip()]
    if not names:
        raise InputError(f"list file {str(path)!r} names no image; expected one name a line")
    return names


def files_by_name(root: str | Path, suffix: str = "", *, all_used: bool = True) -> dict[str, StoredFile]:
    """Return the image files below a root by the name of their image.

    Tables and JSON cannot hold a name that is not UTF-8. If all files are used, such a name is an error;
    if files are only looked up by name, it is never looked up.
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
    if files and all_used:
        _note_unused(root, suffix, sorted(name for name in others if name and not _belongs(name, files)))
    return files


def _belongs(name: str, images: Container[str]) -> bool:
    """Tell whether a file is of a known image: its photograph, or its prediction with another suffix."""
    return any(name[:end] in images for end in range(1, len(name) + 1))


def _note_unused(root: str | Path, suffix: str, names: list[str]) -> None:
    if names:
        warnings.warn(
            f"not used: {counted(len(names), 'file')} in {str(root)!r} whose name does not end in "
            f"{shown(suffix)} ({shorten_list(names)})",
            InputWarning,
            stacklevel=4,
        )


def image_name(file: StoredFile, suffix: str = "") -> str | None:
    """Return the name of the image that a file holds; None for another file, or another suffix."""
    name = _without_extension(file.name)
    is_image = file.is_image or name != file.name
    if not is_image or not name.endswith(suffix):
        return None
    return name.removesuffix(suffix) or None


@dataclass(frozen=True)
class Photographs:
    """One file for each image, by name; and how many images have more than one."""

    files: dict[str, StoredFile]
    n_doubled: int


def find_photographs(root: str | Path) -> Photographs:
    """Return the photographs below a root.

    Of several files for one image, one is taken in the order of `PHOTOGRAPH_ORDER`; a warning says so.
    """
    files: dict[str, StoredFile] = {}
    replaced: dict[str, StoredFile] = {}
    for file in list_files(root):
        name = _without_extension(file.name)
        if name == file.name and not file.is_image:
            continue
        if name in files:
            files[name], replaced[name] = sorted((files[name], file), key=_photograph_rank)
        else:
            files[name] = file
    if replaced:
        first = min(replaced)
        warnings.warn(
            f"{len(replaced)} images in {str(root)!r} have more than one file; one of them is used, in "
            f"the order {', '.join(extension[1:] for extension in PHOTOGRAPH_ORDER[:-2])}: "
            f"{files[first].path!r} and not {replaced[first].path!r}",
            InputWarning,
            stacklevel=2,
        )
    return Photographs(files, len(replaced))


def _photograph_rank(file: StoredFile) -> tuple[int, str]:
    ranks = (rank for rank, end in enumerate(PHOTOGRAPH_ORDER) if file.path.lower().endswith(end))
    return next(ranks, len(PHOTOGRAPH_ORDER)), file.path


def _ending(suffix: str) -> str:
    return f" ending in {shown(suffix)}" if suffix else ""


def _without_extension(path: str) -> str:
    # only a known extension is one: the name of 'a.b.png' is 'a.b'
    for extension in EXTENSIONS:
        if path.lower().endswith(extension) and path[: -len(extension)].rpartition("/")[2]:
            return path[: -len(extension)]
    return path


def _listed(names: Sequence[str], truths: dict[str, StoredFile], gt_root: str | Path) -> list[str]:
    if not names:
        raise InputError("names is empty; name at least one image, or pass None for all")
    unknown = [name for name in names if name not in truths]
    if unknown:
        raise InputError(
            f"{len(unknown)} of {len(names)} listed images have no ground truth in {str(gt_root)!r} "
            f"({shorten_list(unknown)}); correct the list{_spelling_note(unknown, truths)}"
        )
    for name in names:
        check_utf8(truths[name].path, f"{gt_root}: the file name")
    return sorted(set(names))


def _spelling_note(missing: Iterable[str], others: Iterable[str]) -> str:
    """Return a note on names that look like those of other files; "" if there are none."""
    normal = {unicodedata.normalize("NFC", name) for name in others}
    if any(unicodedata.normalize("NFC", name) in normal for name in missing):
        return (
            "; names that look the same differ in the Unicode form of their accents (NFC, or NFD as "
            "macOS writes it): rename the files to one form"
        )
    return ""


def _mismatch(preds: list[str], expected: list[str]) -> str:
    if not preds:
        return "it has no image files at all"
    return (
        f"it has {shorten_list(preds, most=2)} where {shorten_list(expected, most=2)} were expected; "
        "if names end differently use --pred-suffix or --gt-suffix"
    )
