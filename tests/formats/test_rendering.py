"""Lines of results: right whatever the room, and as bytes in the file."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.formats import rendering
from cqels_py.formats.rendering import render_terms, write_utf8
from cqels_py.sinks.files import open_sink
from cqels_py.terms.canonical import escape
from tests.formats import plain_rendering as plain

XSD = "http://www.w3.org/2001/XMLSchema#"
FORMATS = ("json", "csv", "tsv")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(escape)
TERMS = st.one_of(
    st.none(),
    st.sampled_from(["<http://ex.org/é,>", "_:x", "_:y", f'"05"^^<{XSD}integer>', '"' + "\t\x00" * 50 + '"@en']),
    st.sampled_from([f'"-12.50"^^<{XSD}decimal>', f'"7"^^<{XSD}byte>', f'"2024-02-29T00:00:00.5Z"^^<{XSD}dateTime>']),
    TEXTS.map('"{}"'.format),
    TEXTS.map('"{}"^^<http://ex.org/t,>'.format),
)
Row = tuple[int, int, tuple[str | None, str | None, str | None]]
ROWS = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([1, -1]), st.tuples(TERMS, TERMS, TERMS)), max_size=6)


def batch_of(dictionary: Dictionary, rows: list[Row], names: tuple[str, ...]) -> ResultBatch:
    columns = tuple(dictionary.encode([terms[k] for *_, terms in rows]) for k in range(len(names)))
    times = np.array([250_000 * time for time, *_ in rows], np.int64)
    return ResultBatch(names, times, np.array([sign for _, sign, _ in rows], np.int8), columns)


def plain_line(format_: str, batch: ResultBatch, row: int, texts: list[str | None]) -> str:
    time, sign = plain.time_text(int(batch.time[row])), "+" if batch.sign[row] > 0 else "-"
    if format_ == "json":
        named = zip(batch.variables, texts, strict=True)
        bound = [f"{json.dumps(name, ensure_ascii=False)}:{plain.json_object(text)}" for name, text in named if text]
        return f'{{"time":"{time}","sign":"{sign}","bindings":{{{",".join(bound)}}}}}\n'
    separator, render = (",", plain.csv_value) if format_ == "csv" else ("\t", plain.tsv_term)
    return separator.join([time, sign, *("" if text is None else render(text) for text in texts)]) + "\n"


@pytest.mark.parametrize("format_", FORMATS)
@given(rows=ROWS, room=st.integers(1, 700))
def test_lines_are_the_same_whatever_the_room(format_: str, rows: list[Row], room: int) -> None:
    dictionary, file, names = Dictionary(), io.StringIO(), ("a", 'b"é', "c")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "_ROOM", room)
        sink = open_sink(format_, file, dictionary=dictionary, form="SELECT", variables=names)
    heading = file.tell()
    batch = batch_of(dictionary, rows, names)
    sink.write(batch)
    found = zip(*(dictionary.decode(column) for column in batch.columns), strict=True)
    expected = [plain_line(format_, batch, row, list(texts)) for row, texts in enumerate(found)]
    assert file.getvalue()[heading:] == "".join(expected)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_released_term_is_an_error(format_: str) -> None:
    dictionary = Dictionary()
    sink = open_sink(format_, io.StringIO(), dictionary=dictionary, form="SELECT", variables=("x",))
    ids = dictionary.encode(["<http://ex.org/a>"])
    dictionary.collect([])
    with pytest.raises(UsageError, match=r"released.*callback"):
        sink.write(ResultBatch(("x",), np.zeros(1, np.int64), np.ones(1, np.int8), (ids,)))


def test_terms_for_arrow() -> None:
    dictionary = Dictionary()
    terms = ['"é"@fr', None, "<http://ex.org/a>", f'"1"^^<{XSD}integer>', None]
    assert render_terms(dictionary.encode(terms), dictionary).to_pylist() == terms
    assert render_terms(dictionary.encode([None]), dictionary).to_pylist() == [None]
    assert render_terms(np.empty(0, np.int64), dictionary).to_pylist() == []


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-16-le", "latin-1"])
def test_bytes_come_after_the_text_before_them(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "results"
    with path.open("w", encoding=encoding) as file:
        file.write("one é\n")
        write_utf8(file, np.frombuffer("two é\n".encode(), np.uint8))
        file.write("three\n")
    assert path.read_bytes() == "one é\ntwo é\nthree\n".encode(encoding)


TEMPLATE = (("?a", "<http://ex.org/p>", "?b"), ("_:n", "<http://ex.org/q>", "?c"))


@pytest.mark.parametrize("format_", ["nquads", "trig", "turtle"])
@given(rows=ROWS, room=st.integers(1, 700))
def test_graphs_are_the_same_whatever_the_room(format_: str, rows: list[Row], room: int) -> None:
    rows = sorted(rows, key=lambda row: row[0])

    def written(room: int) -> str:
        dictionary, file, names = Dictionary(), io.StringIO(), ("a", "b", "c")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rendering, "_ROOM", room)
            sink = open_sink(format_, file, dictionary=dictionary, form="CONSTRUCT", variables=names, template=TEMPLATE)
        for part in (rows[:1], rows[1:]):
            sink.write(batch_of(dictionary, part, names))
        return file.getvalue()

    assert written(room) == written(1 << 16)
