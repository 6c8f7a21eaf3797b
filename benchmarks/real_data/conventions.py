"""The same maps scored under every protocol: the paper's nine metrics on the maps shipped with its code.

Run as `SISOD_DATA=... python -m benchmarks.real_data.conventions`; writes conventions.json and
conventions.md to `benchmarks/results`. It needs the folder MSOD (mask, prediction) of the real data.
"""

import json
import os
import sys
import warnings
from pathlib import Path

import sisod
from benchmarks.timing import RESULTS, markdown
from sisod.scoring.metrics import METRICS, PAPER_KEYS, arrow

# the protocols for saliency maps; the others are for other fields
SALIENCY = ("default", "paper", "pysodmetrics", "official")


def main() -> None:
    """Score the maps, print the table and write it."""
    if "SISOD_DATA" not in os.environ:
        sys.exit("set SISOD_DATA to the folder of real data, which holds MSOD")
    content = measure(Path(os.environ["SISOD_DATA"]) / "MSOD")
    print(page(content), end="")
    (RESULTS / "conventions.json").write_text(json.dumps(content, indent=2) + "\n")
    (RESULTS / "conventions.md").write_text(page(content))


def measure(root: Path) -> dict[str, dict[str, float]]:
    """Return protocol -> number of objects and metrics, rounded to what the table shows."""
    content = {}
    for name in SALIENCY:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the maps are smaller than the images
            result = sisod.evaluate(root / "prediction", root / "mask", protocol=name, metrics="paper")
        values = {key: round(value, 4) for key, value in result.summary.items()}
        content[name] = {"objects": result.run["objects"]} | values
    return content


def page(content: dict[str, dict[str, float]]) -> str:
    """Return the text of conventions.md from the content of conventions.json: a column per protocol."""
    head = ("", *(f"`{name}`" for name in content))
    rows = [["objects", *(str(values["objects"]) for values in content.values())]]
    for key in PAPER_KEYS:
        title = f"{METRICS[key].title} {arrow(key)}"
        rows.append([title, *(f"{values[key]:.4f}" for values in content.values())])
    return (
        "Made by `python -m benchmarks.real_data.conventions`: the 300 maps of MSOD that come with "
        f"the paper's metric code.\n\n{markdown(head, rows)}\n"
    )


if __name__ == "__main__":
    main()
