"""A run that stopped at malformed input in a file goes on when that has been mended, if everything before it is as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from cqels_py.engine.durable import logged
from cqels_py.engine.durable.file_marks import FileMark
from cqels_py.errors import DataError, UsageError
from cqels_py.sources import marked_file
from tests.engine.test_files_again import Process, Receiver, written

S = "http://ex.org/s"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marked_file, "CHUNK_BYTES", 600)
    monkeypatch.setattr("cqels_py.engine.durable.registration.new_seed", lambda: "5e" * 16)


def spoiled(path: Path, at: int) -> tuple[str, str]:
    """The text of a file in which a line is malformed, and the mended one, which has no element of the last lines."""
    lines = path.read_text().splitlines(keepends=True)
    return "".join([*lines[:at], "nonsense\n", *lines[at + 1 :]]), "".join(lines[:-4])


@pytest.mark.parametrize("is_logged", [True, False])
@pytest.mark.parametrize("form", ["csv", "nq", "ndjson"])
def test_the_results_are_those_of_the_mended_file(
    form: str, is_logged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logged, "pays", lambda files, state: not is_logged)
    sources = written(tmp_path, form)
    path = Path(sources[S])
    wrong, mended = spoiled(path, 41 if form == "nq" else 22)
    path.write_text(mended)
    whole, receiver = Receiver(), Receiver()
    with Process(tmp_path / "whole", whole, ["join"]) as engine:
        engine.run(sources)
        elements = engine.statistics.elements
    path.write_text(wrong)
    for _ in range(2):
        with (
            Process(tmp_path / "c", receiver, ["join"]) as engine,
            pytest.raises(DataError, match=r"s\.\w+:(23|42)"),
        ):
            engine.run(sources)
    assert 0 < engine.statistics.elements < elements
    path.write_text(mended.replace("2024", "2025", 1))
    with Process(tmp_path / "c", receiver, ["join"]) as engine, pytest.raises(UsageError, match="has changed since"):
        engine.run(sources)
    path.write_text(mended)
    for _ in range(2):
        with Process(tmp_path / "c", receiver, ["join"]) as engine:
            engine.run(sources)
    assert receiver.results == whole.results
    assert engine.statistics.elements == elements


@pytest.mark.parametrize("line", [1, 2, 3, 4, 40_000])
def test_the_mark_ends_before_the_line(line: int, tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    lines = [f"line {'x' * (number % 90)} {number}\n" for number in range(50_000)]
    path.write_text("".join(lines))
    mark = FileMark.before(path, line)
    assert mark is not None
    assert mark.size == len("".join(lines[: line - 1]))
    path.write_text("".join(lines[: line - 1]) + "another")
    assert mark.is_beginning_of(path)
    assert FileMark.before(tmp_path / "a.trig", line) is None
