"""Score real maps with this checkout and with an earlier one, and compare every value of every table.

    SISOD_DATA=ROOT python tools/same_numbers.py --before CHECKOUT

ROOT holds `published/SOD`, `published/COVID-lesions` and `MSOD`. Values must be equal to the last bit;
of columns that only one of the two has the names are printed. Exit code 1 if a value differs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

PROJECT = Path(__file__).resolve().parents[1]
# the official protocols are slow, and of another module
PROTOCOLS = ("default", "paper", "pysodmetrics", "infrared", "cc")


def score(checkout: Path, root: Path, out: Path) -> None:
    """Evaluate all methods with the sources of a checkout, in every protocol."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    inputs = {
        "SOD": (sorted((root / "published" / "SOD").iterdir()), "mask"),
        "COVID": (sorted((root / "published" / "COVID-lesions").iterdir()), "mask"),
        "MSOD": ([root / "MSOD" / "prediction", root / "MSOD" / "mask"], "mask"),
    }
    for dataset, (folders, truth) in inputs.items():
        methods = [str(folder) for folder in folders if folder.name != truth]
        gt = str(next(folder for folder in folders if folder.name == truth))
        for protocol in PROTOCOLS:
            command = [sys.executable, "-m", "sisod", "evaluate", *methods, gt, "--dataset", dataset]
            options = ["--out", str(out / protocol), "--protocol", protocol, "--metrics", "all"]
            print(checkout.name, dataset, protocol, flush=True)
            subprocess.run([*command, *options], env=environment, check=True, capture_output=True)  # noqa: S603


def compare(before: Path, after: Path) -> tuple[int, list[str]]:
    """Return how many tables there are, and what differs in them."""
    names = sorted(path.relative_to(after) for path in after.rglob("*.parquet"))
    earlier = {path.relative_to(before) for path in before.rglob("*.parquet")}
    differences = [f"only in one: {name}" for name in sorted(earlier ^ set(names))]
    for name in sorted(earlier & set(names)):
        old, new = pl.read_parquet(before / name), pl.read_parquet(after / name)
        if changed := set(old.columns) ^ set(new.columns):
            differences.append(f"{name}: columns {sorted(changed)}")
        shared = [column for column in new.columns if column in old.columns]
        differences += [
            f"{name}: {column}"
            for column in shared
            if not old[column].equals(new[column], check_dtypes=False)
        ]
    return len(names), differences


def main() -> None:
    """Parse the command line, score twice, print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, metavar="CHECKOUT")
    options = parser.parse_args()
    root = Path(os.environ["SISOD_DATA"])
    with tempfile.TemporaryDirectory() as temporary:
        for checkout, name in ((options.before.resolve(), "before"), (PROJECT, "after")):
            score(checkout, root, Path(temporary) / name)
        n_tables, differences = compare(Path(temporary) / "before", Path(temporary) / "after")
    print(*differences, f"{n_tables} tables, {len(differences)} differences", sep="\n")
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
