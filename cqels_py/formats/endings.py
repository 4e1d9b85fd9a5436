"""Which format a file has, by its ending."""

from __future__ import annotations

from itertools import islice
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
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}
"""File ending -> format; of .n3 what is Turtle is read, and .json is JSON-LD or NDJSON, as its text shows."""

_OTHER_COMPRESSIONS = (".zip", ".bz2", ".xz", ".7z", ".br", ".lz4", ".tar", ".tgz")
_OTHER_FORMATS = (".txt", ".dat", ".log")
_COMPRESSORS = ("gzip", "zstd")
_MOST_NAMES = 10_000
"""So many names in a folder are looked at."""
_NEAR = 0.75
"""A name that is so much like another one may have been meant (as difflib has it)."""

RDF = ("nt", "nq", "ttl", "trig", "rdf", "jsonld", "json")
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
        endings = [ending for ending, name in ENDINGS.items() if name in known]
        message = (
            f"{shown} is not known here; known are {', '.join(endings)}, each also with {' or '.join(COMPRESSIONS)}"
        )
        raise UsageError(message + ("" if asked is not None else _instead(inner, endings)))
    return found


def _instead(path: Path, endings: list[str]) -> str:
    """What to do with a file whose ending is not known."""
    from difflib import get_close_matches

    ending = path.suffix.lower()
    if ending in _OTHER_COMPRESSIONS:
        return f": decompress it first, or compress it with {' or '.join(_COMPRESSORS)}"
    if ending in ENDINGS:
        return f": {ENDINGS[ending]} is a format of streams"
    near = get_close_matches(ending, endings, n=1) if ending and ending not in _OTHER_FORMATS else []
    if near:
        return f": is it {path.with_suffix(near[0]).name}?"
    name = path.stem if ending in _OTHER_FORMATS else path.name
    return f": rename it by the format that it has, as {name}{endings[0]}"


def missing(path: Path) -> str:
    """What is wrong with a file that is not there, and which one may be meant."""
    if not path.parent.is_dir():
        return f"there is no file {path}, nor a folder {path.parent}"
    where = "" if path.is_absolute() else f" in {Path.cwd()}"
    return f"there is no file {path}{where}{nearby(path)}"


def nearby(path: Path) -> str:
    """The file of the folder with nearly this name, as a question; nothing if there is none."""
    from difflib import get_close_matches

    try:
        names = sorted(entry.name for entry in islice(path.parent.iterdir(), _MOST_NAMES))
    except OSError:
        return ""
    near = get_close_matches(path.name, names, n=1, cutoff=_NEAR)
    return f": is it {path.with_name(near[0])}?" if near else ""
