"""Other names under which metrics are known, and how names are compared."""

import re
import unicodedata

_WEIGHTED = ("weightedf", "weightedfm", "weightedfmeasure")
# family -> other names of it, in lower case and without _, - and spaces
SPELLINGS = {
    "mae": ("m", "meanabsoluteerror"),
    "mse": ("meansquarederror",),
    "f": ("fm", "fmeasure", "fbeta", "fscore"),
    "precision": ("prec", "ppv"),
    "recall": ("tpr", "sensitivity"),
    "iou": ("jaccard",),
    "dice": ("dsc", "f1", "f1score"),
    "accuracy": ("acc",),
    "specificity": ("tnr",),
    "fpr": ("falsepositiverate",),
    "ber": ("balancederrorrate",),
    "kappa": ("cohenkappa",),
    "e": ("em", "emeasure", "exi", "ephi"),
    "auc": ("auroc", "rocauc", "aucroc"),
    "s": ("sm", "smeasure", "salpha", "structuremeasure"),
    "wf": ("wfm", "wfmeasure", "wfbeta", "fw", "fbw", "fbetaw", *_WEIGHTED),
    "msiou": ("multiscaleiou",),
    "biou": ("boundaryiou",),
    "mba": ("meanboundaryaccuracy",),
    "hce": ("humancorrectioneffort",),
    "nsd": ("normalizedsurfacedistance", "normalisedsurfacedistance", "surfacedice"),
    "object_recall": ("found", "objectsfound"),
    "pq": ("panopticquality",),
}
FORM_SPELLINGS = {
    "mean": ("mean", "avg"),
    "max": ("max",),
    "adaptive": ("adp", "adaptive"),
    "binary": ("bin", "binary"),
}

SHORT_NAMES = {"mf": "f_mean"}  # an m before other metrics may mean several things
# names that may mean several metrics -> those that are suggested
AMBIGUOUS = {"miou": ("iou_binary", "iou_mean")}
# letters of symbols -> their names, under which they are known above; some write the w of F as an omega
_GREEK = str.maketrans(
    {"\N{GREEK SMALL LETTER ALPHA}": "alpha", "β": "beta", "ξ": "xi", "φ": "phi", "ω": "w"}
)


def squeeze(name: str) -> str:
    """Return a name as aliases are compared: in lower case and Latin letters, without _, -, ^, spaces.

    Example:
        >>> squeeze("S-measure"), squeeze("F_β^w")
        ('smeasure', 'fbetaw')
    """
    plain = unicodedata.normalize("NFKC", name).casefold().translate(_GREEK)
    return re.sub(r"[\s_^-]+", "", plain)
