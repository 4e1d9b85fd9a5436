"""Compressed sources, sources that are not there, endings that nobody knows, standard input."""

from __future__ import annotations

import gzip
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, MissingExtra, UsageError
from cqels_py.formats import compression
from cqels_py.formats.compression import CHUNK_BYTES, read_chunks
from cqels_py.formats.static import load_static
from cqels_py.sources.stdin import standard_input_chunks
from tests.formats.reading import TIME, Source, ahead, instant, iri, read_source

LINES = [f"{iri(f's{i * 7919}')} <{TIME}> {instant(i % 60)} .\n" for i in range(20_000)]
TEXT = "".join(LINES).encode()


def test_compressed_files_are_read_like_others(source: Source) -> None:
    plain = source("s.nt", TEXT, time_predicate=TIME).elements
    assert len(plain) == 20_000
    assert source("s.nt.gz", gzip.compress(TEXT), time_predicate=TIME).elements == plain
    assert source("s.nt.zst", zstandard.compress(TEXT), time_predicate=TIME).elements == plain
    assert source("S.NT.GZ", gzip.compress(TEXT), time_predicate=TIME).elements == plain


def test_parts_that_were_compressed_apart_are_one_stream(source: Source) -> None:
    half = len("".join(LINES[:10_000]))
    for name, compress in (("s.nt.gz", gzip.compress), ("s.nt.zst", zstandard.compress)):
        both = compress(TEXT[:half]) + compress(TEXT[half:])
        assert len(source(name, both, time_predicate=TIME).elements) == 20_000


