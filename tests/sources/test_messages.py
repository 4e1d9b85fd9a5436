"""Messages of every format: what is read, and what is refused."""

from __future__ import annotations

import pytest

from cqels_py import DataError, Mapping
from cqels_py.dictionary import Dictionary
from cqels_py.mappings.context import MessageContext, RowMap
from cqels_py.sources.live import MessageColumns
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening

MARK = b"\xef\xbb\xbf"
MAP = Mapping.of("CONSTRUCT { <http://ex.org/s> <http://ex.org/v> ?v } WHERE { }")
CONTEXT = MessageContext(b'{"@vocab": "http://ex.org/", "id": "@id"}', "context.jsonld")


def read(body: bytes, form: str | None = None, map: RowMap | None = None) -> list[str]:
    """The triples of a message that came at time 0."""
    dictionary = Dictionary()
    opening = Opening(stream="http://ex.org/stream", number=0, dictionary=dictionary, map=map, graphs=True)
    batch = MessageDecoder(opening, "broker", MessageFormat(form, True)).elements(
        MessageColumns([body], ["topic"], [None], [0])
    )
    columns = (batch.subject, batch.predicate, batch.object, *([] if batch.graph is None else [batch.graph]))
    rows = zip(*(dictionary.decode(column) for column in columns), strict=True)
    return [" ".join(term for term in row if term is not None) for row in rows]


@pytest.mark.parametrize(
    ("form", "map", "body"),
    [
        ("nq", None, '<http://ex.org/s> <http://ex.org/v> "é" .'),
        ("nt", None, '<http://ex.org/s> <http://ex.org/v> "é" .'),
        ("ttl", None, '<http://ex.org/s> <http://ex.org/v> "é" .'),
        ("trig", None, '<http://ex.org/s> <http://ex.org/v> "é" .'),
        ("jsonld", None, '{"@id": "http://ex.org/s", "http://ex.org/v": "é"}'),
        (None, None, '{"@id": "http://ex.org/s", "http://ex.org/v": "é"}'),
        (None, CONTEXT, '{"id": "http://ex.org/s", "v": "é"}'),
        (None, MAP, '{"v": "é"}'),
    ],
)
def test_a_byte_order_mark_is_passed_over(form: str | None, map: RowMap | None, body: str) -> None:
    statement = '<http://ex.org/s> <http://ex.org/v> "é"'
    assert read(body.encode(), form, map) == [statement] == read(MARK + body.encode(), form, map)


def test_an_error_in_lines_tells_its_place_in_the_message() -> None:
    with pytest.raises(DataError, match=r"^broker:1: line 2, column 49 of the message: this term is not well-formed"):
        read(b'<http://ex.org/s> <http://ex.org/v> "a"@en .\n<http://ex.org/s> <http://ex.org/v> "a"@abcdefghi .')
    with pytest.raises(
        DataError, match=r"column 41 of the message: expected '.' at the end of the statement, not '<http"
    ):
        read(b'<http://ex.org/s> <http://ex.org/v> "a" <http://ex.org/g> .', "nt")
