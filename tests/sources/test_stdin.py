"""The first bytes of standard input can be looked at, and are still there to be read."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import IO

import pytest

from cqels_py.sources.stdin import FIRST_BYTES, StandardInput, standard_input, standard_input_chunks


@pytest.fixture
def pipe() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Where standard input reads, and where somebody writes."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as reader, os.fdopen(write, "wb", buffering=0) as writer:
        yield reader, writer


def test_what_has_been_looked_at_is_read_once_and_in_order(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    reader, writer = pipe
    given = StandardInput(reader)
    assert given.first() is None
    writer.write(b"first\n")
    assert given.first() == b"first\n"
    writer.write(b"second\n")
    assert given.first() == b"first\n"
    assert given.read(4) == b"firs"
    assert given.read(100) == b"t\n"
    assert given.read(100) == b"second\n"
    writer.close()
    assert given.read(100) == b""
    assert given.first() == b"first\n"


def test_what_was_read_before_anybody_looked_can_be_looked_at(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    reader, writer = pipe
    given = StandardInput(reader)
    text = bytes(range(256)) * (FIRST_BYTES // 256 + 10)
    writer.write(text)
    assert given.read(1 << 20) == text
    assert given.first() == text[:FIRST_BYTES]
    writer.write(b"more")
    assert given.read(1 << 20) == b"more"


def test_looking_takes_no_more_than_it_may(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    reader, writer = pipe
    given = StandardInput(reader)
    text = b"line\n" * FIRST_BYTES
    writer.write(text[: 1 << 16])
    assert given.first() == text[:FIRST_BYTES]
    assert given.read(1 << 20) + given.read(1 << 20) == text[: 1 << 16]


def test_the_end_is_one(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    reader, writer = pipe
    given = StandardInput(reader)
    writer.close()
    assert given.first() == b""
    assert given.read(100) == b""


def test_who_cannot_be_asked_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text\n")))
    assert standard_input().first() is None
    assert list(standard_input_chunks()) == [b"text\n"]
    assert standard_input().first() == b"text\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"other\n")))
    assert standard_input().first() is None
