"""Sources of text that begin at a position pass over the malformed lines before it, and report those behind it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.formats.input_wait import InputWait
from cqels_py.sources import tail
from cqels_py.sources.protocol import Opening, Source
from cqels_py.sources.urls import source_of

STREAM = "http://example.org/s"
LINES = [
    f"wrong {n}\n" if n % 3 == 0 else f"{n},<http://example.org/s>,<http://example.org/v>,<http://example.org/{n}>\n"
    for n in range(1, 31)
]
ELEMENTS = [n for n in range(1, 31) if n % 3]
HEAD = "time,subject,predicate,object\n"


class Reading:
    """What is found by sources one after the other, each of which begins where the one before it ended."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.elements: list[int] = []
        self.reports: list[str] = []

    def opened(self, position: object) -> Source:
        def report(error: Any) -> None:
            self.reports.append(str(error.element))

        wait = InputWait(0.0, 30.0)
        opening = Opening(
            stream=STREAM,
            number=0,
            dictionary=Dictionary(),
            on_error="skip",
            report=report,
            position=position,
            wait=wait,
        )
        return source_of(self._url).open(opening)

    def poll(self, source: Source) -> None:
        batch = source.poll()
        assert batch is not None
        self.elements += [time // 1_000_000 for time in batch.time.tolist()]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "CHUNK_BYTES", 400)
    monkeypatch.setattr(InputWait, "pause", 0.001)


@pytest.mark.parametrize("seed", range(5))
def test_a_growing_file(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    file = tmp_path / "readings.csv"
    file.write_text(HEAD)
    reading = Reading(f"tail:{file}")
    source, left = reading.opened(None), [line.replace(",", "000000,", 1) for line in LINES]
    for _ in range(200):
        if len(reading.elements) == len(ELEMENTS) and len(reading.reports) == 10:
            break
        with file.open("a") as writer:
            for _ in range(random.randrange(5)):
                writer.write(left.pop(0) if left else "")
        for _ in range(random.randrange(8)):
            reading.poll(source)
        if random.random() < 0.3:
            position = source.position()
            source.close()
            source = reading.opened(position)
    source.close()
    assert reading.elements == ELEMENTS
    assert reading.reports == [f"wrong {n}" for n in range(3, 31, 3)]


def test_a_file_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for place in range(2):
        lines = [line.replace(",", "000000,", 1) for line in LINES[15 * place : 15 * place + 15]]
        (folder / f"{place}.csv").write_text(HEAD + "".join(lines))
    reading = Reading(f"dir:{folder}?position={tmp_path / 'position'}")
    for _ in range(8):
        source = reading.opened(None)
        for _ in range(3):
            reading.poll(source)
        source.commit(source.position())
        source.close()
    assert reading.elements == ELEMENTS
    assert reading.reports == [f"wrong {n}" for n in range(3, 31, 3)]
