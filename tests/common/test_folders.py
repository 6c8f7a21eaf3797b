"""Output replaces only output of its own kind, at the very end; a kill at any step loses nothing."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers.folder_contents import content, names
from helpers.platforms import links

from sisod.common import folders
from sisod.common.errors import InputError
from sisod.common.folders import (
    check_free,
    choose_folder,
    discard,
    kind_of,
    partial_folder,
    put_in_place,
    recover,
    write_folder,
)

pytestmark = pytest.mark.usefixtures("inside_tmp_path")

KINDS = ("ablation", "demo", "evaluation", "frames", "labels", "prediction", "scenes", "training")


def made(path: str, kind: str | None = "frames", text: str = "old", **more: Any) -> Path:
    """A folder of one file, with a record unless kind is None."""
    folder = Path(path)
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text(text)
    if kind is not None:
        record = {"sisod": "0.1.0", "kind": kind, **more}
        (folder / "run.json").write_text(json.dumps(record))
    return folder


def write(
    folder: str = "out", text: str = "new", fail: type[BaseException] | None = None, **options: Any
) -> None:
    settings: dict[str, Any] = {"kind": "frames", "overwrite": True, **options}
    with write_folder(Path(folder), **settings) as inside:
        (inside / "a.txt").write_text(text)
        if fail is not None:
            raise fail


def text(folder: str = "out") -> str:
    return (Path(folder) / "a.txt").read_text()


# whose a folder is


@pytest.mark.parametrize("there", KINDS)
@pytest.mark.parametrize("wanted", KINDS)
def test_a_command_replaces_its_own_results_only(there: str, wanted: str) -> None:
    made("out", there)
    if there == wanted:
        check_free(Path("out"), kind=wanted, overwrite=True)
        with pytest.raises(InputError, match=r"^'out' exists already; use --overwrite to replace it"):
            check_free(Path("out"), kind=wanted, overwrite=False)
        return
    before = content("out")
    match = r"^'out' is a result of 'sisod \w+' and not of 'sisod \w+'; it is not replaced, give another"
    with pytest.raises(InputError, match=match):
        write(kind=wanted)
    assert (content("out"), names(".")) == (before, ["out"])


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"sisod": "0.1.0", "protocol": {}, "metrics": [], "images": 3}, "evaluation"),
        ({"sisod": "0.1.0", "finished": True, "asked": {}, "versions": {}}, "training"),
        ({"sisod": "0.1.0", "torch": "2", "command": "predict", "finished": True}, "prediction"),
        ({"sisod": "0.1.0", "command": "frames", "protocol": "default"}, "frames"),
        ({"sisod": "0.1.0", "command": "demo", "plan": {}, "finished": True}, "demo"),
        ({"sisod": "0.1.0", "images": 3}, None),  # could be anything
        ({"command": "frames"}, None),  # somebody else's run.json
        ({"kind": "frames"}, None),
        ({}, None),
        (["sisod"], None),
        ("sisod", None),
    ],
)
def test_records_without_a_kind(record: Any, kind: str | None) -> None:
    folder = made("out", None)
    (folder / "run.json").write_text(json.dumps(record))
    assert kind_of(folder) == kind
    if kind is None:
        with pytest.raises(InputError, match="exists and is not a result of sisod; it is not replaced"):
            write()


@pytest.mark.parametrize("damaged", ["", "{", "\xff"])
def test_a_damaged_record_is_nobodys(damaged: str) -> None:
    (made("out", None) / "run.json").write_bytes(damaged.encode("latin-1"))
    assert kind_of(Path("out")) is None


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


def test_the_new_one_takes_the_place_at_the_end() -> None:
    write()
    assert (text(), kind_of(Path("out")), names(".")) == ("new", "frames", ["out"])
    with write_folder(Path("out"), kind="frames", overwrite=True) as inside:
        (inside / "b.txt").touch()
        assert (text(), names(".")) == ("new", [".out.sisod-lock", ".out.sisod-new", "out"])
    assert (names("out"), names(".")) == (["b.txt", "run.json"], ["out"])


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, InputError, MemoryError])
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

    real_rename, real_remove = Path.rename, folders._remove

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
        inside.setattr(folders, "_remove", remove)
        put_in_place(Path("new"), Path("out"))
    assert real_remove is folders._remove
    seen = []
    for step in steps:
        recover(step / "out")
        seen.append(text(str(step / "out")))
        discard(step / "new")
        assert names(step) == ["out"]
        shutil.rmtree(step)
    assert seen == ["old", "old", "new", "new", "new", "new"]


def test_what_somebody_else_calls_so_is_left_alone() -> None:
    made("out")
    for name in (".out.old", ".out.partial", ".out.sisod-old", ".out.sisod-new", ".out.sisod-partial"):
        made(name, None, "years of work")
    before = content(".")
    for name in (".out.sisod-old", ".out.sisod-new"):
        with pytest.raises(InputError, match=f"'{name}' is in the way and is not removed: it is not of"):
            write()
        assert content(".") == before
        shutil.move(name, "moved" + name)
        before = content(".")
    write()
    assert text() == "new"
    for name in (".out.old", ".out.partial", ".out.sisod-partial", "moved.out.sisod-old"):
        assert text(name) == "years of work"


def test_what_a_kill_left_is_removed() -> None:
    made(".out.sisod-new", "frames", "half")
    made(".out.sisod-new-trash", "frames", "half")
    write(overwrite=False)
    assert (text(), names(".")) == ("new", ["out"])


@links
def test_a_folder_that_is_a_link() -> None:
    made("disk/frames")
    Path("out").symlink_to("disk/frames")
    for new in ("one", "two", "three"):
        write(text=new)
        assert Path("out").is_symlink()
        assert (text("disk/frames"), names("disk")) == (new, ["frames"])
    with pytest.raises(InputError, match="exists already; use --overwrite"):
        write(overwrite=False)
    assert names(".") == ["disk", "out"]


@links
def test_a_link_that_leads_nowhere_is_made_to_lead_somewhere() -> None:
    Path("out").symlink_to("disk/deep/frames")
    write(overwrite=False)
    assert (Path("out").is_symlink(), text("disk/deep/frames")) == (True, "new")
    Path("loop").symlink_to("loop")
    with pytest.raises(InputError, match="'loop' is a link to itself; remove it"):
        write("loop")


@links
def test_links_inside_an_old_result_are_not_followed() -> None:
    made("elsewhere", None, "years of work")
    (made("out") / "link").symlink_to(Path("elsewhere").resolve())
    write()
    assert (text("elsewhere"), names("out")) == ("years of work", ["a.txt", "run.json"])


def test_the_folder_one_is_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made("out")
    monkeypatch.chdir("out")
    write(".")
    assert (text(str(tmp_path / "out")), names(tmp_path)) == ("new", ["out"])


# runs that can be resumed


def chosen(**options: Any) -> tuple[str, bool]:
    settings: dict[str, Any] = {"kind": "frames", "resume": False, "overwrite": False, **options}
    settings.setdefault("differs", lambda folder: None if text(str(folder)) == "same" else "other run")
    folder, goes_on = choose_folder(Path("out"), **settings)
    return str(folder), goes_on


def test_where_a_run_works() -> None:
    beside = ".out.sisod-partial"
    assert chosen() == chosen(resume=True) == ("out", False)
    assert chosen(overwrite=True) == (beside, False)
    made("out", text="same")
    assert chosen(resume=True) == ("out", True)
    assert chosen(overwrite=True) == (beside, False)
    made(str(partial_folder(Path("out"))), text="other")
    assert chosen(resume=True) == ("out", True)  # what is beside is another
    with pytest.raises(InputError, match=r"^a run into 'out' is unfinished; use --resume to go on"):
        chosen()
    (Path("out") / "a.txt").write_text("other")
    with pytest.raises(InputError, match=r"^other run$"):
        chosen(resume=True)
    (Path(beside) / "a.txt").write_text("same")
    assert chosen(resume=True) == (beside, True)
    for options in ({}, {"overwrite": True}):
        with pytest.raises(
            InputError, match="in the way and is not removed: it is an unfinished run of 'sisod frames'"
        ):
            chosen(kind="prediction", **options)
