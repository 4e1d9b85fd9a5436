"""Tables: .csv, .tsv, .parquet and Arrow, with every way to write a time, and errors in their rows."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.formats.ntriples import Reading
from cqels_py.formats.tabular import elements_from_arrow, parquet_file
from cqels_py.kernels.text.tokenizer import BY_GRAPH
from tests.formats.reading import TIME, XSD, Element, Source, elements_of, instant, iri, read_source, renamed

A, P = iri("a"), iri("p")
TERMS_ALONE = ("subject", "predicate", "object")
READING = Reading(BY_GRAPH, 2, None, "row", per_element=True)
HEAD = "time,graph,subject,predicate,object\n"


def table(rows: list[tuple[Any, ...]], *names: str, **types: pa.DataType) -> pa.Table:
    names = names or ("time", "graph", "subject", "predicate", "object")
    columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    return pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})


def from_arrow(found: pa.Table, dictionary: Dictionary | None = None, *, per_element: bool = True) -> list[Element]:
    dictionary = dictionary or Dictionary()
    batches = elements_from_arrow(found, dictionary, replace(READING, per_element=per_element))
    return renamed(elements_of(batches, dictionary))


ROWS = [
    (1, "g", A, P, '"x, ""y"""'),
    (1, "g", A, P, "_:b"),
    (1, "h", A, P, "_:b"),
    (2, "h", "_:b", P, "_:b"),
    (1, "h", A, P, f'"5"^^<{XSD}integer>'),
    (1, "h", A, P, '"caf\\u00e9"@EN'),
]
ELEMENTS = [
    (1, [(A, P, '"x, \\"y\\""'), (A, P, "_:0")]),
    (1, [(A, P, "_:1")]),
    (2, [("_:2", P, "_:2")]),
    (1, [(A, P, f'"5"^^<{XSD}integer>'), (A, P, '"café"@en')]),
]
OF_ONE_DOCUMENT = [
    (time, [("_:0" if s[0] == "_" else s, p, "_:0" if o[0] == "_" else o) for s, p, o in triples])
    for time, triples in ELEMENTS
]
TERMS = [(*row[:4], row[4].replace('""', '\\"')) for row in ROWS]


def test_rows_of_one_time_and_graph_are_an_element() -> None:
    assert from_arrow(table(TERMS)) == ELEMENTS


def test_files_hold_the_same(source: Source, tmp_path: Path) -> None:
    quoted = [(*row[:4], '"' + row[4].replace('"', '""') + '"') for row in TERMS]
    csv = HEAD + "".join(",".join(map(str, row)) + "\n" for row in quoted)
    assert source("s.csv", csv, blank_nodes="element").elements == ELEMENTS
    assert source("s.csv", csv).elements == OF_ONE_DOCUMENT
    assert source("s.csv", csv.replace("\n", "\r\n")).elements == OF_ONE_DOCUMENT
    assert source("s.csv.gz", gzip.compress(csv.rstrip("\n").encode())).elements == OF_ONE_DOCUMENT
    tsv = HEAD.replace(",", "\t") + "".join("\t".join(map(str, row)) + "\n" for row in TERMS)
    assert source("s.tsv", tsv).elements == OF_ONE_DOCUMENT
    pq.write_table(table(TERMS), tmp_path / "s.parquet", row_group_size=2)
    assert read_source(tmp_path / "s.parquet").elements == OF_ONE_DOCUMENT
    assert read_source(tmp_path / "s.parquet", blank_nodes="element").elements == ELEMENTS
    for size in range(1, len(csv), 13):
        assert source("s.csv", csv, chunk_bytes=size).elements == OF_ONE_DOCUMENT, size


