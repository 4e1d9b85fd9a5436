"""How many triples per second are read from a file into columns of ids, and processed by a query to JSON?

    python -m bench.suites.ingest [--quick] [--rounds N] [--output FOLDER]

from the repository's root. The file has observations of five triples, one of which is the time. It is read in several
forms by the engine, on one core; the same N-Triples are read by the parsers of pyoxigraph and (a twentieth of the file)
of rdflib, which only make terms. The query is the average of each sensor over the last 10,000 observations, whose five
patterns are joined, from N-Triples to lines of JSON that nobody reads: with one thread, and with a second one that
reads ahead. All take turns. Printed are medians with the lowest and the highest rate, and the ratio to pyoxigraph's
parser. Writes bench/results/ingest.json.
"""

from __future__ import annotations

import gc
import gzip
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyoxigraph
import rdflib
import zstandard
from rich.console import Console
from rich.table import Table

from bench.report import short
from bench.suites.observations import (
    MICROSECONDS,
    PREFIX,
    STREAM,
    Int64,
    Property,
    Terms,
    integers,
    numbered,
    scattered,
    sensor_iris,
    table,
    two_digits,
)
from bench.suites.outcome import add_rounds, folder_of, parser_of, taken_now
from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening
from cqels_py.suites.running import null_sink

OBSERVATIONS, QUICK_OBSERVATIONS = 400_000, 2_000
SENSORS, WINDOW = 1_000, 10_000
_BLOCK = 20_000
_PART = 20
"""rdflib reads one in so many observations."""
_XSD = "http://www.w3.org/2001/XMLSchema#"
PARSER, RDFLIB = "pyoxigraph, parser alone", "rdflib, parser alone"


_AROUND = ('"', f'Z"^^<{_XSD}dateTime>')


def _instants(numbers: Int64) -> Terms:
    microseconds = (numbers + 1) * MICROSECONDS
    dates = np.datetime_as_string(microseconds.astype("datetime64[us]"), unit="ms").astype("S23")
    made = [np.broadcast_to(np.frombuffer(text.encode(), np.uint8), (len(numbers), len(text))) for text in _AROUND]
    return np.concatenate([made[0], dates.view(np.uint8).reshape(-1, 23), made[1]], axis=1)


PROPERTIES = (
    Property("sensor", lambda numbers: scattered(numbers, SENSORS), sensor_iris),
    Property("result", two_digits, integers),
    Property(
        "place", lambda numbers: scattered(numbers + 1, 500), lambda places: numbered(f"<{PREFIX}place/", places, ">")
    ),
    Property("quality", lambda numbers: 10 + numbers % 3, integers),
    Property("at", lambda numbers: numbers, _instants),
)
AT = PROPERTIES[-1].iri
QUERY = f"""PREFIX : <{PREFIX}>
SELECT ?sensor (AVG(?result) AS ?mean) WHERE {{
  STREAM <{STREAM}> [COUNT {WINDOW}] @ :at
    {{ ?o :sensor ?sensor . ?o :result ?result . ?o :place ?place . ?o :quality ?quality . ?o :at ?at }}
}} GROUP BY ?sensor"""


@dataclass(slots=True)
class Case:
    """A task over a file, the number of its triples, and triples per second in each round."""

    what: str
    how: str
    triples: int
    rates: list[float] = field(default_factory=list)


Work = Callable[[], object]


def write_files(folder: Path, observations: int) -> dict[str, Path]:
    """Write the observations in all measured formats; returns the files by suffix."""
    files = {ending: folder / f"observations.{ending}" for ending in ("nt", "nt.gz", "nt.zst", "ttl", "tsv", "parquet")}
    blocks = [table(first, min(_BLOCK, observations - first), PROPERTIES) for first in range(0, observations, _BLOCK)]
    with files["nt"].open("wb") as file:
        for block in blocks:
            terms = (block.column(name) for name in ("subject", "predicate", "object"))
            lines = pc.binary_join_element_wise(*terms, *map(_text, (".\n", " ")))
            file.write("".join(lines.to_pylist()).encode())
    text = files["nt"].read_bytes()
    files["nt.gz"].write_bytes(gzip.compress(text, 6))
    files["nt.zst"].write_bytes(zstandard.compress(text))
    files["ttl"].write_bytes(text)
    with files["tsv"].open("w", encoding="utf-8") as file:
        file.write("time\tsubject\tpredicate\tobject\n")
        for block in blocks:
            columns = [pc.cast(block.column(name), "large_string") for name in block.column_names]
            file.write("\n".join(pc.binary_join_element_wise(*columns, _text("\t")).to_pylist()) + "\n")
    with pq.ParquetWriter(files["parquet"], blocks[0].schema) as writer:
        for block in blocks:
            writer.write_table(block)
    return files


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def read(path: Path, triples: int) -> None:
    """To batches of elements, with an empty dictionary."""
    batches = open_source(str(path), Opening(stream="", number=0, dictionary=Dictionary(), time_predicate=AT))
    assert sum(len(batch.subject) for batch in batches) == triples


