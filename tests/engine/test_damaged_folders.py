"""Files of a checkpoint that are damaged, missing, exchanged, or of another folder: results are right, or it is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import cqels_py as cqels
from cqels_py.checkpoints import savepoints
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.engine.engine import Engine
from tests.support.faults import crashed

STREAM = "http://ex.org/s"
SUM = f"SELECT (SUM(?v) AS ?n) {{ STREAM <{STREAM}> [RANGE 1h] {{ ?s <http://ex.org/p> ?v }} }}"
PUSHES = 11
"""Elements of a session; behind each third the state is saved."""


def push(engine: Engine, second: int, value: int) -> None:
    triple = ("<http://ex.org/x>", "<http://ex.org/p>", f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>')
    engine.push(STREAM, [triple], time=second * 1_000_000)


def values(base: int) -> list[int]:
    return [base + (3**at) for at in range(PUSHES)]


def session(folder: Path, pushed: list[int], *, closed: bool, history: Path | None = None, start: int = 0) -> None:
    """An engine that takes in values. `history`: gets a copy of the folder behind each element."""
    engine = cqels.Engine(checkpoint=folder)
    engine.register(SUM, name="sum")
    for at, value in enumerate(pushed, start):
        push(engine, at, value)
        if history is not None:
            shutil.copytree(folder, history / str(at))
        if at % 3 == 2:
            engine.checkpoint()
    if closed:
        engine.close()
    else:
        crashed(engine)


def reopened(folder: Path) -> tuple[int, str, list[str]]:
    """How many elements a folder has, the sum of their values and of 1, and the reports of opening it."""
    said = list[str]()
    engine = cqels.Engine(checkpoint=folder, report=lambda error: said.append(str(error)))
    try:
        query = engine.register(SUM, name="sum")
        taken = engine.statistics.elements
        for _ in query.results():
            pass
        push(engine, PUSHES, 1)
        (*_, last) = query.results()
        return taken, str(last.bindings["n"]), said
    finally:
        engine.close()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of an engine that was closed or not, of another engine, and of one that went on from a copy."""
    root = tmp_path_factory.mktemp("folders")
    session(root / "killed", values(1), closed=False, history=root / "history")
    session(root / "closed", values(1), closed=True, history=root / "history-closed")
    session(root / "other", values(5), closed=True)
    for number in (7, 9):
        copy = root / f"copy-{number}"
        savepoints.copy(root / "history" / str(number), copy)
        session(copy, values(8)[number + 1 :], closed=False, start=number + 1)
    return root


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


def flip(folder: Path, name: str, random: Random, folders: Path) -> None:
    data = bytearray((folder / name).read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    (folder / name).write_bytes(data)


def cut(folder: Path, name: str, random: Random, folders: Path) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: random.randrange(len(data))])


def cut_between_records(folder: Path, name: str, random: Random, folders: Path) -> None:
    data = (folder / name).read_bytes()
    ends = [at for at in range(1, len(data)) if data[at : at + 4] == b"\xa5log"] or [len(data) - 1]
    (folder / name).write_bytes(data[: random.choice(ends)])


def remove(folder: Path, name: str, random: Random, folders: Path) -> None:
    (folder / name).unlink()


def exchange(folder: Path, name: str, random: Random, folders: Path) -> None:
    other = folder / random.choice([each for each in files(folder) if each != name])
    data = other.read_bytes()
    other.write_bytes((folder / name).read_bytes())
    (folder / name).write_bytes(data)


def replace(folder: Path, name: str, random: Random, folders: Path) -> None:
    """By the file of this name of another folder, such as an older copy."""
    found = sorted(each for each in folders.rglob(name) if each.read_bytes() != (folder / name).read_bytes())
    if found:
        shutil.copy(random.choice(found), folder / name)


Damage = Callable[[Path, str, Random, Path], None]


@pytest.mark.parametrize("kind", ["killed", "closed"])
@pytest.mark.parametrize("damage", [flip, cut, cut_between_records, remove, exchange, replace])
def test_whatever_happens_to_a_file_results_are_right_or_refused(
    damage: Damage, kind: str, folders: Path, tmp_path: Path
) -> None:
    random = Random(f"{damage.__name__} {kind}")
    refused = 0
    last_log = files(folders / kind)[-3]
    assert last_log.endswith("3.log")
    for attempt, name in enumerate(2 * files(folders / kind)):
        folder, copy = tmp_path / f"{attempt}", tmp_path / f"{attempt}-copy"
        shutil.copytree(folders / kind, folder)
        damage(folder, name, random, folders)
        damaged = {each for each in files(folder) if (folder / each).read_bytes() != _content(folders / kind / each)}
        try:
            taken, found, said = reopened(folder)
        except StorageError as error:
            refused += 1
            assert str(folder) in error.message, error
            # What is copied before the damage can be gone on from.
            try:
                savepoints.copy(folder, copy, intact=True)
            except StorageError:
                assert "Nothing of the folder" in error.message
                continue
            assert "cqels checkpoint copy --intact" in error.message
            taken, found, said = reopened(copy)
        else:
            if taken < PUSHES:
                # Of a log that no process has closed, the end may be missing, as after a crash.
                assert kind == "killed" and damaged == {last_log}, (damaged, said)
                assert said or damage in (cut_between_records, replace)
        assert found == f"{sum(values(1)[:taken]) + 1}", (name, taken, damaged, said)
    assert refused > (1 if damage is not flip else 3)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