def test_the_graph_may_be_left_out_and_columns_may_be_in_any_order() -> None:
    rows = [(P, 1, "_:b", A, "more"), (P, 1, A, A, "more"), (P, 2, A, A, "more")]
    found = from_arrow(table(rows, "predicate", "time", "object", "subject", "note"))
    assert found == [(1, [(A, P, "_:0"), (A, P, A)]), (2, [(A, P, A)])]


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["", "g", "h"]), st.sampled_from("abc")), max_size=12),
    st.data(),
)
def test_batches_of_a_table_do_not_show(rows: list[tuple[int, str, str]], data: st.DataObject) -> None:
    whole = table(
        [(t, g, iri(s), P, f"_:{s}") for t, g, s in rows],
        time=pa.int64(),
        graph=pa.string(),
        subject=pa.string(),
        predicate=pa.string(),
        object=pa.string(),
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    pieces = [whole.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    expected: list[tuple[int, list[tuple[str, ...]]]] = []
    previous = None
    for t, g, s in rows:
        if (t, g) != previous:
            expected.append((t, []))
        expected[-1][1].append((iri(s), P, f"_:{s}"))
        previous = (t, g)
    for per_element in (True, False):
        found = from_arrow(pa.concat_tables(pieces), per_element=per_element)
        assert found == renamed(expected, per_element)


MOMENT = datetime(2013, 1, 1, 15, 18, 10, 500_000, UTC)
MICROS = 1_357_053_490_500_000


@pytest.mark.parametrize(
    ("time", "kind"),
    [
        (MICROS, pa.int64()),
        (MICROS, pa.uint64()),
        (MOMENT, pa.timestamp("us", "UTC")),
        (MOMENT, pa.timestamp("ns", "America/New_York")),
        (MOMENT.replace(tzinfo=None), pa.timestamp("ms")),
        (str(MICROS), pa.string()),
        ("2013-01-01T15:18:10.5Z", pa.string()),
        ("2013-01-01T10:18:10.500-05:00", pa.large_string()),
        ("2013-01-01 15:18:10.500000", pa.string()),
    ],
)
def test_times_are_microseconds_timestamps_or_texts(time: object, kind: pa.DataType) -> None:
    assert from_arrow(table([(time, None, A, P, A)], time=kind)) == [(MICROS, [(A, P, A)])]


BEFORE = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "kind", "micros"),
    [
        ([-1500, -1, 0, 1999], pa.timestamp("ns"), [-2, -1, 0, 1]),
        ([-1, 4_611_686_018_427], pa.timestamp("s", "UTC"), [-1_000_000, 4_611_686_018_427_000_000]),
        ([-1, 4_611_686_018_427_387], pa.timestamp("ms"), [-1_000, 4_611_686_018_427_387_000]),
        ([-(2**62) + 1, 2**62 - 1], pa.int64(), [-(2**62) + 1, 2**62 - 1]),
        ([-(2**62) + 1, 2**62 - 1], pa.timestamp("us"), [-(2**62) + 1, 2**62 - 1]),
        ([BEFORE.date(), MOMENT.date()], pa.date32(), [-86_400_000_000, 1_356_998_400_000_000]),
        ([BEFORE.date(), MOMENT.date()], pa.date64(), [-86_400_000_000, 1_356_998_400_000_000]),
    ],
)
def test_fractions_of_a_microsecond_are_cut_off_and_coarser_times_are_exact(
    times: list[object], kind: pa.DataType, micros: list[int]
) -> None:
    found = table([(time, iri(str(i)), P, A) for i, time in enumerate(times)], "time", *TERMS_ALONE, time=kind)
    assert [time for time, _ in from_arrow(found)] == micros
    coded = found.set_column(0, "time", found["time"].dictionary_encode())
    assert [time for time, _ in from_arrow(coded)] == micros


def test_nanoseconds_are_cut_off_as_in_texts() -> None:
    texts = [f"1969-12-31T23:59:59.{fraction:09d}" for fraction in range(999_997_000, 10**9, 250)]
    rows = [(text, None, A, P, A) for text in texts]
    moments = pa.array(texts).cast(pa.timestamp("ns"))
    stamped = table(rows).set_column(0, "time", moments)
    assert [time for time, _ in from_arrow(stamped)] == [time for time, _ in from_arrow(table(rows))]


def test_coded_columns_are_columns_like_others() -> None:
    coded = table(TERMS)
    for name in ("graph", "subject", "object"):
        place = coded.column_names.index(name)
        coded = coded.set_column(place, name, coded[name].dictionary_encode())
    assert from_arrow(coded) == ELEMENTS
    assert from_arrow(table(TERMS).slice(2, 1)) == [(1, [(A, P, "_:0")])]
    assert from_arrow(table([]).cast(pa.schema([(n, pa.string()) for n in table([]).column_names]))) == []


