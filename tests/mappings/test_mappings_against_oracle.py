"""Rows through a mapping are the triples that a SPARQL engine constructs of each row alone, given its values as VALUES."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph
import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.mappings.mapping import Mapping
from cqels_py.sources.mapped import mapped_file, mapped_table
from cqels_py.sources.protocol import Opening

XSD = "http://www.w3.org/2001/XMLSchema#"
Row = dict[str, Any]
BINDS = (
    'BIND(IRI(CONCAT("http://ex.org/", STR(?a))) AS ?s)',
    'BIND(IRI(CONCAT("http://ex.org/room/", ?c)) AS ?x)',
    "BIND(?n * 2 AS ?x)",
    "BIND(IF(BOUND(?c), ?c, ?a) AS ?x)",
    "BIND(STRLEN(?a) + ?n AS ?x)",
    "BIND(STRDT(STR(?n), <http://ex.org/unit>) AS ?x)",
    "BIND(COALESCE(?c, ?n) AS ?x)",
)
FILTERS = ("?n > 2", "BOUND(?c)", "!BOUND(?c) || ?n < 3", 'STRSTARTS(?a, "t")', "?b", "?x > 3")
TRIPLES = (
    "?s <p:n> ?n",
    "?s <p:x> ?x",
    "?s <p:a> ?a",
    "?s ?x ?a",
    '?s <p:k> "k"',
    "<p:all> <p:c> ?c",
    "?x <p:of> ?s",
    "?s <p:n> ?b",
)
TEXTS = ("t1", "t 2", 'q"\\', "", "é\n", "true", "12", "1.5", "-3.5", "007", "NaN", "http://ex.org/i")


def drawn_mapping(random: Random) -> str:
    binds = [BINDS[0], random.choice(BINDS[1:])]
    filters = [f"FILTER({each})" for each in random.sample(FILTERS, random.randint(0, 2))]
    triples = random.sample(TRIPLES, random.randint(1, 4))
    return f"CONSTRUCT {{ {' . '.join(triples)} }} WHERE {{ {' '.join(binds)} {' '.join(filters)} }}"


def drawn_rows(random: Random, values: Any, rows: int) -> list[Row]:
    return [
        {"time": 1_000_000 * 1_700_000_000 + number, **{name: values(random, name) for name in "abcn"}}
        for number in range(rows)
    ]


def any_value(random: Random, name: str) -> Any:
    """One of the values of JSON."""
    kind = random.randrange(6)
    if kind == 0:
        return None
    if name == "n" or kind == 1:
        return random.choice((1, 2, 3, 1.5, -2.25, 10**17, 0.125, 0))
    return random.choice((True, False)) if kind == 2 else random.choice(TEXTS)


def typed_value(random: Random, name: str) -> Any:
    """A value of the column's type."""
    if random.random() < 0.2:
        return None
    return {
        "a": random.choice(TEXTS),
        "b": random.random() < 0.5,
        "c": random.choice(TEXTS),
        "n": random.randint(-3, 9),
    }[name]


def written_value(random: Random, name: str) -> Any:
    """A text, as in CSV."""
    return (
        random.choice([text for text in TEXTS if "\n" not in text])
        if name != "n"
        else random.choice(("1", "2.5", "3", ""))
    )


# --- the oracle -------------------------------------------------------------------------------------------------------


def term_of(value: Any) -> str | None:
    """In SPARQL; None: unbound."""
    if value is None:
        return None
    if isinstance(value, bool):
        return f'"{str(value).lower()}"^^<{XSD}boolean>'
    if isinstance(value, int):
        return f'"{value}"^^<{XSD}integer>'
    if isinstance(value, float):
        return f'"{value!r}"^^<{XSD}double>'
    return str(pyoxigraph.Literal(value))


