"""A run is begun, resumed and put in its place at the end; a kill at any step loses nothing."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers.folder_contents import content, names
from helpers.platforms import links

from sisod.common import run_folder
from sisod.common.exceptions import InputError, UsageError
from sisod.common.run_folder import (
    COMMANDS,
    SCRATCH,
    OtherRunError,
    Run,
    check_free,
    discard,
    open_run,
    partial_folder,
    put_in_place,
    read_digested,
    read_run,
    recover,
)

pytestmark = pytest.mark.usefixtures("inside_tmp_path")


def made(path: str, kind: str | None = "frames", text: str = "old", **more: Any) -> Path:
    """A folder of one file, with a record unless kind is None."""
    folder = Path(path)
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text(text)
    if kind is not None:
        record = {"format": 1, "sisod": "0.1.0", "kind": kind, "config": {}, **more}
        (folder / "run.json").write_text(json.dumps(record))
    return folder


def write(
    folder: str = "out", text: str = "new", fail: type[BaseException] | None = None, **options: Any
) -> None:
    settings: dict[str, Any] = {"kind": "frames", "overwrite": True, **options}
    with open_run(folder, **settings) as run:
        run.begin()
        (run.path / "a.txt").write_text(text)
        if fail is not None:
            raise fail
        run.finish()


def text(folder: str | Path = "out") -> str:
    return (Path(folder) / "a.txt").read_text()


# whose a folder is


@pytest.mark.parametrize("there", COMMANDS)
def test_a_command_replaces_its_own_results_only(there: str) -> None:
    before = content(made("out", there))
    for wanted in COMMANDS:
        if there == wanted:
            check_free(Path("out"), kind=wanted, overwrite=True)
            with pytest.raises(InputError, match=r"^'out' exists already; use --overwrite to replace"):
                check_free(Path("out"), kind=wanted, overwrite=False)
            continue
        with pytest.raises(InputError, match=r"^'out' is a result of 'sisod \w+' and not of 'sisod "):
            write(kind=wanted)
        assert (content("out"), names(".")) == (before, ["out"])


@pytest.mark.parametrize("record", ['{"kind": "frames"}', "[]", '"sisod"', "", "{", "\xff", "[" * 9999])
def test_a_folder_without_our_record_is_nobodys(record: str) -> None:
    (made("out", None) / "run.json").write_bytes(record.encode("latin-1"))
    assert read_run(Path("out")) == {}
    with pytest.raises(InputError, match="exists and is not a result of sisod; it is not replaced"):
        write()


def test_results_inside_a_result_are_not_replaced_with_it() -> None:
    made("out", "prediction")
    made("out/scores/MSOD/A", "evaluation")
    with pytest.raises(
        InputError, match=r"it holds 'out/scores/MSOD/A', a result of 'sisod evaluate'; move that"
    ):
        write(kind="prediction")
    made("run", "training")
    made("run/first_stage", "training")
    made("run/labels", "labels")
    check_free(Path("run"), kind="training", overwrite=True)


@links
def test_inputs_are_not_replaced() -> None:
    made("out", "frames")
    Path("out/mask").mkdir()
    Path("link").symlink_to("out/mask")
    for root in ("out", "out/mask", Path("link"), "out/../out"):
        with pytest.raises(
            InputError, match=r"'out' is not replaced: .* is inside; give another folder"
        ):
            write(inputs=(None, "s3://out/mask", root))
    write(inputs=("elsewhere", "."))


# how one takes the place of another


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_failure_leaves_everything_as_it_was(error: type[BaseException]) -> None:
    before = content(made("out"))
    with pytest.raises((error, InputError)):
        write(fail=error)
    assert (content("out"), names(".")) == (before, ["out"])


def test_a_kill_at_any_step_of_the_exchange() -> None:
    """Every state of the disk that the steps of `put_in_place` go through."""
    made("out", text="old")
    made("new", text="new")
    steps: list[Path] = []

    def photographed(number: int) -> None:
        shutil.copytree(".", f"../step{number}")
        steps.append(Path(f"../step{number}"))

    real_rename, real_remove = Path.rename, run_folder._remove

    def rename(self: Path, target: Path) -> Path:
        photographed(len(steps))
        return real_rename(self, target)

    def remove(folder: Path) -> None:
        photographed(len(steps))
        (folder / "a.txt").unlink()
        photographed(len(steps))
        (folder / "run.json").unlink()
        photographed(len(steps))
        folder.rmdir()

    patch = pytest.MonkeyPatch()
    with patch.context() as inside:
        inside.setattr(Path, "rename", rename)
        inside.setattr(run_folder, "_remove", remove)
        put_in_place(Path("new"), Path("out"))
    assert real_remove is run_folder._remove
    seen = []
    for step in steps:
        recover(step / "out")
        seen.append(text(step / "out"))
        discard(step / "new")
        assert names(step) == ["out"]
        shutil.rmtree(step)
    assert seen == ["old", "old", "new", "new", "new", "new"]


def test_a_kill_after_the_record_says_finished() -> None:
    made("out", text="old")
    made(".out.sisod-partial", text="new", finished=True)
    Path(".out.sisod-partial/.parts").mkdir()
    recover(Path("out"))
    assert (text(), names("out"), names(".")) == ("new", ["a.txt", "run.json"], ["out"])


def test_what_somebody_else_calls_so_is_left_alone() -> None:
    made("out")
    for name in (".out.old", ".out.partial", ".out.sisod-old", ".out.sisod-partial"):
        made(name, None, "years of work")
    before = content(".")
    for name in (".out.sisod-old", ".out.sisod-partial"):
        with pytest.raises(
            InputError, match=f"refusing to delete '{name}': not created by sisod; move it elsewhere"
        ):
            write()
        assert content(".") == before
        shutil.move(name, "moved" + name)
        before = content(".")
    write()
    assert text() == "new"
    for name in (".out.old", ".out.partial", "moved.out.sisod-partial", "moved.out.sisod-old"):
        assert text(name) == "years of work"


def test_what_a_kill_left_is_removed() -> None:
    (made(".out.sisod-partial", "frames", "half") / "b.txt").touch()
    made(".out.sisod-partial-trash", "frames", "half")
    write(overwrite=False)
    assert (text(), names("out"), names(".")) == ("new", ["a.txt", "run.json"], ["out"])


@links
def test_links() -> None:
    made("disk/frames")
    Path("out").symlink_to("disk/frames")
    for new in ("one", "two", "three"):
        write(text=new)
        assert Path("out").is_symlink()
        assert (text("disk/frames"), names("disk")) == (new, ["frames"])
    made("elsewhere", None, "years of work")
    (made("full") / "link").symlink_to(Path("elsewhere").resolve())
    write("full")  # a link inside is not followed
    assert (text("elsewhere"), names("full")) == ("years of work", ["a.txt", "run.json"])
    Path("nowhere").symlink_to("disk/deep/frames")
    write("nowhere")
    assert (Path("nowhere").is_symlink(), text("disk/deep/frames")) == (True, "new")
    Path("loop").symlink_to("loop")
    with pytest.raises(InputError, match="'loop' is a link to itself; remove it"):
        write("loop")


# runs that can be resumed

CONFIG = {"network": {"name": "edn", "sizes": (1, 2)}, "seed": 3}


def run(*, work: str = "", finish: bool = False, **options: Any) -> Run:
    """Begin or resume a run; write one file, and stop or finish."""
    settings: dict[str, Any] = {"kind": "frames", "config": CONFIG, "resume": False, **options}
    with open_run(Path("out"), **settings) as found:
        if work:
            found.begin(note="x")
            (found.path / "a.txt").write_text(work)
            (found.path / SCRATCH).mkdir(exist_ok=True)
        if finish:
            found.finish(digest=["*.txt"], images=2)
    return found


def test_a_run_is_resumed_and_finished() -> None:
    run()  # looks, and writes nothing
    assert names(".") == []
    run(work="half")
    hidden = partial_folder(Path("out"))
    assert (names("."), read_run(hidden)["finished"]) == ([hidden.name], False)
    with pytest.raises(InputError, match=r"^a run into 'out' is unfinished; use --resume to go on with"):
        run(work="again")
    resumed = run(resume=True)
    assert (resumed.resumed, resumed.finished, text(resumed.path)) == (True, False, "half")
    run(work="all", finish=True, resume=True)
    assert (names("."), names("out"), text()) == (["out"], ["a.txt", "run.json"], "all")
    record = read_run(Path("out"))
    assert (record["note"], record["images"], record["finished"]) == ("x", 2, True)
    assert record["config"] == json.loads(json.dumps(CONFIG))
    assert run(resume=True).finished
    with pytest.raises(InputError, match=r"^'out' exists already; use --overwrite to replace it"):
        run()
    assert read_digested(Path("out/a.txt"), record["sha256"]) == b"all"
    Path("out/a.txt").write_text("of another result")
    with pytest.raises(InputError, match=r"^a\.txt is not the file that was saved with run\.json"):
        read_digested(Path("out/a.txt"), record["sha256"])


def test_another_run_is_not_resumed() -> None:
    run(work="half", in_place=True)
    assert names("out") == [".parts", "a.txt", "run.json"]
    other = {"network": {"name": "ldf", "sizes": [1, 2]}, "seed": 3}
    with pytest.raises(OtherRunError, match=r"^'out' is another run: network.name was 'edn' and is now"):
        run(resume=True, config=other)
    with pytest.raises(InputError, match=r"^'out' exists and is not a result of 'sisod predict'"):
        run(resume=True, kind="prediction")
    with pytest.raises(
        InputError, match=r"^a run into 'out' is unfinished; use --resume .* --overwrite"
    ):
        run(in_place=True)
    with pytest.raises(InputError, match=r"is unfinished; use --resume .*, or give another folder$"):
        run(in_place=True, overwrite=None)
    with pytest.raises(UsageError, match="choose one"):
        run(resume=True, overwrite=True)
    replaced = run(work="other", in_place=True, overwrite=True, config=other)
    assert (text(), text(replaced.path), replaced.path) == ("half", "other", partial_folder(Path("out")))
    assert run(resume=True).path == Path("out")  # each finds its own
    run(work="done", finish=True, resume=True, config=other)
    assert (text(), names(".")) == ("done", ["out"])
    (Path("out") / "run.json").write_text('{"sisod": "0.0.1", "kind": "frames"}')
    with pytest.raises(InputError, match="was written by another version of sisod"):
        run(resume=True)


def test_further_processes_write_nothing() -> None:
    first = run(work="half", in_place=True)
    before = content(".")
    other = run(work="", finish=True, in_place=True, is_writer=False)
    assert (other.path, content(".")) == (first.path, before)
