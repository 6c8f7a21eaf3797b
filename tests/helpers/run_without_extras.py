"""A program that makes modules unimportable, then runs commands and public functions without them.

    python run_without_extras.py WORK '["NAME", ...]' MODULE...

NAMEs are keys of ARGS and CALLS. Prints one JSON line: command -> exit code, standard output, standard
error and the exception that was not caught.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

# command -> arguments of a small run; {out} is a new folder
ARGS = {
    "evaluate": ["A=maps", "mask", "--out", "{out}", "--jobs", "1"],
    "evaluate a URL": ["evaluate", "A=memory://x/maps", "mask", "--out", "{out}"],
    "evaluate on a cluster": ["evaluate", "A=maps", "mask", "--out", "{out}", "--cluster", "tcp://x:1"],
    "table": ["results"],
    "check": ["maps", "mask"],
    "metrics": [],
    "frames": ["mask", "--out", "{out}"],
    "stats": ["mask"],
    "stats as a plot": ["stats", "mask", "--plot", "{out}/x.png"],
    "demo": ["--out", "{out}"],
    "demo of the first part": ["demo", "--quick", "--out", "{out}"],
    "errors": ["results"],
    "compare": ["results/D/A", "results/D/B", "--resamples", "9"],
    "datasets": ["."],
    "networks": [],
    "convert": ["mask/a.png", "{out}/x.safetensors"],
    "export": ["nowhere/at/all", "{out}/x.onnx"],
    "train": ["tiny", "--data", "nowhere", "--out", "{out}"],
    "ablate": ["tiny", "--data", "nowhere", "--out", "{out}", "--test", "nowhere"],
    "calibrate": ["nowhere", "--out", "{out}"],
    "predict": ["nowhere/at/all", "mask", "{out}"],
    "plot": ["results", "--out", "{out}"],
    "report": ["results", "--out", "{out}/report.html"],
    "paper": ["results", "--out", "{out}"],
    "reproduce": ["--scale", "tiny", "--out", "{out}"],
    "bench": ["--quick"],
}
CALLS: dict[str, Callable[[Path], object]] = {
    "losses": lambda _: importlib.import_module("sisod.losses"),
    "networks.create": lambda _: importlib.import_module("sisod.networks").create("tiny"),
    "networks.InputSpec": lambda _: importlib.import_module("sisod.networks").InputSpec,
    "training": lambda _: importlib.import_module("sisod.training.train"),
    "evaluation.plot": lambda _: _evaluation().plot(),
    "report.write_report": lambda out: _report(out),
    "evaluate a URL": lambda _: importlib.import_module("sisod").evaluate("memory://x", "memory://y"),
    "evaluate on a cluster": lambda _: importlib.import_module("sisod").evaluate(
        "maps", "mask", cluster="tcp://x:1"
    ),
}


class Blocker(MetaPathFinder):
    """Hides packages, as if they were not installed."""

    def __init__(self, modules: list[str]) -> None:
        self.modules = modules

    def find_spec(self, name: str, *_: Any) -> None:
        """Raise ImportError for the hidden packages."""
        if name.partition(".")[0] in self.modules:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _evaluation() -> Any:
    return importlib.import_module("sisod").Evaluation.load("results/D/A")


def _report(out: Path) -> Any:
    results = importlib.import_module("sisod.evaluation.results").load_results([Path("results")])
    return importlib.import_module("sisod.report").write_report(results, out)


def main(work: str, names: list[str], modules: list[str]) -> None:
    """Run the named commands and calls without the modules."""
    sys.meta_path.insert(0, Blocker(modules))
    os.chdir(work)
    from typer.main import get_command
    from typer.testing import CliRunner

    from sisod.cli import app

    runner = CliRunner()
    done: dict[str, Any] = {"commands": sorted(get_command(app).commands)}  # type: ignore[attr-defined]
    for index, (name, args) in enumerate(ARGS.items()):
        if name not in names:
            continue
        out = f"out{'-'.join(modules)[:40]}{index}"
        line = args if args and args[0] in done["commands"] else [name, *args]
        result = runner.invoke(app, [arg.format(out=out) for arg in line])
        raised = not isinstance(result.exception, SystemExit | None)
        done[name] = [result.exit_code, result.stdout, result.stderr, repr(result.exception) * raised]
    calls = {}
    for name, call in CALLS.items():
        if name not in names:
            continue
        try:
            call(Path(f"call-{name}.html"))
        except Exception as error:
            calls[name] = [isinstance(error, ImportError), isinstance(error, ValueError), str(error)]
    done["calls"] = calls
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:])