def test_coded_columns_may_have_texts_of_any_kind() -> None:
    rows = [(1, A, P, '"x"'), (2, iri("é"), P, '"y"')]
    coded = table(rows, "time", *TERMS_ALONE)
    for place, name in enumerate(TERMS_ALONE, 1):
        values, which = coded[name].unique(), pa.array([0, 0 if name == "predicate" else 1], pa.uint32())
        # As Polars writes its categories.
        for kind in (pa.string_view(), pa.binary(), pa.large_string()):
            column = pa.DictionaryArray.from_arrays(which, values.cast(kind))
            coded = coded.set_column(place, name, column)
            assert from_arrow(coded) == [(time, [tuple(terms)]) for time, *terms in rows]


TEXTS = (A, P, iri("é"), "_:b", '"x"', f'"5"^^<{XSD}integer>', "<open", "", None)


@given(st.lists(st.tuples(*[st.sampled_from(TEXTS)] * 3), min_size=1, max_size=30), st.integers(1, 30))
def test_dictionaries_say_what_their_values_say(terms: list[tuple[str | None, ...]], cut: int) -> None:
    """Blank nodes of their elements, malformed values, values that stand nowhere, and another dictionary in each part."""
    rows = [(number // 2, *row) for number, row in enumerate(terms)]
    plain = table(rows, "time", *TERMS_ALONE, **dict.fromkeys(TERMS_ALONE, pa.string()))
    parts = []
    for part in (plain.slice(0, cut), plain.slice(cut)):
        for place, name in enumerate(TERMS_ALONE, 1):
            column = pa.concat_arrays([*part[name].chunks, pa.array([iri("unused")])]).dictionary_encode()
            part = part.set_column(place, name, column.slice(0, len(part)))
        parts.append(part)
    assert leniently(pa.concat_tables(parts)) == leniently(plain)


def test_columns_of_a_parquet_file_that_repeat_are_read_as_dictionaries(tmp_path: Path) -> None:
    count = 3_000
    rows = [(n, iri(str(n % 7)), P, f'"{n} times something else"') for n in range(count)]
    pq.write_table(table(rows, "time", *TERMS_ALONE), tmp_path / "s.parquet", row_group_size=1_000)
    schema = parquet_file(tmp_path / "s.parquet").schema_arrow
    assert [pa.types.is_dictionary(schema.field(name).type) for name in TERMS_ALONE] == [True, True, False]
    read = read_source(tmp_path / "s.parquet")
    assert read.error is None
    assert [triple for _, triples in read.elements for triple in triples] == [row[1:] for row in rows]
    pq.write_table(table(rows, "time", *TERMS_ALONE), tmp_path / "s.parquet", use_dictionary=False)
    assert not any(map(pa.types.is_dictionary, parquet_file(tmp_path / "s.parquet").schema_arrow.types))


def test_all_triples_arrive_of_a_large_table() -> None:
    count = 200_000
    numbers = np.arange(count)
    large = pa.table(
        {
            "time": pa.array(numbers // 3),
            "subject": [iri(str(i % 1000)) for i in range(count)],
            "predicate": [P] * count,
            "object": [f'"{i}"^^<{XSD}integer>' for i in range(count)],
        }
    )
    dictionary = Dictionary()
    batches = list(elements_from_arrow(large, dictionary, READING))
    assert len(batches) > 1
    times = np.concatenate([batch.time for batch in batches])
    assert times.tolist() == list(range((count + 2) // 3))
    values = np.concatenate([batch.object for batch in batches]) & (1 << 56) - 1
    assert values.tolist() == numbers.tolist()


# --- the time as a property ------------------------------------------------------------------------------------------


def test_the_time_may_be_a_property_of_the_element(source: Source) -> None:
    text = (
        f'graph,subject,predicate,object\n1,{A},{P},{A}\n1,{A},<{TIME}>,"{instant(5)}"\n2,{A},<{TIME}>,"{instant(7)}"\n'
    )
    text = text.replace(instant(5), instant(5).replace('"', '""')).replace(instant(7), instant(7).replace('"', '""'))
    read = source("s.csv", text, time_predicate=TIME)
    assert [(time, len(triples)) for time, triples in read.elements] == [(5_000_000, 2), (7_000_000, 1)]
    missing = source("s.csv", text + f"3,{A},{P},{A}\n", time_predicate=TIME)
    assert f"s.csv:5: the element has no time: no triple with the predicate <{TIME}>" in str(missing.error)
    assert len(missing.elements) == 2


# --- malformed input -------------------------------------------------------------------------------------------------

GOOD = f"1,,{A},{P},{A}\n"
BAD = [
    pytest.param(f"2,,{A}\n", "3 values", id="too few values"),
    pytest.param(f"2,,{A},{P},{A},{A}\n", "6 values", id="too many values"),
    pytest.param(f"yesterday,,{A},{P},{A}\n", "yesterday", id="no time"),
    pytest.param(f",,{A},{P},{A}\n", "time", id="empty time"),
    pytest.param(f"2,,{A},{P},\n", "the object", id="empty object"),
    pytest.param(f"2,,{A},{P},words\n", "words", id="no term"),
    pytest.param(f"2,,{A},{P},<http://ex.org/unclosed\n", "unclosed", id="unclosed IRI"),
    pytest.param(f'2,,"""a""",{P},{A}\n', "the subject", id="literal subject"),
    pytest.param(f"2,,{A},_:p,{A}\n", "the predicate", id="blank predicate"),
    pytest.param(f'2,,{A},{P},"""a\n', "quoted value", id="unclosed quotes"),
    pytest.param(f'2,""x",{A},{P},"""a\n', "quoted value", id="unclosed, of an even number of quotes"),
    pytest.param(f'"2,,{A},{P},""\n', "quoted value", id="unclosed from the first value on"),
    pytest.param(f"2,,{A}\r,{P},{A}\n", "carriage return", id="a line end that is none"),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_malformed_rows_are_named_by_line(source: Source, bad: str, message: str) -> None:
    text = HEAD + GOOD + "\n" + bad + GOOD.replace("1,", "3,", 1) + bad
    stopped = source("s.csv", text)
    assert "s.csv:4: " in str(stopped.error)
    assert message in str(stopped.error)
    skipped = source("s.csv", text, on_error="skip")
    assert skipped.error is None
    assert [time for time, _ in skipped.elements] == [1, 3]
    assert len(skipped.reported) == 2
    assert "s.csv:4: " in skipped.reported[0]
    assert "s.csv:6: " in skipped.reported[1]


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.parametrize("last", ['2,,"', f'2,,{A},{P},"""a""', f'2,,{A},{P},"""b",",""'])
def test_a_file_that_ends_within_quotes(source: Source, last: str, end: str) -> None:
    text = HEAD + GOOD + last + end
    stopped, skipped = source("s.csv", text), source("s.csv", text, on_error="skip")
    assert "s.csv:3: a quoted value does not end" in str(stopped.error)
    assert (skipped.error, len(skipped.reported)) == (None, 1)
    assert [time for time, _ in skipped.elements] == [1]


def test_nothing_but_rows_that_are_none(source: Source) -> None:
    for name, bad in (("s.csv", '"\n"\n'), ("s.csv", "\r,\n"), ("s.tsv", "a\rb\n")):
        skipped = source(name, HEAD.replace(",", "\t" if name == "s.tsv" else ",") + bad, on_error="skip")
        assert (skipped.elements, skipped.error, len(skipped.reported)) == ([], None, bad.count("\n"))


def test_a_line_that_is_no_row_never_takes_others_with_it(source: Source) -> None:
    """Whatever quotes, commas and line ends stand in it."""
    good = [f"{at},,{A},{P},{A}\n" for at in (1, 3)]
    for cells in product(('"', '""', "a", ",", "\r"), repeat=4):
        line = f"2,,{A},{P},{''.join(cells)}"
        read = source("s.csv", HEAD + good[0] + line + "\n" + good[1], on_error="skip")
        assert [time for time, _ in read.elements] == ([1, 3] if read.reported else [1, 2, 3]), line
        assert len(read.reported) <= 1 and all("s.csv:3: " in each for each in read.reported), line


def test_a_column_that_is_missing(source: Source) -> None:
    read = source("s.csv", f"time,subject,predicate\n1,{A},{P}\n")
    assert "s.csv:1: " in str(read.error)
    assert "no column object" in str(read.error)
    assert str(read.error).endswith("; here they are time, subject, predicate")
    with pytest.raises(DataError, match=r"no column time.* here they are subject, predicate, object$"):
        from_arrow(table([(A, P, A)], "subject", "predicate", "object"))


def test_the_columns_of_a_file_without_those_needed_are_named(source: Source, tmp_path: Path) -> None:
    pq.write_table(table([(1, A)], "when", "what"), tmp_path / "s.parquet")
    found = str(read_source(tmp_path / "s.parquet").error)
    assert re.match(r".*s\.parquet: there is no column time .*; here they are when, what$", found)
    pq.write_table(table([(1, [A], P, A)], "time", "subject", "predicate", "object"), tmp_path / "list.parquet")
    assert re.match(
        r".*list\.parquet: the column subject of type list", str(read_source(tmp_path / "list.parquet").error)
    )
    long = str(source("s.csv", "x" * 10_000 + "\n").error)
    assert "no column time" in long
    assert len(long) < 500


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ('"31"', '"""31"""'),
        ("31", '"""31"""'),
        ('"two words"', '"""text"""'),
        ('""', '"""text"""'),
        (f'"31^^<{XSD}integer>"', '"""text"""'),
        ("<http://ex.org/", None),
        ('"""open"', None),
    ],
)
def test_a_literal_of_csv_that_has_lost_its_quotes(source: Source, value: str, hint: str | None) -> None:
    csv = source("s.csv", f"time,subject,predicate,object\n1,{A},{P},{value}\n")
    assert (f"within quotes: {hint}" in str(csv.error)) if hint else ("within quotes" not in str(csv.error))
    tsv = source("s.tsv", f"time\tsubject\tpredicate\tobject\n1\t{A}\t{P}\t31\n")
    assert "within quotes" not in str(tsv.error)


def test_columns_of_other_types() -> None:
    with pytest.raises(DataError, match="no terms"):
        from_arrow(table([(1, None, A, P, [1, 2])]))
    with pytest.raises(DataError, match="the time is 'x2013'"):
        from_arrow(table([("x2013", None, A, P, A)]))


def test_a_row_of_a_table_is_named_by_its_number() -> None:
    with pytest.raises(DataError, match=r"row:3: the object: words is not a term"):
        from_arrow(table([(1, "", A, P, A), (2, "", A, P, A), (3, "", A, P, "words")]))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("time", [pa.int64(), pa.int32(), pa.uint64(), pa.string()])
def test_slices_of_columns_of_any_kind_of_text(kind: pa.DataType, time: pa.DataType) -> None:
    rows = [(str(t) if time == pa.string() else t, A, P, f'"{t}"') for t in range(1, 6)]
    if time == pa.string():
        rows = [(f"1970-01-01T00:00:00.00000{t}Z", *others) for t, *others in rows]
    whole = table(rows, "time", "subject", "predicate", "object", time=time, subject=kind, predicate=kind, object=kind)
    for found in (whole.slice(1, 3), pa.concat_tables([whole.slice(1, 1), whole.slice(0, 0), whole.slice(2, 2)])):
        assert from_arrow(found) == [(t, [(A, P, f'"{t}"')]) for t in (2, 3, 4)]


FAR_AWAY = [
    pytest.param(pa.int64(), [2**62, -(2**62), 2**63 - 1, -(2**63)], id="int64"),
    pytest.param(pa.uint64(), [2**62, 2**63, 2**63 + 5, 2**64 - 1], id="uint64"),
    pytest.param(pa.timestamp("us"), [2**62, -(2**62)], id="microseconds"),
    # Times a million and a thousand come back to a sound number, in 64 bits.
    pytest.param(pa.timestamp("s"), [1_700_000_000_000_000, 2**63 - 1, -(2**63)], id="seconds"),
    pytest.param(pa.timestamp("ms", "UTC"), [18_446_744_073_709_552, 4_611_686_018_427_388], id="milliseconds"),
    pytest.param(pa.date32(), [2**31 - 1, -(2**31)], id="days"),
]


@pytest.mark.parametrize(("kind", "times"), FAR_AWAY)
def test_times_far_beyond_any_date_are_malformed(kind: pa.DataType, times: list[int], tmp_path: Path) -> None:
    number = pa.int32() if pa.types.is_date32(kind) else pa.uint64() if kind == pa.uint64() else pa.int64()
    column = pa.array([1, *times, None, 2], number).cast(kind)
    rows = table([(None, A, P, A)] * len(column), "time", *TERMS_ALONE).set_column(0, "time", column)
    with pytest.raises(DataError, match=rf"row:2: the time is {times[0]}.*far beyond any date; expected a time like"):
        from_arrow(rows)
    found, reported = leniently(rows)
    assert len(found) == 2
    assert [message.partition(": ")[0] for message in reported] == [f"row:{i}" for i in range(2, len(column))]
    if kind.bit_width == 64 and kind != pa.timestamp("s"):
        pq.write_table(rows, tmp_path / "s.parquet")
        assert f"s.parquet:2: the time is {times[0]}" in str(read_source(tmp_path / "s.parquet").error)


def leniently(found: pa.Table) -> tuple[list[Element], list[str]]:
    """The elements of a table without malformed rows, and the malformed rows."""
    dictionary, reported = Dictionary(), list[DataError]()
    batches = elements_from_arrow(found, dictionary, READING, reported.append)
    return renamed(elements_of(batches, dictionary)), [str(error) for error in reported]


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.duration("us"), pa.list_(pa.int64())])
def test_columns_that_hold_no_times(kind: pa.DataType) -> None:
    time: object = [1] if pa.types.is_list(kind) else 1
    with pytest.raises(
        DataError, match=r"the column time of type .* (a length of time, not a point in time|no times); expected a time"
    ):
        from_arrow(table([(time, A, P, A)], "time", *TERMS_ALONE, time=kind))


def unchecked(*texts: bytes) -> pa.Array:
    """A column of strings, whether they are UTF-8 or not."""
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))])


