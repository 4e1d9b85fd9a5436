"""Converts a file's bytes to UTF-8 without a byte order mark, and distinguishes JSON-LD from NDJSON."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from cqels_py.errors import DataError, Place
from cqels_py.formats.depth import TooDeep, check_depth

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_UTF_16: Final = (
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)
"""How a UTF-16 file begins: with a byte order mark or with the first character of XML."""
_DECLARATION = re.compile(r"""<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["'][^>]*\?>""")
_LONGEST_DECLARATION = 1024
_FIRST_JSON = 64 << 20
"""A line longer than this is not tested for being a whole JSON document."""


def without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks without the byte order mark at their beginning."""
    first, rest = _at_least(len(BYTE_ORDER_MARK), chunks)
    return chain([first.removeprefix(BYTE_ORDER_MARK)], rest)


def xml_in_utf8(chunks: Iterable[bytes], source: str) -> Iterator[bytes]:
    """XML as UTF-8 with a matching declaration. The input's encoding is that of its mark or declaration; DataError for
    bytes not in it.
    """
    first, rest = _at_least(_LONGEST_DECLARATION, chunks)
    first = first.removeprefix(BYTE_ORDER_MARK)
    wide = next((name for start, name in _UTF_16 if first.startswith(start)), None)
    start = first[:_LONGEST_DECLARATION].decode(wide or "latin-1", "replace")
    declared = _DECLARATION.match(start.lstrip("\ufeff"))
    name = wide or ("utf-8" if declared is None else declared[1])
    if name.lower() == "utf-8":
        yield first
        yield from rest
        return
    texts = _in_utf8(chain([first], rest), name, source)
    text = next(texts, b"").removeprefix(BYTE_ORDER_MARK)
    if declared is not None:
        # Everything before the encoding's name is ASCII.
        begin, end = declared.span(1)
        text = text[:begin] + b"UTF-8" + text[end:]
    yield text
    yield from texts


def _in_utf8(chunks: Iterable[bytes], name: str, source: str) -> Iterator[bytes]:
    try:
        # `lookup` also finds codecs that do not decode bytes to text; decoding with them raises this.
        b"<<<<".decode(name, "replace")
        decoder = codecs.getincrementaldecoder(name)()
    except (LookupError, UnicodeError):
        raise DataError(f"the encoding {name} is not known; write the file as UTF-8", Place(1, None, source)) from None
    line = 1
    try:
        for chunk in chunks:
            text = decoder.decode(chunk).encode()
            line += text.count(b"\n")
            yield text
        yield decoder.decode(b"", True).encode()
    except UnicodeError as error:
        at = Place(line, None, source)
        raise DataError(f"from here on, the file is not in its declared encoding {name}: {error}", at) from None


def kind_of_json(chunks: Iterable[bytes]) -> tuple[str, Iterator[bytes]]:
    """ "ndjson" or "jsonld", and all of the chunks.

    A document on a line of its own is NDJSON if other lines follow it, or if it is an object and not a list of objects.
    """
    remaining = without_mark(chunks)
    read: list[bytes] = []
    line = _first_line(remaining, read)
    kind = "jsonld"
    document = _document(line)
    if document is not None:
        another = b"".join(read).lstrip()[len(line) :].strip()
        while not another and (chunk := next(remaining, None)) is not None:
            read.append(chunk)
            another = chunk.strip()
        single = isinstance(document, dict) and ("@graph" not in document or "@id" in document)
        kind = "ndjson" if another or single else "jsonld"
    return kind, chain(read, remaining)


def _first_line(chunks: Iterator[bytes], read: list[bytes]) -> bytes:
    """The first non-empty line without its end. The chunks read for it are appended to `read`."""
    text = b""
    for chunk in chunks:
        read.append(chunk)
        text = (text + chunk).lstrip()
        if b"\n" in text or len(text) > _FIRST_JSON:
            break
    return text.partition(b"\n")[0].rstrip()


def _document(line: bytes) -> object | None:
    """The value of the line, if it is a whole JSON document."""
    if not line.startswith((b"{", b"[")) or not line.endswith((b"}", b"]")) or len(line) > _FIRST_JSON:
        return None
    try:
        check_depth(line, "json")
        found: object = json.loads(line)
    except (TooDeep, ValueError, RecursionError):
        return None
    return found


def _at_least(size: int, chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first chunks joined to at least this size, if there is so much, followed by the other chunks."""
    rest, first = iter(chunks), b""
    while len(first) < size and (chunk := next(rest, None)) is not None:
        first += chunk
    return first, rest