def term_as_written(text: str) -> str | None:
    """A value of CSV is a number or a truth value where JSON would read it as one."""
    if text == "":
        return None
    try:
        found = json.loads(text, parse_constant=lambda _: None)
    except ValueError:
        found = None
    if isinstance(found, bool | int | float) and text == text.strip():
        kind = "boolean" if isinstance(found, bool) else "integer" if isinstance(found, int) else "double"
        return f'"{text}"^^<{XSD}{kind}>'
    return term_of(text)


def expected(mapping: str, rows: Sequence[Row], term: Any) -> list[tuple[int, set[str]]]:
    """Time and triples of each row that makes triples."""
    found = []
    for row in rows:
        terms = {name: term(row[name]) for name in "abcn"}
        bound = {name: text for name, text in terms.items() if text is not None}
        values = f"VALUES ({' '.join(f'?{n}' for n in bound)}) {{ ({' '.join(bound.values())}) }} " if bound else ""
        asked = mapping.replace("WHERE { ", f"WHERE {{ {values}")
        quads = {str(triple) for triple in pyoxigraph.Store().query(asked)}
        if quads:
            found.append((row["time"], {canonical(quad) for quad in quads}))
    return found


def canonical(triple: str) -> str:
    """Doubles by their values: their texts differ between engines."""
    term, mark, rest = triple.rpartition(f"^^<{XSD}double>")
    if not mark:
        return triple
    start = term.rindex(' "') + 2
    return f"{term[: start - 1]}{float(term[start:-1].replace('INF', 'inf'))!r} double{rest}"


# --- the mapping ------------------------------------------------------------------------------------------------------


class Mapped:
    """What a mapping makes of a source, with the malformed rows."""

    def __init__(self, mapping: str, source: Any) -> None:
        self.dictionary = Dictionary()
        self.wrong: list[str] = []
        opening = Opening(
            stream="s:s",
            number=0,
            dictionary=self.dictionary,
            on_error="skip",
            report=lambda error: self.wrong.append(str(error)),
            map=Mapping.of(mapping),
        )
        read = mapped_file if isinstance(source, str) else mapped_table
        self.elements = [each for batch in read(source, opening) for each in self._of(batch)]

    def _of(self, batch: ElementBatch) -> Iterator[tuple[int, set[str]]]:
        columns = [self.dictionary.decode(each) for each in (batch.subject, batch.predicate, batch.object)]
        triples = [canonical(" ".join(map(str, terms))) for terms in zip(*columns, strict=True)]
        for number in range(len(batch)):
            yield int(batch.time[number]), set(triples[batch.first[number] : batch.first[number + 1]])


SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_json(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    mapping, rows = drawn_mapping(random), drawn_rows(random, any_value, 12)
    path = tmp_path / "rows.ndjson"
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=random.random() < 0.5)}\n" for row in rows), "utf-8")
    assert Mapped(mapping, str(path)).elements == expected(mapping, rows, term_of)


@pytest.mark.parametrize("seed", SEEDS)
def test_tables(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    mapping, rows = drawn_mapping(random), drawn_rows(random, typed_value, 12)
    types = {
        "time": pa.int64(),
        "a": pa.string(),
        "b": pa.bool_(),
        "c": pa.dictionary(pa.int32(), pa.string()),
        "n": pa.int32(),
    }
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})
    wanted = expected(mapping, rows, term_of)
    assert Mapped(mapping, table).elements == wanted
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=5)
    assert Mapped(mapping, str(tmp_path / "rows.parquet")).elements == wanted


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_delimited(seed: int, ending: str, tmp_path: Path) -> None:
    random = Random(seed)
    mapping, rows = drawn_mapping(random), drawn_rows(random, written_value, 12)
    path = tmp_path / f"rows.{ending}"
    with path.open("w", newline="", encoding="utf-8") as file:
        if ending == "csv":
            writer = csv.DictWriter(file, ["n", "time", "c", "b", "a"], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(
                "\t".join(line) + "\n" for line in [list(rows[0]), *([str(v) for v in row.values()] for row in rows)]
            )
    assert Mapped(mapping, str(path)).elements == expected(mapping, rows, term_as_written)