@pytest.mark.parametrize("chunk_bytes", [1000, 1 << 22])
@pytest.mark.parametrize(("name", "compress"), [("s.nt.gz", gzip.compress), ("s.nt.zst", zstandard.compress)])
def test_the_content_of_a_truncated_file_is_delivered_first(
    source: Source, name: str, compress: object, chunk_bytes: int
) -> None:
    whole = compress(TEXT)  # type: ignore[operator]
    # zstd keeps blocks of 128 KiB, of which there is more than one.
    read = source(name, whole[: len(whole) * 3 // 4], time_predicate=TIME, chunk_bytes=chunk_bytes)
    assert 5_000 < len(read.elements) < 20_000
    assert [e[0][0] for e in read.triples] == [iri(f"s{i * 7919}") for i in range(len(read.elements))]
    assert name in str(read.error)
    assert "ends early" in str(read.error)
    skipping = source(name, whole[: len(whole) * 3 // 4], time_predicate=TIME, on_error="skip")
    assert "ends early" in str(skipping.error)


@pytest.mark.parametrize("name", ["s.nt.gz", "s.nt.zst", "s.parquet", "s.ttl.gz"])
def test_files_whose_content_differs_from_their_suffix(source: Source, name: str) -> None:
    read = source(name, b"plain text, and rather more than a header of it " * 10, time_predicate=TIME)
    assert name in str(read.error)
    assert re.search(r"not (a )?valid", str(read.error))


@given(
    st.lists(st.text("ab", max_size=9).map(str.encode), max_size=30).map(b"\n".join),
    st.integers(1, 60),
    st.integers(1, 20),
)
def test_chunks_of_a_file_end_with_lines_where_these_are_short(text: bytes, chunk_bytes: int, near: int) -> None:
    with TemporaryDirectory() as folder, patch.object(compression, "_NEAR", near):
        path = Path(folder) / "s.nt"
        path.write_bytes(text)
        chunks = list(read_chunks(str(path), chunk_bytes))
    assert b"".join(chunks) == text
    assert all(0 < len(chunk) <= chunk_bytes for chunk in chunks)
    for i, chunk in enumerate(chunks[:-1]):
        following = b"".join(chunks[i + 1 :])
        # None ends within a line whose end could have been seen.
        seen = (chunk + following)[max(0, chunk_bytes - near) : chunk_bytes]
        assert chunk.endswith(b"\n") or b"\n" not in seen


@given(st.lists(st.binary(max_size=9), max_size=9), st.lists(st.integers(-1, 5), max_size=40))
def test_chunks_are_read_like_a_file(chunks: list[bytes], sizes: list[int]) -> None:
    stream, all_of_it = compression.ByteStream(iter(chunks)), b"".join(chunks)
    read = [(size, stream.read(size)) for size in sizes]
    assert all(len(found) <= size for size, found in read if size >= 0)
    got = b"".join(found for _, found in read)
    assert all_of_it.startswith(got)
    if any(size != 0 and not found for size, found in read):
        assert got == all_of_it


def test_an_error_of_chunks_ends_them_and_is_kept() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"abc"
        raise DataError("broken")

    stream = compression.ByteStream(chunks())
    assert [stream.read(2) for _ in range(4)] == [b"ab", b"c", b"", b""]
    assert "broken" in str(stream.error)


def test_empty_files_hold_no_elements(source: Source) -> None:
    for name in ("s.nt", "s.nq", "s.ttl", "s.trig", "s.ndjson", "s.csv", "s.tsv"):
        assert source(name, b"").elements == []
        read = source(f"{name}.gz", gzip.compress(b""), time_predicate=TIME)
        assert (read.elements, read.error) == ([], None), name
    assert source("s.nq", "# nothing\n\n").elements == []


def test_zstandard_is_an_extra(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtra, match=r"pip install 'cqels_py\[zstd\]'"):
        source("s.nt.zst", zstandard.compress(TEXT), time_predicate=TIME)


@pytest.mark.parametrize("name", ["missing.nq", "missing.parquet", "missing.csv.gz"])
def test_a_missing_file_is_named_at_once(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"no file .*{name}"):
        read_source(tmp_path / name)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.nq").mkdir()
    with pytest.raises(UsageError, match=r"folder\.nq is a folder"):
        read_source(tmp_path / "folder.nq")


def test_unknown_endings_come_with_those_known(source: Source) -> None:
    for name in ("stream.docx", "stream", "stream.gz", "stream.docx.gz"):
        with pytest.raises(UsageError, match=name) as raised:
            source(name, b"")
        for ending in (".nq", ".nt", ".ttl", ".trig", ".csv", ".tsv", ".parquet", ".ndjson", ".gz", ".zst"):
            assert ending in str(raised.value)


def test_other_schemes_and_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ftp://"):
        read_source("ftp://ex.org/s.nq")
    with pytest.raises(UsageError, match="'stop' or 'skip'"):
        read_source(tmp_path, on_error="ignore")


class Input:
    """Standard input that delivers its bytes in the pieces in which they were written."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.buffer = self

    def read1(self, size: int) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def test_standard_input_is_n_quads(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ahead(iri("g"), 1) + f"{iri('a')} {iri('p')} {iri('b')} {iri('g')} .\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert len(read_source("-").elements) == 1
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"oops\n")))
    assert "<stdin>:1:1: " in str(read_source("-").error)


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_the_error_of_another_format_on_standard_input_names_the_expected_one(
    monkeypatch: pytest.MonkeyPatch, on_error: str
) -> None:
    good = ahead(iri("g"), 1) + f"{iri('a')} {iri('p')} {iri('b')} {iri('g')} .\n"
    for text, told in (("time,subject,predicate,object\n", True), (good + "oops\n", False)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        read = read_source("-", on_error=on_error)
        [message] = read.reported or [str(read.error)]
        assert ("standard input (-) is read as N-Quads" in message) is told


def test_standard_input_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Input(b"a\n", b"b", b"c\n")
    monkeypatch.setattr(sys, "stdin", pipe)
    chunks = standard_input_chunks()
    assert next(chunks) == b"a\n"
    assert len(pipe.pieces) == 2
    assert list(chunks) == [b"b", b"c\n"]


def test_a_broken_file_is_an_error_of_the_data(tmp_path: Path) -> None:
    path = tmp_path / "s.nt"
    path.write_bytes(TEXT)
    path.chmod(0)
    try:
        path.read_bytes()
    except PermissionError:
        with pytest.raises(DataError, match=r"cannot read .*s\.nt"):
            list(read_chunks(str(path)))


@pytest.mark.parametrize(("name", "compress"), [("s.nt.gz", gzip.compress), ("s.nt.zst", zstandard.compress)])
def test_data_that_expands_a_thousand_times_comes_in_pieces(tmp_path: Path, name: str, compress: object) -> None:
    path = tmp_path / name
    path.write_bytes(compress(bytes(300 << 20)))  # type: ignore[operator]
    sizes = [len(chunk) for chunk in read_chunks(str(path))]
    assert sum(sizes) == 300 << 20
    # A piece of compressed data, and the data before it.
    assert max(sizes) <= CHUNK_BYTES + (17 << 20)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("readigns.nq", "there is no file .*readigns.nq: did you mean .*readings.nq\\?"),
        ("away/readings.nq", "nor a folder .*away"),
        ("other.nq", "there is no file .*other.nq$"),
        ("table.cvs", "the ending '.cvs' .*: did you mean table.csv\\?"),
        ("table.txt", "the ending '.txt' .*: rename it by the format that it has, as table.nt"),
        ("table", "has no ending.*: rename it"),
        ("table.csv.zip", "the ending '.zip' .*: decompress it first, or compress it with gzip or zstd"),
    ],
)
def test_wrong_names_of_files_say_which_may_be_meant(tmp_path: Path, given: str, said: str) -> None:
    for name in ("readings.nq", "table.cvs", "table.txt", "table", "table.csv.zip"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match=said):
        read_source(tmp_path / given)


def test_a_table_is_no_static_data(tmp_path: Path) -> None:
    (tmp_path / "rooms.csv").touch()
    with pytest.raises(UsageError, match=r"'.csv' .*: csv is a format of streams"):
        load_static(str(tmp_path / "rooms.csv"), Dictionary(), 1)
