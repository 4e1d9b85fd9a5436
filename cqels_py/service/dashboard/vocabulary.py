"""The words that the editor completes: keywords, functions, prefixes, streams, and terms that were seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from cqels_py.functions.table import FUNCTIONS
from cqels_py.parser.keywords import KEYWORDS
from cqels_py.parser.prologue import WELL_KNOWN
from cqels_py.service.service import Service

KEYWORD, FUNCTION, PREFIX, STREAM, TERM = "keyword", "function", "prefix", "stream", "term"
_MOST, _LONGEST = 5_000, 300
_AGGREGATES = ("AVG", "COUNT", "GROUP_CONCAT", "MAX", "MIN", "SAMPLE", "SUM")
_SPECIAL = ("BNODE", "BOUND", "COALESCE", "IF", "NOW", "RAND", "STRUUID", "UUID")
_PREFIX = re.compile(r"\bPREFIX\s+([\w.-]*:)\s*<([^<>\s]*)>", re.IGNORECASE)
_IRI = re.compile(r"<([A-Za-z][\w+.-]*:[^<>\s]+)>")


@dataclass(frozen=True, slots=True)
class Word:
    """`text`: a keyword, a function, a prefix with its colon, or an IRI. `iri`: that of a prefix. `detail`: where it is from."""

    kind: str
    text: str
    detail: str = ""
    iri: str = ""


def vocabulary(service: Service) -> list[dict[str, Any]]:
    """The words as they are now, each once, as plain data: at most five thousand, streams and terms of streams first."""
    found: dict[tuple[str, str], Word] = {}
    for word in _words(service):
        if len(found) == _MOST:
            break
        if len(word.text) <= _LONGEST:
            found.setdefault((word.kind, word.text), word)
    return [asdict(word) for word in found.values()]


def _words(service: Service) -> Iterator[Word]:
    yield from (Word(KEYWORD, each) for each in KEYWORDS)
    functions = {name for name in FUNCTIONS if name[0].isalpha() and ":" not in name}
    yield from (Word(FUNCTION, each) for each in sorted({*functions, *_AGGREGATES, *_SPECIAL}))
    streams = list(service.streams.values())
    yield from (Word(STREAM, stream.definition.iri, stream.name) for stream in streams)
    seen = service.engine.watched
    if seen is not None:
        for stream in streams:
            yield from (Word(TERM, each[1:-1], stream.name) for each in seen.terms_of(stream.definition.iri))
    for query in list(service.queries.values()):
        text = query.kept.definition.text
        declared = _PREFIX.findall(text)
        yield from (Word(PREFIX, prefix, query.name, iri) for prefix, iri in declared)
        names = {iri for _, iri in declared}
        yield from (Word(TERM, iri, query.name) for iri in _IRI.findall(text) if iri not in names)
        yield from (Word(TERM, iri, query.name) for iri in _written_short(text, declared))
    yield from (Word(PREFIX, f"{prefix}:", "well known", iri) for prefix, iri in WELL_KNOWN.items())


def _written_short(text: str, declared: list[tuple[str, str]]) -> Iterator[str]:
    """IRIs that a query writes with a prefix."""
    for prefix, iri in declared:
        for name in re.findall(rf"(?<![\w:.-]){re.escape(prefix)}(\w[\w-]*)", text):
            yield iri + name
