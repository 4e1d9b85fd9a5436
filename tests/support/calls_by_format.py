"""Read and write each format with kernels as plain Python, which report their calls: `python -m tests.support.calls_by_format`.

After the calls of each format a line follows with the part of the manifest that it needs.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from cqels_py.dataflow.kernel_calls import calls_of
from cqels_py.engine.engine import Engine, Query
from cqels_py.formats.kernel_calls import calls_to_read, calls_to_write
from cqels_py.kernels.compiler.manifest import KernelCall
from cqels_py.kernels.compiler.recording import _RECORDER, RECORDING
from cqels_py.sinks.files import open_sink

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}> "
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
SELECT = PREFIX + "SELECT ?a ?b { STREAM :s [RANGE 3s] { ?a :p ?b } }"
STATIC = PREFIX + "SELECT ?a ?b ?c { STREAM :s [RANGE 3s] { ?a :p ?b } ?a :q ?c }"
CONSTRUCT = PREFIX + "CONSTRUCT { ?a :q ?b } { STREAM :s [RANGE 3s] { ?a :p ?b } }"
ROWS = 3
RDF_XML = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="{EX}" xmlns:prov="http://www.w3.org/ns/prov#">
<rdf:Description rdf:about="{EX}a">
<prov:generatedAtTime rdf:datatype="http://www.w3.org/2001/XMLSchema#dateTime">2026-01-01T00:00:00Z</prov:generatedAtTime>
<p><rdf:Description><v>1</v></rdf:Description></p></rdf:Description></rdf:RDF>"""


def date(second: int) -> str:
    return f"2026-01-01T00:00:0{second}Z"


def literal(second: int) -> str:
    return f'"{date(second)}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


def by_subject() -> str:
    """N-Triples with nested blank nodes; also Turtle."""
    return "".join(
        f'<{EX}a{i}> {TIME} {literal(i)} .\n<{EX}a{i}> <{EX}p> _:b{i} .\n_:b{i} <{EX}v> "{i}" .\n' for i in range(ROWS)
    )


def by_graph() -> str:
    """N-Quads."""
    return "".join(
        f'<{EX}g{i}> {TIME} {literal(i)} .\n<{EX}a> <{EX}p> "x{i}" <{EX}g{i}> .\n<{EX}a> <{EX}p> _:b <{EX}g{i}> .\n'
        for i in range(ROWS)
    )


def table() -> pa.Table:
    times = pa.array(range(ROWS), pa.timestamp("us"))
    return pa.table(
        {"time": times, "subject": [f"<{EX}a>"] * ROWS, "predicate": [f"<{EX}p>"] * ROWS, "object": ['"1"'] * ROWS}
    )


def document(second: int) -> dict[str, object]:
    time = {"@value": date(second), "@type": "http://www.w3.org/2001/XMLSchema#dateTime"}
    return {"@id": f"{EX}a{second}", f"{EX}p": [second, {f"{EX}v": 1}], TIME.strip("<>"): time}


def write_as(form: str, path: Path) -> None:
    """A stream in a format."""
    documents = [document(i) for i in range(ROWS)]
    if form == "parquet":
        pq.write_table(table(), path)
    elif form == "arrow":
        with pa.ipc.new_stream(path, table().schema) as writer:
            writer.write_table(table())
    elif form == "jelly":
        write_jelly(path)
    elif form in ("csv", "tsv"):
        rows = [
            ["time", "subject", "predicate", "object"],
            *([date(i), f"<{EX}a>", f"<{EX}p>", f"<{EX}b>"] for i in range(ROWS)),
        ]
        path.write_text("".join(("," if form == "csv" else "\t").join(row) + "\n" for row in rows))
    elif form in ("ndjson", "json"):
        path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    elif form == "jsonld":
        path.write_text(json.dumps(documents))
    elif form == "trig":
        path.write_text(
            "".join(
                f'<{EX}g{i}> {TIME} {literal(i)} .\n<{EX}g{i}> {{ <{EX}a> <{EX}p> "x", _:b . }}\n' for i in range(ROWS)
            )
        )
    elif form == "rdf":
        path.write_text(RDF_XML)
    else:
        path.write_text(by_graph() if form == "nq" else by_subject())


