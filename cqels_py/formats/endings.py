"""The format of a file by its suffix."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from cqels_py.errors import UsageError
from cqels_py.suggestions import similar

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

ENDINGS = {
    ".nt": "nt",
    ".ntriples": "nt",
    ".nq": "nq",
    ".nquads": "nq",
    ".ttl": "ttl",
    ".turtle": "ttl",
    ".n3": "ttl",
    ".trig": "trig",
    ".rdf": "rdf",
    ".owl": "rdf",
    ".xml": "rdf",
    ".jsonld": "jsonld",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".jelly": "jelly",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}
"""Suffix -> format. Of .n3 only Turtle is read. The text decides whether .json is JSON-LD or NDJSON."""

_OTHER_COMPRESSIONS = (".zip", ".bz2", ".xz", ".7z", ".br", ".lz4", ".tar", ".tgz")
_OTHER_FORMATS = (".txt", ".dat", ".log")
_COMPRESSORS = ("gzip", "zstd")
_MOST_NAMES = 10_000
"""The number of names in a folder that are compared with a misspelt one."""

RDF = ("nt", "nq", "ttl", "trig", "rdf", "jsonld", "json")
STREAMS = (*RDF, "csv", "tsv", "parquet", "arrow", "jelly", "ndjson")


def compression_of(location: str) -> str | None:
    """ "gzip", "zstd" or None."""
    return COMPRESSIONS.get(Path(location).suffix.lower())


def format_of(location: str, known: tuple[str, ...]) -> str:
    """The format of a file by its suffix ("readings.nq.gz" is "nq"). UsageError lists the formats in `known`."""
    path = Path(location)
    inner = path.with_suffix("") if compression_of(location) else path
    found = ENDINGS.get(inner.suffix.lower())
    if found not in known:
        shown = f"the ending {inner.suffix!r} of {location}" if inner.suffix else f"{location}, which has no ending,"
        endings = [ending for ending, name in ENDINGS.items() if name in known]
        message = f"{shown} is not supported here; supported are {', '.join(endings)}, each also with {' or '.join(COMPRESSIONS)}"
        raise UsageError(message + _instead(inner, endings))
    return found


def _instead(path: Path, endings: list[str]) -> str:
    """A suggestion for a file with an unknown suffix."""
    ending = path.suffix.lower()
    if ending in _OTHER_COMPRESSIONS:
        return f": decompress it first, or compress it with {' or '.join(_COMPRESSORS)}"
    if ending in ENDINGS:
        return f": {ENDINGS[ending]} is a format of streams"
    near = similar(ending, endings, least=0.6) if ending and ending not in _OTHER_FORMATS else None
    if near:
        return f": did you mean {path.with_suffix(near).name}?"
    name = path.stem if ending in _OTHER_FORMATS else path.name
    return f": rename it by the format that it has, as {name}{endings[0]}"


def missing(path: Path) -> str:
    """The message for a missing file, with the name of a similar one."""
    if not path.parent.is_dir():
        return f"there is no file {path}, nor a folder {path.parent}"
    where = "" if path.is_absolute() else f" in {Path.cwd()}"
    return f"there is no file {path}{where}{nearby(path)}"


def nearby(path: Path) -> str:
    """The file in the folder with the most similar name, as a question; empty if there is none."""
    try:
        names = sorted(entry.name for entry in islice(path.parent.iterdir(), _MOST_NAMES))
    except OSError:
        return ""
    near = similar(path.name, names)
    return f": did you mean {path.with_name(near)}?" if near else ""
