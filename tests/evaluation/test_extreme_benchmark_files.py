"""Every key of a benchmark file with extreme values: accepted with a meaning, or one sentence."""

from pathlib import Path

import numpy as np
import pytest
from helpers.extreme_values import EXTREME_VALUES
from helpers.messages import check_one_sentence

from sisod.common.exceptions import InputError
from sisod.evaluation.benchmark import read_benchmark
from sisod.evaluation.driver import check_request
from sisod.evaluation.request import Options

PLACES = {
    "metrics": "metrics = {}\n",
    "protocol": "protocol = {}\n",
    "datasets": "datasets = {}\n",
    "methods": "methods = {}\n",
    "data set": "[datasets]\nE = {}\n",
    "gt": "[datasets.E]\ngt = {}\n",
    "suffix of a data set": "[datasets.E]\ngt = 'gt'\nsuffix = {}\n",
    "method": "[methods]\nN = {}\n",
    "pred": "[methods.N]\npred = {}\n",
    "pred of a data set": "[methods.N]\npred = {{ D = {} }}\n",
    "suffix of a method": "[methods.N]\npred = 'maps'\nsuffix = {}\n",
}


@pytest.mark.parametrize("place", PLACES)
def test_an_extreme_value_in_a_benchmark_file(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("gt", "maps"):
        Path(folder).mkdir()
        np.save(Path(folder, "a.npy"), np.eye(4, dtype=bool))
    rest = "[datasets.D]\ngt = 'gt'\n[methods.M]\npred = 'maps'\n"
    for value in EXTREME_VALUES.values():
        top = place in ("metrics", "protocol", "datasets", "methods")
        for text in (
            PLACES[place].format(value) + rest * top,
            rest * (not top) + PLACES[place].format(value),
        ):
            Path("b.toml").write_text(text, encoding="utf-8")
            try:
                check_scorable()
            except InputError as error:
                check_one_sentence(str(error))


def check_scorable() -> None:
    """What `sisod evaluate` does before it scores."""
    for name, request in read_benchmark(["b.toml"]).requests().items():
        check_request(request, Options(jobs=1), Path("out", *name))


NAMES = [
    "''",
    "'.'",
    "'..'",
    "'a/b'",
    '"a\\u0000b"',
    '"a\\nb"',
    "'" + "x" * 300 + "'",
    "'.x'",
    "'Größe 😀'",
]


@pytest.mark.parametrize("name", NAMES)
def test_an_extreme_name_in_a_benchmark_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (
        f"[datasets.{name}]\ngt = 'gt'\n[methods.M]\npred = 'maps'\n",
        f"[datasets.D]\ngt = 'gt'\n[methods.{name}]\npred = 'maps'\n",
        f"[datasets.{name}]\n[methods.M]\npred = 'maps'\n",
        f"[datasets.D]\ngt = 'gt'\n[methods.{name}]\npred = 3\n",
        f"[datasets.D]\ngt = 'gt'\n[methods.M]\npred = {{ {name} = 'x' }}\n",
    ):
        Path("b.toml").write_text(text, encoding="utf-8")
        with pytest.raises(InputError) as caught:  # there are no folders
            check_scorable()
        check_one_sentence(str(caught.value))