def write_jelly(path: Path) -> None:
    """Flat quads."""
    from pyjelly.integrations.generic.generic_sink import IRI, DefaultGraph, Literal, Quad
    from pyjelly.integrations.generic.serialize import flat_stream_to_file

    kind = "http://www.w3.org/2001/XMLSchema#dateTime"
    quads = []
    for i in range(ROWS):
        graph = IRI(f"{EX}g{i}")
        quads.append(Quad(graph, IRI(TIME.strip("<>")), Literal(date(i), datatype=kind), DefaultGraph))
        quads.append(Quad(IRI(f"{EX}a"), IRI(f"{EX}p"), Literal(f"x{i}"), graph))
    with path.open("wb") as file:
        flat_stream_to_file(iter(quads), file)


def pushed(engine: Engine) -> None:
    engine.push(f"{EX}s", [(f"<{EX}a>", f"<{EX}p>", '"1"')], time=0)
    engine.finish()


def read(form: str, folder: Path) -> Query:
    path = folder / f"stream.{form}"
    write_as(form, path)
    engine = Engine()
    query = engine.register(SELECT)
    by_property = {f"{EX}s": TIME.strip("<>")} if form in ("nt", "ttl", "rdf", "jsonld", "json", "ndjson") else None
    engine.run({f"{EX}s": str(path)}, time_predicates=by_property)
    return query


def read_table(_: str, folder: Path) -> Query:
    dates = pa.array([date(i) for i in range(ROWS)])
    for rows in (table(), table().set_column(0, "time", dates), table().set_column(0, "time", pa.array(range(ROWS)))):
        engine = Engine()
        query = engine.register(SELECT)
        engine.push_batch(f"{EX}s", rows)
        engine.finish()
    return query


def read_static(form: str, folder: Path) -> Query:
    path = folder / f"static.{form}"
    path.write_text(by_subject())
    engine = Engine()
    query = engine.register(STATIC, static=[path])
    pushed(engine)
    return query


def write(form: str, folder: Path) -> Query:
    engine = Engine()
    query = engine.register(CONSTRUCT if form in ("nquads", "turtle", "trig", "jelly") else SELECT)
    query.write_to(
        open_sink(
            form,
            io.BytesIO() if form == "jelly" else io.StringIO(),
            dictionary=engine.dictionary,
            form=query.form,
            variables=query.variables,
            template=query.template,
        )
    )
    pushed(engine)
    return query


def cases() -> Iterator[tuple[str, str, Callable[[str, Path], Query], list[KernelCall]]]:
    """A name, a format, and a function that reads or writes it; then the calls that it needs beside those of its query."""
    for form in (
        "nq",
        "nt",
        "ttl",
        "trig",
        "rdf",
        "jsonld",
        "ndjson",
        "json",
        "csv",
        "tsv",
        "parquet",
        "arrow",
        "jelly",
    ):
        yield f"reading {form}", form, read, calls_to_read(form)
    yield "reading tables", "", read_table, calls_to_read("arrow")
    for form in ("nt", "ttl"):
        yield f"static data in {form}", form, read_static, calls_to_read("nq")
    for form in ("json", "csv", "tsv", "nquads", "turtle", "trig", "jelly"):
        yield f"writing {form}", form, write, calls_to_write(form)


def main() -> None:
    """Report for all formats."""
    with TemporaryDirectory() as folder:
        for name, form, run, calls in cases():
            _RECORDER._seen.clear()
            query = run(form, Path(folder))
            needed = list(map(str, [*calls_of(query.plan), *calls]))
            line = {"caller": __name__, "case": name, "needs": needed}
            os.write(int(os.environ[RECORDING]), json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main()
