"""Reads the output of LSBench's own generator: a folder of Turtle files, one triple per line, also compressed.

Posts, comments, photos and albums have their time in dc:created, positions in sib:trackedTime. Each is an element,
including the triple that names its author or container. Likes have no time: each is an element at the time of the liked
thing, but not before the previous like in the file.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph

from cqels_py.errors import DataError, UsageError

from ..tables import SCHEMA
from .network import Codes
from .vocabulary import CREATED, GPS_STREAM, PHOTO_LIKES, PHOTOS, POST_LIKES, POSTS, SIB, sib, sioc

FILES = {
    GPS_STREAM: "gpsStream",
    POSTS: "rdfPostStream",
    PHOTOS: "rdfPhotoStream",
    POST_LIKES: "rdfPostLikeStream",
    PHOTO_LIKES: "rdfPhotoLikeStream",
}
"""The beginnings of the names of the streams' files."""
STATIC = "mr"
LIKED = {POST_LIKES: POSTS, PHOTO_LIKES: PHOTOS}
_TIMES = pa.array([CREATED, sib("trackedTime")])
_ABOUT_ITS_OBJECT = pa.array([sioc("container_of"), sioc("creator_of"), sib("trackedAt")])
_LINE = r"^(?P<subject>\S+) (?P<predicate>\S+) (?P<object>.*) \.$"


def official(folder: Path) -> dict[str, pa.RecordBatchReader]:
    """The streams whose files are in the folder, in the order of time. A file is in memory while it is read.

    UsageError if there are none; DataError for an element without a time.
    """
    found = {iri: files for iri, begin in FILES.items() if (files := _files(folder, begin))}
    if not found:
        raise UsageError(
            f"{folder} has none of LSBench's streams ({', '.join(f'{name}*.ttl' for name in FILES.values())})"
        )
    return {iri: pa.RecordBatchReader.from_batches(SCHEMA, _batches(iri, found)) for iri in found}


def official_static(folder: Path) -> bytes:
    """The folder's static data (mr0_sibdataset….ttl and the like) as N-Triples. UsageError if there is none."""
    files = _files(folder, STATIC)
    if not files:
        raise UsageError(f"{folder} has no static data of LSBench ({STATIC}*.ttl)")
    return b"".join(map(_ntriples, files))


def _files(folder: Path, begin: str) -> list[Path]:
    return sorted(
        path for ending in ("ttl", "ttl.gz", "nt", "nt.gz") for path in Path(folder).glob(f"{begin}*.{ending}")
    )


def _batches(iri: str, found: dict[str, list[Path]]) -> Iterator[pa.RecordBatch]:
    if iri not in LIKED:
        yield from _things(found[iri]).to_batches()
    elif LIKED[iri] in found:
        yield from _likes(iri, found[iri], _things(found[LIKED[iri]])).to_batches()
    else:
        begin = FILES[LIKED[iri]]
        raise UsageError(f"{found[iri][0]}: a like has the time of the liked thing, but there is no file {begin}*.ttl")


def _things(files: list[Path]) -> pa.Table:
    triples = _triples(files)
    about = pc.is_in(triples["predicate"], _ABOUT_ITS_OBJECT)
    thing = pc.if_else(about, triples["object"], triples["subject"]).combine_chunks()
    dated = triples.filter(pc.is_in(triples["predicate"], _TIMES))
    at = _microseconds(dated["object"]).take(pc.index_in(thing, dated["subject"].combine_chunks()))
    if at.null_count:
        undated = thing.filter(pc.is_null(at))[0]
        raise DataError(f"{files[0]}: {undated} has neither dc:created nor sib:trackedTime")
    order = np.lexsort((thing.dictionary_encode().indices.to_numpy(), at.to_numpy()))
    return pa.table([at, thing, *triples.columns], schema=SCHEMA).take(pa.array(order))


def _likes(iri: str, files: list[Path], things: pa.Table) -> pa.Table:
    triples = _triples(files)
    made = (
        things["time"]
        .combine_chunks()
        .take(pc.index_in(triples["object"].combine_chunks(), things["graph"].combine_chunks()))
    )
    if made.null_count == len(made):
        raise DataError(f"{files[0]}: none of the liked things is in the file {FILES[LIKED[iri]]}*")
    first: int = pc.min(made).as_py() if made[0].as_py() is None else made[0].as_py()
    time: Codes = np.maximum.accumulate(pc.fill_null(made, first).to_numpy())
    number = pa.array(np.arange(len(time))).cast(pa.string())
    what = "post" if iri == POST_LIKES else "photo"
    like = pc.binary_join_element_wise(f"<{SIB}like/{what}/l", number, ">", "")
    return pa.table([pa.array(time), like, *triples.columns], schema=SCHEMA)


def _triples(files: list[Path]) -> pa.Table:
    """Triples in N-Triples syntax, as columns."""
    # Texts contain characters that other functions treat as the end of a line.
    lines = pa.array(b"".join(map(_ntriples, files)).decode().removesuffix("\n").split("\n"), pa.string())
    parts = pc.extract_regex(lines, _LINE)
    return pa.table({name: pc.struct_field(parts, name) for name in ("subject", "predicate", "object")})


def _ntriples(path: Path) -> bytes:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    made = BytesIO()
    try:
        triples = (quad.triple for quad in pyoxigraph.parse(BytesIO(raw), pyoxigraph.RdfFormat.TURTLE))
        pyoxigraph.serialize(triples, made, pyoxigraph.RdfFormat.N_TRIPLES)
    except SyntaxError as error:
        raise DataError(f"{path}: {error}") from None
    return made.getvalue()


def _microseconds(literals: pa.ChunkedArray) -> pa.Array:
    text = pc.struct_field(pc.extract_regex(literals.combine_chunks(), r'^"(?P<time>[-\d]+T[:\d]+)Z?"'), "time")
    return pc.cast(pc.strptime(text, "%Y-%m-%dT%H:%M:%S", "us"), pa.int64())
