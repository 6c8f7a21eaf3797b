"""The data sets of the paper: image counts, descriptions, folder names, web pages."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A data set that many papers use.

    Attributes:
        name: as tables write it.
        title: what the name stands for.
        count: number of images.
        description: its particular features (the paper's table of data sets).
        url: the page of its authors.
        aliases: other names of its folder, without case and punctuation.
        layouts: image and mask folders that `IMAGE_WORDS` and `MASK_WORDS` do not cover.
    """

    name: str
    title: str
    count: int
    description: str
    url: str
    aliases: tuple[str, ...] = ()
    layouts: tuple[tuple[str, str], ...] = ()

    @property
    def spellings(self) -> tuple[str, ...]:
        """All names of its folder, without case and punctuation, the longest first."""
        return tuple(sorted({normalise(self.name), *self.aliases}, key=lambda name: (-len(name), name)))


def normalise(name: str) -> str:
    """Return a name without case and punctuation.

    Example:
        >>> normalise("DUTS_TR-Image")
        'dutstrimage'
    """
    return re.sub(r"[\W_]", "", name.lower())


_DUTS, _OMRON = "http://saliencydetection.net/duts/", "http://saliencydetection.net/dut-omron/"

KNOWN: dict[str, Known] = {
    known.name: known
    for known in (
        Known(
            "DUTS-TR",
            "DUTS, training set",
            10_553,
            "the usual training set; images of ImageNet",
            _DUTS,
            ("dutstrain", "dutstraining"),
        ),
        Known(
            "DUTS-TE",
            "DUTS, test set",
            5_019,
            "test set of DUTS; images of ImageNet and SUN",
            _DUTS,
            ("dutstest", "dutstesting"),
        ),
        Known(
            "ECSSD",
            "Extended Complex Scene Saliency Dataset",
            1_000,
            "meaningful objects of complex structure",
            "https://www.cse.cuhk.edu.hk/leojia/projects/hsaliency/dataset.html",
        ),
        Known(
            "DUT-OMRON",
            "DUT-OMRON",
            5_168,
            "complex backgrounds, diverse content",
            _OMRON,
            ("dutsomron", "omron", "dutomron5168", "duto"),
        ),
        Known(
            "HKU-IS",
            "HKU image saliency",
            4_447,
            "about half of the images with several separate objects",
            "https://i.cs.hku.hk/~yzyu/research/deep_saliency.html",
        ),
        Known(
            "MSOD",
            "multiple salient object detection",
            300,
            "the hardest multi-object scenes, 1342 objects",
            "https://github.com/EricDengbowen/DSLRDNet",
        ),
        Known(
            "PASCAL-S",
            "PASCAL-S",
            850,
            "several objects; images of the PASCAL VOC 2010 validation set",
            "http://cbs.ic.gatech.edu/salobj/",
            ("pascal", "salobj"),
            (("imgs/pascal", "masks/pascal"),),
        ),
        Known(
            "SOD",
            "Salient Objects Dataset",
            300,
            "several objects, like the background or at the border",
            "https://www.elderlab.yorku.ca/resources/salient-objects-dataset-sod/",
        ),
        Known(
            "XPIE",
            "XPIE",
            10_000,
            "complex scenes, objects of many numbers, sizes and places",
            "http://cvteam.net/projects/CVPR17-ELE/ELE.html",
        ),
    )
}

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


def recognise(name: str, parent: str = "") -> Known | None:
    """Return the data set that a folder name stands for; its parent's name counts, as in `DUTS/Train`.

    Example:
        >>> [known.name for known in (recognise("hku_is"), recognise("Train", "DUTS")) if known]
        ['HKU-IS', 'DUTS-TR']
    """
    for known in KNOWN.values():
        if normalise(name) in known.spellings or normalise(parent + name) in known.spellings:
            return known
        if (
            normalise(parent) in known.spellings
            and normalise(name) == "test"
            and known.name != "DUTS-TR"
        ):
            return known  # as in ECSSD/Test/images
    return None
