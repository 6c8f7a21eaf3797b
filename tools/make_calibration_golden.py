"""Write `tests/training/calibration_golden.json`: Platt scaling by scikit-learn.

    PYTHONPATH=tests python tools/make_calibration_golden.py

Logistic regression on the logit alone, without a penalty, minimises the weighted cross-entropy of
slope x logit + intercept: the temperature is 1 / slope, the shift the intercept. The pixels are those of
`helpers.calibration_pixels`.
"""

import importlib.metadata
import json
from pathlib import Path
from typing import Any

from helpers.calibration_pixels import pixels
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

GOLDEN_PATH = Path(__file__).parents[1] / "tests" / "training" / "calibration_golden.json"
CASES = {
    "soft": {"slope": 0.6, "shift": -0.8},
    "hard": {"slope": 1.7, "shift": 0.5},
    "calibrated": {"slope": 1.0, "shift": 0.0},
    "few": {"count": 60, "slope": 0.4, "shift": 0.3},
}


def golden() -> dict[str, Any]:
    """Return the content of the file: how it was made, and the values."""
    return {
        "command": "PYTHONPATH=tests python tools/make_calibration_golden.py",
        "versions": {name: importlib.metadata.version(name) for name in ("scikit-learn", "numpy")},
        "tolerance": 1e-4,
        "cases": {name: case | _fit(case) for name, case in CASES.items()},
    }


def _fit(case: dict[str, Any]) -> dict[str, Any]:
    logits, salient, weights = pixels(**case)
    model = LogisticRegression(C=float("inf"), tol=1e-12, max_iter=10_000)
    model.fit(logits[:, None], salient, sample_weight=weights)
    probs = model.predict_proba(logits[:, None])[:, 1]
    return {
        "temperature": float(1 / model.coef_[0, 0]),
        "fitted_shift": float(model.intercept_[0]),
        "bce": float(log_loss(salient, probs, sample_weight=weights)),
    }


if __name__ == "__main__":
    GOLDEN_PATH.write_text(json.dumps(golden(), indent=2) + "\n")
