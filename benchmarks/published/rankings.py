"""Published maps scored again: how methods rank by plain, by size-invariant and by object metrics.

    python -m benchmarks.published.rankings --data ROOT

ROOT holds `published/<data set>/mask` and beside it a folder of maps for every method. Only scores are
kept: `rankings.json` and `rankings.md` in `benchmarks/results`.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sisod
from benchmarks.timing import RESULTS, markdown, progress
from sisod.analysis import compare_many
from sisod.scoring.metrics import METRICS, arrow

PAIRS = {"mae": "si_mae", "f_mean": "si_f_mean", "auc": "si_auc"}  # plain form -> size-invariant form
OBJECTS = ("object_recall", "object_recall_small", "false_objects", "object_f1", "pq", "bsi_f_binary")
KEYS = (*(key for pair in PAIRS.items() for key in pair), *OBJECTS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Score every data set, print the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    root = parser.parse_args(arguments).data / "published"
    content = {folder.name: measure(folder) for folder in sorted(root.iterdir())}
    print(page(content), end="")
    (RESULTS / "rankings.json").write_text(json.dumps(content, indent=1) + "\n")
    (RESULTS / "rankings.md").write_text(page(content))


def measure(folder: Path) -> dict[str, Any]:
    """Return the scores of every method of a data set, and the verdict on every pair of them."""
    results = {}
    for method in sorted(path.name for path in folder.iterdir() if path.name != "mask"):
        progress(f"{folder.name}: {method}")
        results[method] = sisod.evaluate(folder / method, folder / "mask", metrics=KEYS)
    table = compare_many(results, metrics=KEYS).table
    first = next(iter(results.values()))
    return {
        "images": first.images.height,
        "objects": first.objects.height,
        "scores": {
            method: {key: round(result.summary[key], 4) for key in KEYS}
            for method, result in results.items()
        },
        "pairs": [
            {"a": row["a"], "b": row["b"], "metric": row["metric"], "verdict": row["verdict"]}
            for row in table.iter_rows(named=True)
        ],
    }


def page(content: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of rankings.md: of each data set the scores, then the leads that change."""
    parts = ["Made by `python -m benchmarks.published.rankings`."]
    for dataset, facts in content.items():
        parts += [
            f"{dataset}: {facts['images']} images, {facts['objects']} objects.",
            scores_table(facts),
        ]
        parts.append(changes_table(facts))
    return "\n\n".join(parts) + "\n"


def scores_table(facts: Mapping[str, Any]) -> str:
    """Return the scores, methods as columns; the best is bold if it beats every other decidedly."""
    methods = list(facts["scores"])
    rows = []
    for key in KEYS:
        sign = 1 if METRICS[key].better == "up" else -1
        best = max(methods, key=lambda method: sign * facts["scores"][method][key])
        decided = all(leader(facts, best, other, key) == best for other in methods if other != best)
        cells = [f"{facts['scores'][method][key]:.3f}" for method in methods]
        marked = [
            f"**{cell}**" if method == best and decided else cell
            for method, cell in zip(methods, cells, strict=True)
        ]
        rows.append([f"{METRICS[key].title} {arrow(key)}", *marked])
    return markdown(("metric", *methods), rows)


def changes_table(facts: Mapping[str, Any]) -> str:
    """Return who leads each pair of methods by a plain metric and by its size-invariant form."""
    pairs = sorted({(row["a"], row["b"]) for row in facts["pairs"]})
    rows = [
        [f"{a} and {b}", METRICS[plain].title, lead(facts, a, b, plain), lead(facts, a, b, si)]
        for a, b in pairs
        for plain, si in PAIRS.items()
        if lead(facts, a, b, plain) != lead(facts, a, b, si)
    ]
    return markdown(("pair", "metric", "plain form", "size-invariant form"), rows)


def lead(facts: Mapping[str, Any], a: str, b: str, key: str) -> str:
    """Return in words which of two methods leads by a metric."""
    winner = leader(facts, a, b, key)
    return "undecided" if winner is None else f"{winner} better"


def leader(facts: Mapping[str, Any], a: str, b: str, key: str) -> str | None:
    """Return which of two methods the permutation test calls better by a metric; None if neither."""
    for row in facts["pairs"]:
        if {row["a"], row["b"]} == {a, b} and row["metric"] == key and row["verdict"] != "undecided":
            winner: str = row["a"] if row["verdict"] == "better" else row["b"]
            return winner
    return None


if __name__ == "__main__":
    main()
