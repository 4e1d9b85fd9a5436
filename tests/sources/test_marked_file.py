"""A file of N-Quads is read on from any position that a reader of it has told, in chunks of any size."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.sources import marked_file
from cqels_py.sources.marked_file import MarkedFile
from cqels_py.sources.protocol import Opening

EX = "http://ex.org/"
STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"
INSIDE = f"{EX}at"


def drawn(draw: Random, *, inside: bool, damaged: bool) -> str:
    """Elements of several triples, with triples about them, times that stand far ahead, and lines that are wrong."""
    lines = ["# a comment"] * draw.randrange(2)
    for number in range(draw.randrange(1, 30)):
        graph = f"<{EX}g{number}>"
        time = f'"2024-01-01T00:00:{draw.randrange(60):02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        if damaged and draw.random() < 0.2:
            time = '"never"'
        rows = [f"_:b{draw.randrange(3)} <{EX}p> _:b{draw.randrange(3)} {graph} ." for _ in range(draw.randrange(1, 5))]
        if draw.random() < 0.3:
            rows.append(f'{graph} <{EX}of> "{"x" * draw.randrange(40)}" .')
        if damaged and draw.random() < 0.2:
            rows.insert(draw.randrange(len(rows) + 1), "nothing")
        if inside:
            rows.append(f"<{EX}x> <{INSIDE}> {time} {graph} .")
            lines += rows
        else:
            stamp = f"{graph} {STAMP} {time} ."
            lines.insert(draw.choice([len(lines), len(lines), max(0, len(lines) - 3)]), stamp)
            lines += rows
    return "\n".join(lines) + "\n" * draw.randrange(2)


def shown(batch: ElementBatch, dictionary: Dictionary) -> list[Any]:
    columns = [dictionary.decode(column) for column in (batch.subject, batch.predicate, batch.object)]
    found = []
    for at, time in enumerate(batch.time.tolist()):
        first, last = batch.first[at : at + 2].tolist()
        found.append(
            (time, [tuple(map(str, row)) for row in zip(*(each[first:last] for each in columns), strict=True)])
        )
    return found


class Reading:
    """What a reader finds: elements, and the lines of malformed input. `positions`: after each poll, with how many of both."""

    def __init__(self, path: Path, blank_nodes: str, predicate: str | None, position: Any = None) -> None:
        dictionary = Dictionary()
        self.elements: list[Any] = []
        self.told: list[str] = []
        self.positions: list[tuple[Any, int]] = []
        opening = Opening(
            stream=EX,
            number=0,
            dictionary=dictionary,
            time_predicate=predicate,
            on_error="skip",
            report=lambda error: self.told.append(str(error)),
            blank_nodes=blank_nodes,
            position=position,
            continues=True,
        )
        source = MarkedFile(str(path), opening)
        self.positions.append((source.position(), 0))
        while (batch := source.poll()) is not None:
            self.elements += shown(batch, dictionary)
            self.positions.append((source.position(), len(self.elements)))
        source.close()


@pytest.mark.parametrize("seed", range(10))
def test_any_position_leads_to_the_rest(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(seed)
    inside, blank_nodes = draw.random() < 0.4, draw.choice(["source", "element"])
    path = tmp_path / "a.nq"
    path.write_text(drawn(draw, inside=inside, damaged=seed % 3 == 0))
    predicate = INSIDE if inside else None
    whole = Reading(path, blank_nodes, predicate)
    skipped = 0
    for size in (40, 200, 1000):
        monkeypatch.setattr(marked_file, "CHUNK_BYTES", size)
        first = Reading(path, blank_nodes, predicate)
        assert first.elements == whole.elements
        assert sorted(first.told) == sorted(whole.told)
        for position, taken in first.positions:
            again = Reading(path, blank_nodes, predicate, position)
            assert again.elements == whole.elements[taken:], position
            # What is wrong behind the mark is told again; an element that has begun before it may be told later.
            assert again.told == [each for each in first.told if int(each.split(":")[1]) >= position[1]]
            assert len(again.told) == len(first.told) - position[4]
            skipped += position[0] > 0
            # Also those that it tells lead on.
            for later, more in again.positions[:: 1 + len(again.positions) // 3]:
                assert Reading(path, blank_nodes, predicate, later).elements == whole.elements[taken + more :]
    assert skipped or len(whole.elements) < 5


def test_an_error_that_ends_the_reading_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marked_file, "CHUNK_BYTES", 400)
    path = tmp_path / "a.nq"
    path.write_text(drawn(Random(5), inside=False, damaged=False) + "\nnothing\n")
    opening = Opening(stream=EX, number=0, dictionary=Dictionary(), continues=True)
    source, found, position = MarkedFile(str(path), opening), 0, None
    line = len(path.read_text().splitlines())
    with pytest.raises(DataError, match=f"a.nq:{line}:1: expected the subject"):
        while (batch := source.poll()) is not None:
            found, position = found + len(batch), source.position()
    assert position is not None
    assert position[0] > 0
    again = MarkedFile(
        str(path), Opening(stream=EX, number=0, dictionary=Dictionary(), continues=True, position=position)
    )
    with pytest.raises(DataError, match=f"a.nq:{line}:1: expected the subject"):
        while True:
            assert not len(again.poll() or ())
