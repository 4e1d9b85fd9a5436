"""Which format a file has, by its ending."""

from __future__ import annotations

from pathlib import Path

from cqels_py.errors import UsageError

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

ENDINGS = {
    ".nt": "nt",
    ".ntriples": "nt",
    ".nq": "nq",
    ".nquads": "nq",
    ".ttl": "ttl",
    ".turtle": "ttl",
    ".trig": "trig",
    ".rdf": "rdf",
    ".owl": "rdf",
    ".xml": "rdf",
    ".jsonld": "jsonld",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}
"""File ending -> format."""

RDF = ("nt", "nq", "ttl", "trig", "rdf", "jsonld")
STREAMS = (*RDF, "csv", "tsv", "parquet", "ndjson")


def compression_of(location: str) -> str | None:
    """ "gzip", "zstd" or None."""
    return COMPRESSIONS.get(Path(location).suffix.lower())


def format_of(location: str, known: tuple[str, ...], asked: str | None = None) -> str:
    """The format of a file: `asked`, or by its ending ("readings.nq.gz" is "nq"). UsageError lists those known."""
    if asked is not None:
        found: str | None = asked.lstrip(".")
        shown = f"format {asked!r}"
    else:
        path = Path(location)
        inner = path.with_suffix("") if compression_of(location) else path
        found = ENDINGS.get(inner.suffix.lower())
        shown = f"the ending {inner.suffix!r} of {location}" if inner.suffix else f"{location}, which has no ending,"
    if found not in known:
        endings = ", ".join(ending for ending, name in ENDINGS.items() if name in known)
        raise UsageError(f"{shown} is not known here; known are {endings}, each also with {' or '.join(COMPRESSIONS)}")
    return found
