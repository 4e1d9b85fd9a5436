"""Files that are damaged, endless, or expand to far more than their size."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import zstandard

from bench.suites.hostility.limits import limit
from bench.suites.hostility.running import EX, Answers, cqels_run, folder, iri
from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import CqelsError, DataError
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening

_QUERY = f"SELECT * WHERE {{ STREAM <{EX}s> [NOW] {{ ?s ?p ?o }} }}"
_MIB = 1 << 20


def _read(path: Path, predicate: str | None = f"{EX}at") -> str:
    """The outcome of reading a file, skipping malformed input."""
    reported: list[DataError] = []
    elements = 0
    try:
        opening = Opening(
            stream="",
            number=0,
            dictionary=Dictionary(),
            on_error="skip",
            report=reported.append,
            time_predicate=predicate,
        )
        for batch in open_source(str(path), opening):
            elements += len(batch)
    except CqelsError as error:
        return f"{elements} elements, then {type(error).__name__}"
    return f"{elements} elements, {len(reported)} reported"


def _compressed(name: str, parts: Iterator[bytes]) -> Path:
    path = folder() / name
    with gzip.open(path, "wb", compresslevel=6) if name.endswith(".gz") else zstandard.open(path, "wb") as file:
        for part in parts:
            file.write(part)
    return path


@limit(megabytes=500, seconds=20)
def line_of_a_gzip_bomb() -> str:
    """1 MB of gzip that is one line of 1 GB."""
    found = _read(_compressed("bomb.nt.gz", (b"x" * _MIB for _ in range(1024))))
    assert found == "0 elements, 1 reported", found
    return found


@limit(megabytes=500, seconds=20)
def line_of_a_zstd_bomb() -> str:
    """100 KB of zstd that are one line of 1 GB."""
    found = _read(_compressed("bomb.csv.zst", (b"x" * _MIB for _ in range(1024))), None)
    assert "1 reported" in found or "DataError" in found, found
    return found


@limit(megabytes=500, seconds=60)
def lines_of_a_gzip_bomb() -> str:
    """gzip that is 1 GB of lines without anything in them."""
    line = b" " * 1023 + b"\n"
    found = _read(_compressed("lines.nq.gz", (line * 1024 for _ in range(1024))))
    assert found == "0 elements, 0 reported", found
    return found


@limit(megabytes=600, seconds=30)
def term_without_end() -> str:
    """Turtle, RDF/XML and JSON-LD whose one term has 300 MB."""
    heads = {
        "endless.ttl": f'{iri("a")} {iri("p")} "',
        "endless.rdf": f'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="{EX}"><r:Description><e:p>',
        "endless.jsonld": '[{"@id": "',
    }
    for name, head in heads.items():
        with (folder() / name).open("wb") as file:
            file.write(head.encode())
            file.writelines(b"x" * _MIB for _ in range(300))
        found = _read(folder() / name)
        assert "1 reported" in found or "DataError" in found, f"{name}: {found}"
    return "3 reported"


@limit(megabytes=300, seconds=5)
def entities_within_entities() -> str:
    """RDF/XML with entities that stand for 3 TB."""
    declared = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 13))
    path = folder() / "laughs.rdf"
    path.write_text(
        f'<!DOCTYPE r [<!ENTITY e0 "lol">{declared}]><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        f'xmlns:e="{EX}"><r:Description r:about="{EX}a"><e:p>&e12;</e:p></r:Description></r:RDF>'
    )
    found = _read(path)
    assert found == "0 elements, 1 reported", found
    return found


@limit(megabytes=500, seconds=10)
def deep_json() -> str:
    """a line of JSON-LD that is 1,000,000 arrays deep."""
    path = folder() / "deep.ndjson"
    path.write_text(f'{{"{EX}at": {"[" * 1_000_000}{"]" * 1_000_000}}}\n')
    found = _read(path)
    assert found == "0 elements, 1 reported", found
    return found


@limit(megabytes=300, seconds=5)
def csv_open_in_quotes() -> str:
    """a CSV that ends within quotes, stopping and skipping."""
    path = folder() / "open.csv"
    rows = [f"{i},{iri('a')},{iri('p')},{iri(f'b{i}')}\n" for i in (1, 2)]
    path.write_text("".join(["time,subject,predicate,object\n", *rows, f'3,{iri("a")},{iri("p")},"""x']))
    stream = f"--stream={EX}s={path}"
    stopped = cqels_run("-q", _QUERY, stream)
    assert stopped.returncode == 1 and "open.csv:4: " in stopped.stderr, stopped.stderr
    skipped = cqels_run("-q", _QUERY, stream, "--on-error=skip", "--format=json")
    assert (skipped.returncode, skipped.stdout.count("\n")) == (0, 2), skipped.stderr
    return "status 1, then 2 results and status 0"


@limit(megabytes=600, seconds=10)
def released_term() -> str:
    """a batch that is kept until its terms are released."""
    engine = Engine()
    kept = []
    engine.register(_QUERY).subscribe_batches(kept.append, ids=True)
    for i in range(150_000):
        engine.push(f"{EX}s", [(iri(f"subject-of-some-length-{i}"), iri("p"), iri("o"))], time=i)
    try:
        engine.dictionary.decode(kept[0].columns[0])
    except CqelsError as error:
        return type(error).__name__
    raise AssertionError("the term is still there")


@limit(megabytes=300, seconds=5)
def long_numbers() -> str:
    """numbers of 100,000 digits in elements, compared and added up."""
    answers = Answers("?s :v ?x", "FILTER(?x > 1)")
    answers.push(("v", f'"{"9" * 100_000}"^^<http://www.w3.org/2001/XMLSchema#integer>'))
    answers.push(("v", f'"1.{"9" * 100_000}"^^<http://www.w3.org/2001/XMLSchema#decimal>'))
    return json.dumps(answers.count) + " results"