@pytest.mark.parametrize("name", ["time", "graph", *TERMS_ALONE])
@pytest.mark.parametrize("form", ["string", "coded", "binary", "many"])
def test_a_row_that_is_not_utf8_is_malformed(name: str, form: str) -> None:
    good = b"3" if name == "time" else "<http://ex.org/é>".encode()
    texts = [good, b"\xc3\xa9" * 3 + b"<\xff\xfe>", good]
    whole = table([(3, "g", A, P, A)] * 3)
    column = pa.array(texts, pa.binary()) if form == "binary" else unchecked(*texts)
    if form == "coded":
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), column.slice(0, 2))
    if form == "many":
        whole = pa.concat_tables([whole.slice(0, 2), *[whole.slice(2, 1)] * 998])
        column = unchecked(*texts[:2], *[good] * 998)
    rows = whole.set_column(whole.column_names.index(name), name, column)
    with pytest.raises(DataError, match=rf"row:2: the {name}: the byte 0xff is not UTF-8"):
        from_arrow(rows)
    found, reported = leniently(rows)
    assert sum(len(triples) for _, triples in found) == len(rows) - 1
    assert len(reported) == 1


def test_two_columns_of_one_name(source: Source, tmp_path: Path) -> None:
    twice = table([(1, A, P, A, A)], "time", *TERMS_ALONE, "note").rename_columns(["time", *TERMS_ALONE, "subject"])
    message = "there is more than one column subject; the columns are time"
    with pytest.raises(DataError, match=message):
        from_arrow(twice)
    pq.write_table(twice, tmp_path / "s.parquet")
    assert message in str(read_source(tmp_path / "s.parquet").error)
    read = source("s.csv", f"time,subject,predicate,object,subject\n1,{A},{P},{A},{A}\n")
    assert f"s.csv:1: {message}" in str(read.error)
    passed_over = table([(1, A, P, A, 1, 2)], "time", *TERMS_ALONE, "x", "y")
    assert from_arrow(passed_over.rename_columns(["time", *TERMS_ALONE, "x", "x"])) == [(1, [(A, P, A)])]
