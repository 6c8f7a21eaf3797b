"""Every field of a saved result removed, emptied or of another type: it loads, or one sentence."""

import dataclasses
import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers.command_line import run
from helpers.report_runs import ablation_rows, one_object_scenes, write_benchmark

import sisod
from sisod.analysis.ablation import read_ablation
from sisod.analysis.comparison import compare
from sisod.analysis.groups import by_number, by_size, found_curve, size_bias
from sisod.common.errors import InputError
from sisod.common.parquet import read_table, write_table
from sisod.evaluation.results import Result
from sisod.evaluation.saved import _PROTOCOL, TABLES, read_run, read_summary
from sisod.report.page.render import render_report

pytest.importorskip("jinja2", reason="extra report is not installed")
METRICS = ("mae", "si_mae", "f_mean", "f_max", "si_f_max", "auc", "object_recall", "pq")
OTHERS = [
    None,
    "x",
    "",
    -1,
    0,
    1,
    0.5,
    True,
    [],
    ["x"],
    [1],
    {},
    {"x": "y"},
    10**400,
    math.inf,
    math.nan,
]
Edit = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods on one data set; never written to."""
    root = tmp_path_factory.mktemp("saved")
    write_benchmark(root, "D", one_object_scenes(3), ("coarse", "large only"))
    for method in ("coarse", "large only"):
        sisod.evaluate(
            root / "maps" / "D" / method, root / "data" / "D" / "mask", metrics=METRICS, jobs=1,
            out=root / "results" / "D" / method, overwrite=True,
        )  # fmt: skip
    return root / "results" / "D"


@pytest.fixture
def saved(results: Path, tmp_path: Path) -> Path:
    """One of them, to be changed."""
    return Path(shutil.copytree(results / "coarse", tmp_path / "D" / "coarse"))


def refusal(saved: Path) -> str:
    """Load a result; return why it is refused, or an empty text."""
    try:
        sisod.Evaluation.load(saved)
    except InputError as error:
        said = str(error)
    else:
        return ""
    beginning = f"{str(saved)!r} is not a result of 'sisod evaluate' that can be read: "
    assert said.startswith(beginning)
    assert "\n" not in said
    return said.removeprefix(beginning)


def use(saved: Path, results: Path) -> None:
    """Do with a result what all commands do."""
    loaded = sisod.Evaluation.load(saved)
    assert loaded._repr_html_()
    assert by_size(loaded, groups="log")["objects"].sum() == loaded.objects.height
    assert by_number(loaded)["images"].sum() == found_curve(loaded).height - 98 == 3
    assert not abs(size_bias(loaded)) > 1  # may be undefined
    other = sisod.Evaluation.load(results / "large only")
    assert compare(loaded, loaded, metrics="all", resamples=3).table.height
    page, _ = render_report(
        [Result("D", "a", loaded), Result("D", "b", other)],
        image_roots={}, ablation=None, against_paper=True, title="", resamples=3,
    )  # fmt: skip
    assert "Size" in page


def changed_json(content: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """The same without the field, and with each of many other values in it."""
    for other in ("removed", *OTHERS):
        copy = json.loads(json.dumps(content))
        inside = copy
        for name in path[:-1]:
            inside = inside[name]
        del inside[path[-1]]
        if other != "removed":
            inside[path[-1]] = other
        yield copy


def fields(content: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all fields of an object, those of objects in it too."""
    for name, value in content.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from fields(value, (*above, name))


PARTS = [("run.json", part) for part in ("protocol", "inputs", "undefined", "")]
PARTS += [("summary.json", key) for key in METRICS]


@pytest.mark.parametrize(("file", "part"), PARTS)
def test_every_field_of_json(file: str, part: str, saved: Path, results: Path) -> None:
    content = json.loads((saved / file).read_text())
    parts = [name for _, name in PARTS]
    paths = [path for path in fields(content) if path[0] == part or (not part and path[0] not in parts)]
    assert len(paths) > 2 or part == "undefined"
    for path in paths:
        refused, accepted = [], []
        for copy in changed_json(content, path):
            (saved / file).write_text(json.dumps(copy))
            if said := refusal(saved):
                refused.append(said)
                assert file in said
                assert path[-1] in said or path[0] in said
            else:
                accepted.append(copy)
        assert refused  # null, at least, or a text in place of an object
        if accepted:
            (saved / file).write_text(json.dumps(accepted[0]))
            use(saved, results)