def parse(path: Path, triples: int) -> None:
    assert sum(1 for _ in pyoxigraph.parse(path=path, format=pyoxigraph.RdfFormat.N_TRIPLES)) == triples


def parse_with_rdflib(path: Path, triples: int) -> None:
    assert len(rdflib.Graph().parse(path, format="nt")) == triples


def run(path: Path, triples: int, threads: int) -> None:
    """From the file to rendered results."""
    engine = Engine()
    query = engine.register(QUERY)
    with null_sink(query.plan, engine.dictionary) as sink:
        query.write_to(sink)
        found = engine.run({STREAM: path}, threads=threads)
    assert found.triples == triples and found.results > 0


def works(files: Mapping[str, Path], part: Path, observations: int) -> Iterator[tuple[Case, Work]]:
    """The measured tasks. The parser runs next to the task with which it is compared."""
    triples = observations * len(PROPERTIES)
    few = observations // _PART * len(PROPERTIES)
    for ending, path in files.items():
        yield Case(f".{ending} to batches", "engine", triples), partial(read, path, triples)
        if ending == "nt":
            yield Case(".nt to terms", PARSER, triples), partial(parse, path, triples)
    yield Case(".nt to terms", RDFLIB, few), partial(parse_with_rdflib, part, few)
    for threads in (1, 2):
        how = "engine, 1 thread" if threads == 1 else "engine, 2 threads"
        yield Case(".nt to JSON, join of 5 and AVG", how, triples), partial(run, files["nt"], triples, threads)


def measure(observations: int, rounds: int) -> list[Case]:
    """Each task in turn. The first run of each, which may have to compile, does not count."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        files = write_files(folder, observations)
        part = folder / "part.nt"
        lines = observations // _PART * len(PROPERTIES)
        with files["nt"].open("rb") as file, part.open("wb") as first:
            first.writelines(line for line, _ in zip(file, range(lines), strict=False))
        todo = list(works(files, part, observations))
        for _, work in todo:
            work()
        for _ in range(rounds):
            for case, work in todo:
                # Garbage of other tasks must not be collected in this one's time.
                gc.collect()
                started = time.perf_counter()
                work()
                case.rates.append(case.triples / (time.perf_counter() - started))
    return [case for case, _ in todo]


def to_parser(case: Case, cases: Sequence[Case]) -> float:
    """The ratio to the rate of pyoxigraph's parser."""
    (parser,) = (median(each.rates) for each in cases if each.how == PARSER)
    return median(case.rates) / parser


def shown(cases: Sequence[Case]) -> Table:
    made = Table(title="triples a second")
    for heading in ("what", "by"):
        made.add_column(heading)
    for heading in ("median", "lowest … highest", "/ pyoxigraph"):
        made.add_column(heading, justify="right", no_wrap=True)
    for case in cases:
        bounds = f"{short(min(case.rates))} … {short(max(case.rates))}"
        made.add_row(case.what, case.how, short(median(case.rates)), bounds, f"{to_parser(case, cases):.2f}")
    return made


def figures_of(cases: Sequence[Case], observations: int) -> dict[str, Any]:
    rows = [asdict(case) | {"median": median(case.rates), "to_parser": to_parser(case, cases)} for case in cases]
    return {"observations": observations, "query": QUERY, "cases": rows}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("ingest", __doc__)
    add_rounds(parser, "so many rounds")
    given = parser.parse_args(arguments)
    observations = QUICK_OBSERVATIONS if given.quick else OBSERVATIONS
    cases = measure(observations, 1 if given.quick else given.rounds)
    Console().print(shown(cases))
    question = (__doc__ or "").split("\n\n")[0]
    libraries = ("rdflib", "zstandard")
    found = taken_now("ingest", question, figures_of(cases, observations), quick=given.quick, libraries=libraries)
    print(f"written to {found.write(folder_of(given))}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
