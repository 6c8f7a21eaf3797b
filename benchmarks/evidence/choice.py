"""Makes the choice of plan.md from the scores on validation images; no score of a test set is read.

`python -m benchmarks.evidence.choice` prints the scores of every loss, who is a candidate, which loss is
chosen, and which runs are not finished.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.evidence.runs import LOSSES, SAVED, SEEDS, VALIDATION
from benchmarks.timing import markdown

BASELINE = "plain-dice"
COLUMNS = {
    "mae": "MAE ↓",
    "si_mae": "SI-MAE ↓",
    "object_recall_small": "small objects found ↑",
    "false_objects": "false objects per image ↓",
    "object_f1_max": "object F1 max ↑",
    "object_f1_max_small": "object F1 max small ↑",
}
# what a candidate may be worse by than the baseline: plan.md, "Choice"
MORE_MAE, LESS_F1, MORE_FALSE = 0.002, 0.005, 1.2

Scores = Mapping[str, Mapping[str, float]]  # run -> metric -> value on the validation images


@dataclass(frozen=True)
class Choice:
    """The outcome: the recommended loss, the candidates it was chosen from, and unfinished runs."""

    recommended: str | None  # None while runs are missing
    candidates: tuple[str, ...]
    unfinished: tuple[str, ...]


def main() -> None:
    """Print the table and the choice."""
    content = json.loads((SAVED / "means.json").read_text())
    scores = {run: entry[VALIDATION] for run, entry in content.items() if VALIDATION in entry}
    print(validation_table(scores))
    choice = choose(scores)
    print(f"\nCandidates: {', '.join(choice.candidates) or 'none'}.")
    if choice.unfinished:
        print(f"No choice yet; runs that are not finished: {', '.join(choice.unfinished)}.")
    else:
        print(f"Recommended: {choice.recommended}.")


def choose(scores: Scores) -> Choice:
    """Return the loss that the rule of the plan recommends.

    A candidate is not much worse than the baseline in MAE, object F1 and false objects. The candidate
    with the largest F1 of small objects is chosen if it leads the baseline in every seed; otherwise the
    plain loss with the largest object F1 is recommended.
    """
    unfinished = tuple(
        f"{loss}@{seed}" for seed in SEEDS for loss in LOSSES if f"{loss}@{seed}" not in scores
    )
    means = {loss: mean_scores(scores, loss) for loss in LOSSES if runs_of(scores, loss)}
    if BASELINE not in means:
        return Choice(None, (), unfinished)
    base = means[BASELINE]
    candidates = tuple(
        loss
        for loss, mean in means.items()
        if mean["mae"] <= base["mae"] + MORE_MAE
        and mean["object_f1_max"] >= base["object_f1_max"] - LESS_F1
        and mean["false_objects"] <= base["false_objects"] * MORE_FALSE
    )
    if unfinished:
        return Choice(None, candidates, unfinished)
    best = max(candidates, key=lambda loss: means[loss]["object_f1_max_small"])
    key = "object_f1_max_small"
    leads = all(scores[f"{best}@{seed}"][key] > scores[f"{BASELINE}@{seed}"][key] for seed in SEEDS)
    if best == BASELINE or not leads:
        plain = [loss for loss in means if loss.startswith("plain") or loss in ("focal", "pos-weight")]
        best = max(plain, key=lambda loss: means[loss]["object_f1_max"])
    return Choice(best, candidates, ())


def runs_of(scores: Scores, loss: str) -> list[str]:
    """Return the finished runs of a loss."""
    return [f"{loss}@{seed}" for seed in SEEDS if f"{loss}@{seed}" in scores]


def mean_scores(scores: Scores, loss: str, keys: Sequence[str] = tuple(COLUMNS)) -> dict[str, float]:
    """Return the means over the finished seeds of a loss."""
    return {key: fmean(scores[run][key] for run in runs_of(scores, loss)) for key in keys}


def validation_table(scores: Scores) -> str:
    """Return the means over the seeds of every loss on the validation images, in Markdown."""
    rows = [
        [
            loss,
            str(len(runs_of(scores, loss))),
            *(f"{value:.4f}" for value in mean_scores(scores, loss).values()),
        ]
        for loss in LOSSES
        if runs_of(scores, loss)
    ]
    return markdown(("loss", "seeds", *COLUMNS.values()), rows)


if __name__ == "__main__":
    main()
