"""Every way in which an object of JSON-LD comes into the program, so that tests can compare them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.objects import element_of_object
from cqels_py.formats.omissions import Omissions
from cqels_py.formats.static import load_static
from cqels_py.mappings.context import MessageContext
from cqels_py.sources.documents import document_elements
from cqels_py.sources.files import open_source
from cqels_py.sources.live import Message, MessageColumns
from cqels_py.sources.mapped import mapped_file
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening

Triple = tuple[str, str, str]
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
STREAM = "http://ex.org/readings"
Context = Mapping[str, Any]
_NUMBER = re.compile(r'"number (-?[0-9.eE+-]+)"')


def number(text: str) -> str:
    """A value of an object that is a number with this text in JSON."""
    return f"number {text}"


class Entrances:
    """Reads objects that have the time 1 at each entrance. `told` gets what is left out, by the entrance's name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.told: dict[str, list[str]] = {}
        self.counts: dict[str, list[str]] = {}
        self._now = ""

    def names(self) -> list[str]:
        return list(self._readers())

    def triples(self, context: Context, members: Mapping[str, Any]) -> dict[str, set[Triple]]:
        """What each entrance makes of an object with this context, but for its time."""
        found = {}
        for name, read in self._readers().items():
            self._now = name
            self.told[name], self.counts[name] = [], []
            found[name] = {triple for triple in read(context, members) if triple[1] != f"<{TIME}>"}
        return found

    def _readers(self) -> dict[str, Callable[[Context, Mapping[str, Any]], set[Triple]]]:
        return {
            "ndjson": lambda context, members: self._file("s.ndjson", context, members),
            "jsonld": lambda context, members: self._file("s.jsonld", context, members),
            "mapped file": self._mapped,
            "message": lambda context, members: self._message(context, members, None),
            "mapped message": lambda context, members: self._message(context, members, context),
            "service": self._service,
            "push": self._push,
            "static": self._static,
            "static lines": lambda context, members: self._static(context, members, "d.json"),
        }

    def _opening(self, context: Context | None = None) -> Opening:
        return Opening(
            stream=STREAM,
            number=0,
            dictionary=Dictionary(),
            map=None if context is None else MessageContext.inline({"@context": context}),
            omissions=self._omissions(),
            time_predicate=TIME,
        )

    def _omissions(self) -> Omissions:
        return Omissions(self.told[self._now].append, self.counts[self._now].append)

    def _file(self, name: str, context: Context, members: Mapping[str, Any]) -> set[Triple]:
        path, opening = self._folder / name, self._opening()
        path.write_text(_text(context, members) + "\n")
        return _of_batches(opening, [*open_source(str(path), opening)])

    def _mapped(self, context: Context, members: Mapping[str, Any]) -> set[Triple]:
        path, opening = self._folder / "m.ndjson", self._opening(context)
        path.write_text(_text(None, members) + "\n")
        return _of_batches(opening, [*mapped_file(str(path), opening)])

    def _message(self, context: Context, members: Mapping[str, Any], through: Context | None) -> set[Triple]:
        opening = self._opening(through)
        body = _text(context if through is None else None, members).encode()
        decoder = MessageDecoder(opening, "mqtt://b/t", MessageFormat(None, False))
        return _of_batches(opening, [decoder.elements(MessageColumns.of([Message(body, "t", None, 0)]))])

    def _service(self, context: Context, members: Mapping[str, Any]) -> set[Triple]:
        opening = self._opening()
        body = _text(context, members).encode()
        return _of_batches(opening, [document_elements(body, "jsonld", opening, source="<body>", arrival=5)])

    def _push(self, context: Context, members: Mapping[str, Any]) -> set[Triple]:
        found = element_of_object(json.loads(_text(context, members)), JsonLd(omissions=self._omissions()))
        if found is None:
            return set()
        dictionary = Dictionary()
        ids = dictionary.encode([text.decode() for text in found.texts])
        texts = [str(text) for text in dictionary.decode(ids)]
        return set(zip(texts[::3], texts[1::3], texts[2::3], strict=True))

    def _static(self, context: Context, members: Mapping[str, Any], name: str = "d.jsonld") -> set[Triple]:
        path, dictionary = self._folder / name, Dictionary()
        path.write_text(_text(context, members) + "\n")
        columns = load_static(str(path), dictionary, 1, JsonLd(omissions=self._omissions()))
        return set(zip(*(map(str, dictionary.decode(column)) for column in columns[:3]), strict=True))


def _text(context: Context | None, members: Mapping[str, Any]) -> str:
    text = json.dumps(members if context is None else {"@context": context, **members})
    return _NUMBER.sub(r"\1", text)


def _of_batches(opening: Opening, batches: list[ElementBatch]) -> set[Triple]:
    found: set[Triple] = set()
    for batch in batches:
        columns = (batch.subject, batch.predicate, batch.object)
        found |= set(zip(*(map(str, opening.dictionary.decode(column)) for column in columns), strict=True))
    return found
