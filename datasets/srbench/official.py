"""The official dumps of LinkedObservationData, as they can be downloaded: files in N3, Turtle or N-Triples, also
compressed.

A file holds observations in any order, each with its value and its instant. As in the generated data, an element is an
observation: its triples, those of its value, and om-owl:generatedObservation, which the dumps leave out and the queries
need. Its time is its om-owl:samplingTime. Instants are elements of their own, once for each file.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from io import BytesIO
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph

from cqels_py.errors import DataError, UsageError

from ..tables import SCHEMA
from .vocabulary import OBSERVATIONS, TIME, om

FORMATS = {
    ".nt": pyoxigraph.RdfFormat.N_TRIPLES,
    ".n3": pyoxigraph.RdfFormat.N3,
    ".ttl": pyoxigraph.RdfFormat.TURTLE,
}
_LINE = r"^(?P<subject>\S+)\s+(?P<predicate>\S+)\s+(?P<object>.*\S)\s*\.\s*$"
_DATE = re.compile(r"(\d{4})_(\d{1,2})_(\d{1,2})")


def official(folder: Path) -> dict[str, pa.RecordBatchReader]:
    """The stream of a folder's observation files, in the order of time.

    Files named by days (…_2004_8_10.n3, as in the dumps) are read day by day, others all at once; so much is in memory
    at a time. Files without observations, such as those of the stations, contribute nothing. UsageError if there are no
    files.
    """
    files = sorted(path for path in Path(folder).rglob("*") if _format(path) is not None)
    if not files:
        raise UsageError(f"{folder} has no files of observations (.nt, .n3, .ttl, also with .gz)")
    return {OBSERVATIONS: pa.RecordBatchReader.from_batches(SCHEMA, _batches(files))}


def _format(path: Path) -> pyoxigraph.RdfFormat | None:
    return FORMATS.get(Path(path.name.removesuffix(".gz")).suffix)


def _batches(files: list[Path]) -> Iterator[pa.RecordBatch]:
    for _, group in groupby(sorted(files, key=_day), key=_day):
        days = [_observations(path) for path in group]
        table = pa.concat_tables(days)
        order = np.argsort(table["time"].to_numpy(), kind="stable")
        yield from table.take(pa.array(order)).to_batches()


def _day(path: Path) -> tuple[int, ...]:
    found = _DATE.search(path.name)
    return tuple(map(int, found.groups())) if found else ()


def _observations(path: Path) -> pa.Table:
    """The rows of a file, element by element. DataError for an observation without a time."""
    triples = _triples(path)
    predicate = triples["predicate"]
    seen = _pairs(triples, f"<{TIME}inXSDDateTime>")
    sampled = _pairs(triples, om("samplingTime"))
    results = _pairs(triples, om("result"))
    observers = triples.filter(pc.equal(predicate, om("procedure")))
    inverse = pa.table(
        {
            "subject": observers["object"],
            "predicate": pa.repeat(pa.scalar(om("generatedObservation")), observers.num_rows),
            "object": observers["subject"],
        }
    )
    # The observation of each subject: itself, the one whose value it is, or (an instant) itself as an element.
    owner_of = {
        "subject": pa.concat_arrays([_flat(sampled["subject"]), _flat(results["object"]), _flat(seen["subject"])]),
        "graph": pa.concat_arrays([_flat(sampled["subject"]), _flat(results["subject"]), _flat(seen["subject"])]),
    }
    graphs = _look_up(owner_of["subject"], owner_of["graph"], triples["subject"])
    every = pa.concat_tables([triples, inverse])
    graph = pa.concat_arrays([graphs, _flat(observers["subject"])])
    instant = pc.coalesce(_look_up(sampled["subject"], sampled["object"], graph), graph)
    time = pc.coalesce(_microseconds(_look_up(seen["subject"], seen["object"], instant), path), _named_time(instant))
    if undated := graph.filter(pc.and_(pc.is_null(time), pc.is_valid(graph))):
        raise DataError(f"{path}: {undated[0]} has no om-owl:samplingTime that says a time")
    table = pa.table([time, graph, *every.columns], schema=SCHEMA)
    known = table.filter(pc.and_(pc.is_valid(time), pc.is_valid(graph)))
    return known.take(_element_by_element(known, pa.compute.unique(seen["subject"])))


def _element_by_element(table: pa.Table, instants: pa.Array) -> pa.Array:
    """By time, instants first; then elements and triples in the file's order."""
    codes = table["graph"].combine_chunks().dictionary_encode().indices.to_numpy()
    later = ~pc.is_in(table["graph"], instants).to_numpy()
    return pa.array(np.lexsort((codes, later, table["time"].to_numpy())))


def _triples(path: Path) -> pa.Table:
    """The file's triples in N-Triples syntax, as columns."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if _format(path) != pyoxigraph.RdfFormat.N_TRIPLES:
        raw = _as_ntriples(raw, path)
    lines = pa.array(raw.decode().splitlines(), pa.string())
    lines = lines.filter(pc.match_substring_regex(lines, r"^\s*[<_]"))
    parts = pc.extract_regex(lines, _LINE)
    return pa.table({name: pc.struct_field(parts, name) for name in ("subject", "predicate", "object")})


def _as_ntriples(text: bytes, path: Path) -> bytes:
    """Replaces prefixes such as `_3:`, which some of the files have and Turtle does not allow."""
    text = re.sub(rb"(?<![\w:/#?=])_(\d+):", rb"p\1:", text)
    made = BytesIO()
    try:
        triples = (quad.triple for quad in pyoxigraph.parse(BytesIO(text), _format(path)))
        pyoxigraph.serialize(triples, made, pyoxigraph.RdfFormat.N_TRIPLES)
    except SyntaxError as error:
        raise DataError(f"{path}: {error}") from None
    return made.getvalue()


def _pairs(triples: pa.Table, predicate: str) -> pa.Table:
    return triples.filter(pc.equal(triples["predicate"], predicate)).select(["subject", "object"])


def _look_up(keys: pa.Array, values: pa.Array, wanted: pa.Array) -> pa.Array:
    """The value of the first such key; null if there is none."""
    return _flat(values).take(pc.index_in(_flat(wanted), _flat(keys)))


def _microseconds(literals: pa.Array, path: Path) -> pa.Array:
    """Microseconds of xsd:dateTime literals, also if the datatype is inside the quotes or an offset of zero is written."""
    text = pc.struct_field(pc.extract_regex(literals, r'^"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)'), "time")
    if pc.any(pc.and_(pc.is_valid(literals), pc.is_null(text))).as_py():
        raise DataError(f"{path}: an instant whose owl-time:inXSDDateTime is no dateTime")
    return pc.cast(pc.strptime(text, "%Y-%m-%dT%H:%M:%S", "us"), pa.int64())


def _named_time(instants: pa.Array) -> pa.Array:
    """Microseconds from the names of instants, null if a name has no time: some files say no more about an instant."""
    parts = pc.extract_regex(instants, r"(?P<date>\d{4}_\d{1,2}_\d{1,2})_(?P<time>\d{1,2}_\d{1,2}_\d{1,2})>$")
    # The date parser accepts numbers of one digit too.
    stamp = pc.binary_join_element_wise(pc.struct_field(parts, "date"), pc.struct_field(parts, "time"), " ")
    return pc.cast(pc.strptime(stamp, "%Y_%m_%d %H_%M_%S", "us"), pa.int64())


def _flat(values: pa.Array) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
