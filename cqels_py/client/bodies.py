"""Bodies of requests: files, with their media types by their endings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cqels_py.errors import UsageError
from cqels_py.formats.endings import ENDINGS, compression_of, missing

MEDIA_TYPES = {
    "nq": "application/n-quads",
    "nt": "application/n-triples",
    "trig": "application/trig",
    "ttl": "text/turtle",
    "jsonld": "application/ld+json",
    "ndjson": "application/x-ndjson",
    "json": "application/json",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "arrow": "application/vnd.apache.arrow.stream",
    "jelly": "application/x-jelly-rdf",
}
"""Media types of elements by format."""
_STATIC = ("nq", "nt", "trig", "ttl")
_CODINGS = {None: None, "gzip": "gzip"}


@dataclass(frozen=True, slots=True)
class Body:
    """`coding`: the Content-Encoding, if it has one. `source`: names it in messages."""

    data: bytes
    media_type: str
    coding: str | None = None
    source: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        coding = {} if self.coding is None else {"Content-Encoding": self.coding}
        return {"Content-Type": self.media_type, **coding}


def body_of(data: bytes | Path, media_type: str | None) -> Body:
    """Elements to be sent; a file's media type is that of its ending. UsageError for a file that cannot be read or sent."""
    if isinstance(data, bytes):
        if media_type is None:
            raise UsageError('bytes need their media type: send("readings", data, media_type="application/n-quads")')
        return Body(data, media_type)
    kind = media_type or _media_type(data, tuple(MEDIA_TYPES))
    compression = compression_of(str(data))
    if compression not in _CODINGS:
        raise UsageError(f"{data}: bodies are compressed with gzip, not {compression}: decompress it first")
    return Body(_read(data), kind, _CODINGS[compression], str(data))


def inline_static(path: Path) -> dict[str, str]:
    """Static data of a file on this side, as it stands in a request. UsageError for a file that cannot be read or sent."""
    kind = _media_type(path, _STATIC)
    if compression_of(str(path)):
        raise UsageError(f"{path}: static data is sent as it is: decompress it first")
    try:
        return {"type": kind, "data": _read(path).decode("utf-8-sig")}
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None


def static_of(given: Any) -> list[Any]:
    """Static data of a query: files (Path) of this side as their content, all else as it is."""
    return [inline_static(each) if isinstance(each, Path) else each for each in given]


def _media_type(path: Path, known: tuple[str, ...]) -> str:
    inner = path.with_suffix("") if compression_of(str(path)) else path
    found = ENDINGS.get(inner.suffix.lower())
    if found not in known:
        endings = ", ".join(ending for ending, name in ENDINGS.items() if name in known)
        raise UsageError(f"{path}: the ending tells the media type, and is one of {endings}")
    return MEDIA_TYPES[found]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UsageError(missing(path)) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
