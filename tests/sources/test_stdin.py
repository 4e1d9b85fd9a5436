"""Standard input, read as it comes."""

from __future__ import annotations

import io
import os
import sys

import pytest

from cqels_py.sources.stdin import standard_input_chunks


def test_bytes_are_read_as_they_become_available(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as reader, os.fdopen(write, "wb", buffering=0) as writer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(reader))
        chunks = standard_input_chunks(8)
        writer.write(b"first\n")
        assert next(chunks) == b"first\n"
        writer.write(b"the second\n")
        assert [next(chunks), next(chunks)] == [b"the seco", b"nd\n"]
        writer.close()
        assert list(chunks) == []


def test_an_input_without_a_file_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text\n")))
    assert list(standard_input_chunks()) == [b"text\n"]
