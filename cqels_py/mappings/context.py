"""A JSON-LD context for JSON that has none: each object is read as if the context stood in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from cqels_py.errors import UsageError
from cqels_py.formats.contexts import read_contexts
from cqels_py.mappings.frame_map import FrameMap
from cqels_py.mappings.mapping import Mapping

_JSON = (".jsonld", ".json")


@dataclass(frozen=True, slots=True)
class MessageContext:
    """`context`: a JSON value, as it stands behind "@context". `source`: its file, for messages."""

    context: bytes
    source: str

    @classmethod
    def read(cls, path: str | Path) -> MessageContext:
        """The context in a file: an object with the key "@context". UsageError for anything else."""
        (context,) = read_contexts({str(path): path}).values()
        return cls(json.dumps(context).encode(), str(path))

    @classmethod
    def inline(cls, document: object) -> MessageContext:
        """The context in an object with the key "@context", or the context itself. UsageError for one with references."""
        given = document["@context"] if isinstance(document, dict) and set(document) == {"@context"} else document
        (context,) = read_contexts({"urn:context": {"@context": given}}).values()
        return cls(json.dumps(context).encode(), "<context>")


RowMap: TypeAlias = Mapping | MessageContext | FrameMap


def read_map(given: object) -> RowMap:
    """A map, or that in a file: a JSON-LD context (.jsonld, .json), or a CONSTRUCT over columns."""
    if isinstance(given, Mapping | MessageContext | FrameMap):
        return given
    if not isinstance(given, str | Path):
        raise UsageError(f"a map is a file, or Mapping.of(text), not {given!r}")
    return MessageContext.read(given) if Path(given).suffix.lower() in _JSON else Mapping.read(given)