@pytest.mark.parametrize("file", ["run.json", "summary.json"])
def test_other_json(file: str, saved: Path) -> None:
    for text in ("", "[]", "1", "null", "{}", "{", '"text"', "[" * 100_000, "\xff"):
        (saved / file).write_bytes(text.encode("latin-1"))
        assert file.partition(".")[0] in refusal(saved)


EDITS: dict[str, Callable[[str], Edit]] = {
    "dropped": lambda name: lambda table: table.drop(name),
    "renamed": lambda name: lambda table: table.rename({name: "another"}),
    "one empty": lambda name: (
        lambda table: table.with_columns(
            pl.when(pl.int_range(pl.len()) > 0).then(pl.col(name)).alias(name)
        )
    ),
    "all empty": lambda name: lambda table: table.with_columns(pl.lit(None).alias(name)),
    "numbers": lambda name: lambda table: table.with_columns(pl.lit(-1).alias(name)),
    "floats": lambda name: lambda table: table.with_columns(pl.lit(1.5).alias(name)),
    "infinite": lambda name: lambda table: table.with_columns(pl.lit(math.inf).alias(name)),
    "undefined": lambda name: lambda table: table.with_columns(pl.lit(math.nan).alias(name)),
    "large": lambda name: lambda table: table.with_columns(pl.lit(2**62).alias(name)),
    "unsigned": lambda name: lambda table: table.with_columns(pl.lit(1, pl.UInt64).alias(name)),
    "half as long": lambda name: lambda table: table.with_columns(pl.lit(0.5, pl.Float32).alias(name)),
    "texts": lambda name: lambda table: table.with_columns(pl.lit("x").alias(name)),
    "flags": lambda name: lambda table: table.with_columns(pl.lit(value=True).alias(name)),
    "lists": lambda name: lambda table: table.with_columns(pl.Series(name, [[1.0]] * table.height)),
}
ROWS: dict[str, Edit] = {
    "none": lambda table: table.clear(),
    "one less": lambda table: table.head(table.height - 1),
    "one more": lambda table: pl.concat([table, table.tail(1)]),
    "reversed": lambda table: table.reverse(),
}
MAY_WORK = {"fill", "touches_border"}  # columns that are for readers; nothing here needs them


@pytest.mark.parametrize("name", [*TABLES, "files"])
@pytest.mark.slow
def test_every_column_of_tables(name: str, saved: Path, results: Path) -> None:
    file = saved / f"{name}.parquet"
    table = read_table(file)
    refused = set()
    for column in table.columns:
        accepted = []
        for what, edit in EDITS.items():
            changed = edit(column)(table)
            write_table(changed, file)
            if said := refusal(saved):
                refused.add(column)
                assert name in said
                assert column in said or "images.parquet" in said
            else:
                accepted.append((what, changed))
        for _, changed in accepted[:1]:
            write_table(changed, file)
            use(saved, results)
    assert refused == set(table.columns) - MAY_WORK
    for change in ROWS.values():
        write_table(change(table), file)
        assert ".parquet" in refusal(saved)


def test_texts_of_refusals(saved: Path) -> None:
    """File, field, what was expected and what came, what to do."""

    def reason(path: tuple[str, ...], value: Any) -> str:
        copy = saved.parent / "copy"
        shutil.copytree(saved, copy, dirs_exist_ok=True)
        file, *names = path
        content = inside = json.loads((copy / file).read_text())
        for name in names[:-1]:
            inside = inside[name]
        inside[names[-1]] = value
        (copy / file).write_text(json.dumps(content))
        return refusal(copy)

    assert reason(("run.json", "protocol", "kind"), "circles") == (
        'run.json: protocol.kind is "circles"; expected "boxes" or "voronoi"; evaluate again'
    )
    assert reason(("run.json", "protocol", "colour"), 1) == (
        "run.json: protocol.colour is not known to this version; evaluate again"
    )
    assert reason(("summary.json", "mae"), {"value": "low", "images": 3}) == (
        'summary.json: mae.value is "low"; expected a number or null; evaluate again'
    )
    assert reason(("summary.json", "mae"), {"value": 0.5}) == (
        "summary.json has no mae.images; evaluate again"
    )
    assert reason(("summary.json", "beauty"), {"value": 1, "images": 3}) == (
        "summary.json has the metric 'beauty', which this version does not know; evaluate again"
    )
    write_table(read_table(saved / "images.parquet").drop("height"), saved / "images.parquet")
    assert refusal(saved) == "images.parquet has no column 'height'; evaluate again"


