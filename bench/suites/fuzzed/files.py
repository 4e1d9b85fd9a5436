"""Small valid files of every format, five elements in each: with escapes, lists, and blank nodes."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

TIME = "http://ex.org/at"
"""The property with an element's time in formats that have no other place for it."""

_XSD = "http://www.w3.org/2001/XMLSchema#"
_AHEAD = "<http://www.w3.org/ns/prov#generatedAtTime>"
_AT = [f"2024-05-01T12:00:0{second}Z" for second in range(5)]
_OBJECTS = [
    f'"21.50"^^<{_XSD}decimal>',
    '"caf\\u00e9 \\"noir\\"\\n"@fr-CA',
    "_:node",
    f'"-1.0E300"^^<{_XSD}double>',
    "<http://ex.org/a%20b#c>",
]


def _triples(i: int) -> list[tuple[str, str, str]]:
    """The triples of an element except for its time."""
    subject = f"<http://ex.org/s{i}>"
    return [(subject, "<http://ex.org/p>", _OBJECTS[i]), (subject, "<http://ex.org/über>", f'"text {i}"')]


def _lines(graphs: bool) -> str:
    found: list[str] = []
    for i, at in enumerate(_AT):
        graph = f" <http://ex.org/g{i}>" if graphs else ""
        time = f'"{at}"^^<{_XSD}dateTime>'
        found.append(f"{graph} {_AHEAD} {time} ." if graphs else f"<http://ex.org/s{i}> <{TIME}> {time} .")
        found += [f"{' '.join(triple)}{graph} ." for triple in _triples(i)]
    return "# a comment\n" + "\n".join(found) + "\n"


def _turtle() -> str:
    prologue = f"@prefix : <http://ex.org/> .\n@base <http://ex.org/> .\nPREFIX xsd: <{_XSD}>\n"
    return prologue + "".join(
        f""":s{i} :at "{at}"^^xsd:dateTime ; a :Reading ; :p {i}.5, {i}e3, true, '''it's'''@en ; :q [ :r ( 1 :x _:b "é" ) ] .\n"""
        for i, at in enumerate(_AT)
    )


def _trig() -> str:
    return (
        f"@prefix : <http://ex.org/> .\n@prefix prov: <http://www.w3.org/ns/prov#> .\nPREFIX xsd: <{_XSD}>\n"
        + "".join(
            f':g{i} prov:generatedAtTime "{at}"^^xsd:dateTime .\nGRAPH :g{i} {{ :s{i} :p {i}, [ :q ( :a "b" ) ] }}\n'
            for i, at in enumerate(_AT)
        )
    )


def _rdf() -> str:
    items = "".join(
        f'<rdf:Description rdf:about="s{i}"><e:at rdf:datatype="{_XSD}dateTime">{at}</e:at><e:p xml:lang="de">&e;&#233;&lt;</e:p>'
        '<e:q rdf:parseType="Collection"><rdf:Description e:r="1"/></e:q></rdf:Description>'
        for i, at in enumerate(_AT)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE rdf:RDF [<!ENTITY e "text">]>\n<rdf:RDF xml:base="http://ex.org/" '
        f'xmlns:e="http://ex.org/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">{items}</rdf:RDF>\n'
    )


def _json(i: int, at: str) -> dict[str, object]:
    return {
        "@context": {"@vocab": "http://ex.org/", "at": {"@type": f"{_XSD}dateTime"}, "list": {"@container": "@list"}},
        "@id": f"http://ex.org/s{i}",
        "at": at,
        "p": [i, i + 0.5, True, {"@value": "é", "@language": "fr"}, {"q": {"@id": "_:b"}}],
        "list": ["a", {"@id": "http://ex.org/x"}],
    }


def _rows(delimiter: str) -> str:
    found = [delimiter.join(("time", "graph", "subject", "predicate", "object"))]
    for i, at in enumerate(_AT):
        for triple in _triples(i):
            values = [at, f"<http://ex.org/g{i}>", *triple]
            if delimiter == ",":
                values = ['"' + value.replace('"', '""') + '"' if '"' in value else value for value in values]
            found.append(delimiter.join(values))
    return "\n".join(found) + "\n"


def _parquet() -> bytes:
    rows = [(at, f"<http://ex.org/g{i}>", *triple) for i, at in enumerate(_AT) for triple in _triples(i)]
    names = ("time", "graph", "subject", "predicate", "object")
    table = pa.table({name: [row[k] for row in rows] for k, name in enumerate(names)})
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


_TEXTS: dict[str, Callable[[], str]] = {
    "nt": lambda: _lines(False),
    "nq": lambda: _lines(True),
    "ttl": _turtle,
    "trig": _trig,
    "rdf": _rdf,
    "jsonld": lambda: json.dumps([_json(i, at) for i, at in enumerate(_AT)], ensure_ascii=False),
    "ndjson": lambda: "".join(json.dumps(_json(i, at), ensure_ascii=False) + "\n" for i, at in enumerate(_AT)),
    "csv": lambda: _rows(","),
    "tsv": lambda: _rows("\t"),
}

PLAIN: dict[str, bytes] = {name: text().encode() for name, text in _TEXTS.items()} | {"parquet": _parquet()}
"""A file of each stream format, by suffix."""

COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda plain: gzip.compress(plain, mtime=0),
    "zst": lambda plain: zstandard.compress(plain),
}
"""Compression functions by suffix."""

STATIC = ("nt", "nq", "ttl", "trig", "rdf", "jsonld")
"""The formats of static data."""

TIMED_WITHIN = ("nt", "ttl", "rdf", "jsonld", "ndjson")
"""The formats in which a property of the element, TIME, carries its time."""
