"""Checks RDF/XML of unknown origin: it must be complete, and its entities must not expand without limit.

The library that parses it accepts a truncated file as complete, and expands any entities that a file declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from xml.parsers import expat

from cqels_py.errors import DataError, Place
from cqels_py.formats.lines import LINE_LIMIT

ENTITY_LIMIT = 1 << 16
"""The maximum number of characters of an entity's expansion; all entities of a file may have sixteen times as many."""

LANGUAGES_WITHIN = 16 << 20
"""The bytes of a document that are searched for `xml:lang=""`: the library takes it for a wrong tag unless it is lenient."""

_NO_LANGUAGE = re.compile(rb"""xml:lang\s*=\s*(?:""|'')""")
_LONGEST = 64
_REFERENCE = re.compile(r"&([^#&;][^&;]*);")


class NotWellFormed(DataError):
    """The file is not well-formed XML from here on."""

    code = "CQ-XML"


def checked(chunks: Iterator[bytes], source: str) -> Iterator[bytes]:
    """The chunks of an XML file in UTF-8, up to the place where it is not well-formed; there NotWellFormed is raised."""
    parser = expat.ParserCreate("utf-8")
    entities = _Entities(parser, source)
    parser.EntityDeclHandler = entities.declare
    since_markup = passed = 0
    for chunk in chunks:
        try:
            parser.Parse(chunk, False)
        except expat.ExpatError as error:
            yield chunk[: max(0, parser.ErrorByteIndex - passed)]
            raise _error(error, source) from None
        passed += len(chunk)
        first = chunk.find(b"<")
        if since_markup + (len(chunk) if first < 0 else first) > LINE_LIMIT:
            message = f"a text, or the content of < and >, is longer than {LINE_LIMIT >> 20} MiB"
            raise NotWellFormed(message, Place(parser.CurrentLineNumber, None, source))
        since_markup = since_markup + len(chunk) if first < 0 else len(chunk) - chunk.rfind(b"<")
        yield chunk
    try:
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise _error(error, source) from None


def takes_language_away(chunks: Iterable[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Has the document's beginning `xml:lang=""` in it, and all of the chunks. True may be wrong, as a text may look like it."""
    read: list[bytes] = []
    rest, size, before = iter(chunks), 0, b""
    for chunk in rest:
        read.append(chunk)
        size += len(chunk)
        # UTF-16 has zeros between.
        before = (before + chunk).replace(b"\0", b"")
        if _NO_LANGUAGE.search(before):
            return True, chain(read, rest)
        if size > LANGUAGES_WITHIN:
            break
        before = before[-_LONGEST:]
    return False, chain(read, rest)


class _Entities:
    """The sizes of a file's entities when expanded. Nested entities grow exponentially: a few lines can make terabytes."""

    def __init__(self, parser: expat.XMLParserType, source: str) -> None:
        self._parser = parser
        self._source = source
        self._lengths: dict[str, int] = {}
        self._all = 0

    def declare(
        self,
        name: str,
        is_parameter: bool,
        value: str | None,
        base: object,
        system: object,
        public: object,
        form: object,
    ) -> None:
        """NotWellFormed if the expansion has more than ENTITY_LIMIT characters. An external entity has no value here."""
        if value is None:
            return
        inner = (self._lengths.get(each, 0) for each in _REFERENCE.findall(value))
        length = len(value) + sum(inner)
        self._all += length
        if length > ENTITY_LIMIT or self._all > 16 * ENTITY_LIMIT:
            message = f"the entity &{name}; expands to too much text: at most {ENTITY_LIMIT} characters, {16 * ENTITY_LIMIT} in all"
            place = Place(self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1, self._source)
            raise NotWellFormed(message, place)
        self._lengths.setdefault(name, length)


def _error(error: expat.ExpatError, source: str) -> NotWellFormed:
    message = f"not well-formed XML: {expat.ErrorString(error.code)}"
    return NotWellFormed(message, Place(error.lineno, error.offset + 1, source))