@pytest.mark.parametrize(
    ("key", "source"),
    [
        *(("mae", "images"), ("si_mae", "images"), ("f_max", "dataset_curves")),
        *(("si_f_max", "dataset_curves"), ("object_recall", "counts"), ("pq", "counts")),
    ],
)
def test_a_summary_that_the_tables_do_not_give(key: str, source: str, saved: Path) -> None:
    summary = json.loads((saved / "summary.json").read_text())
    value = summary[key]["value"]
    summary[key]["value"] = value + 1e-6
    (saved / "summary.json").write_text(json.dumps(summary))
    assert refusal(saved) == (
        f"summary.json: {key}.value is {value + 1e-6:.6g}, but {source}.parquet gives {value:.6g}; "
        "evaluate again"
    )
    summary[key] = {"value": value, "images": summary[key]["images"] - 1}
    (saved / "summary.json").write_text(json.dumps(summary))
    assert refusal(saved) == (
        f"summary.json: {key}.images is 2, but images.parquet has 3; evaluate again"
    )


def test_tables_of_another_result(saved: Path, results: Path) -> None:
    for name in ("images", "counts", "dataset_curves"):
        kept = (saved / f"{name}.parquet").read_bytes()
        shutil.copyfile(results / "large only" / f"{name}.parquet", saved / f"{name}.parquet")
        assert "parquet" in refusal(saved)
        (saved / f"{name}.parquet").write_bytes(kept)
    assert refusal(saved) == ""


def test_results_of_older_versions(saved: Path, results: Path) -> None:
    """Neither files.parquet nor the newest fields of run.json were written always."""
    run = json.loads((saved / "run.json").read_text())
    for name in ("tiny", "looks_binary", "digest", "metrics"):
        del run[name]
    del run["inputs"]["files"]
    for name in ("released_code", "keep_ties"):
        del run["protocol"][name]
    (saved / "run.json").write_text(json.dumps(run))
    (saved / "files.parquet").unlink()
    use(saved, results)
    assert sisod.Evaluation.load(saved).files is None


def test_every_field_of_a_protocol_is_checked(saved: Path) -> None:
    assert list(_PROTOCOL) == [field.name for field in dataclasses.fields(sisod.Protocol)]
    for protocol in sisod.PROTOCOLS.values():
        run = json.loads((saved / "run.json").read_text())
        run["protocol"] = dataclasses.asdict(protocol)
        (saved / "run.json").write_text(json.dumps(run))
        assert sisod.Protocol(**read_run(saved)["protocol"]) == protocol


@pytest.mark.parametrize("command", ["report", "plot", "compare"])
def test_commands(command: str, saved: Path, results: Path) -> None:
    """One line and exit code 1."""
    (saved / "summary.json").write_text("[]")
    arguments = [str(saved), str(results / "large only")]
    if command != "compare":
        arguments += ["--out", str(saved.parent / "out.html")]
    result = run(command, *arguments)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 1
    assert result.stderr == (
        f"error: {str(saved)!r} is not a result of 'sisod evaluate' that can be read: "
        "summary.json holds []; expected an object; evaluate again\n"
    )


def test_metrics_that_are_needed(saved: Path) -> None:
    assert read_summary(saved, needed=["mae"])[1]["mae"] == 3
    with pytest.raises(InputError, match=r"summary.json has no 'wf'; evaluate again$"):
        read_summary(saved, needed=["mae", "wf"])


def test_every_field_of_an_ablation(tmp_path: Path) -> None:
    content: Any = ablation_rows({"plain": (0.3, 0.5), "ratio": (0.2, None)})  # type: ignore[dict-item]
    file = tmp_path / "ablation.json"
    file.write_text(json.dumps(content))
    assert len(read_ablation(file)) == 2
    row = content["rows"][0]
    tampered: list[Any] = [
        {"rows": rows} for path in fields(row) for copy in changed_json(row, path) for rows in ([copy],)
    ]
    tampered += [other for other in OTHERS if other != {}] + list(changed_json(content, ("rows",)))
    said = []
    for one in tampered:
        file.write_text(json.dumps(one))
        try:
            read_ablation(file)
        except InputError as error:
            said.append(str(error))
    assert len(said) > 60
    beginning = f"{str(file)!r} is not a table of 'sisod ablate': "
    assert all(text.startswith(beginning) and "\n" not in text for text in said)
