"""Limits of nesting: the scan against parsers, and every entrance that hands bytes to a library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.suites.fuzzed.nested import NESTED, run_apart
from cqels_py import Engine
from cqels_py.dictionary import Dictionary
from cqels_py.errors import CqelsError, DataError, Place, QuerySyntaxError
from cqels_py.formats import depth, turtle
from cqels_py.formats.depth import FORMATS, TooDeep, check_depth, shallow
from cqels_py.formats.json_documents import json_value
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.static import load_static
from cqels_py.kernels.text import depth as kernel
from cqels_py.service.datasets import dataset_of
from cqels_py.service.definitions import inline_static
from cqels_py.sources import sparql_protocol
from cqels_py.sources.documents import document_elements
from cqels_py.sources.files import open_source
from cqels_py.sources.ldes.pages import read_page
from cqels_py.sources.protocol import Opening

SCANS = settings(max_examples=150, derandomize=True, database=None, deadline=None)
DEEP = {
    "ttl": b"<a:a> <a:b> " + b"<<(<a:a> <a:b> " * 33 + b"<a:c>" + b")>>" * 33 + b" .\n",
    "jsonld": b'{"a:b":' * 101 + b'"x"' + b"}" * 101,
    "rdf": b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="a:">'
    + b"<e:a>" * 100 + b"</e:a>" * 100 + b"</r:RDF>",
}  # fmt: skip
DEEP |= dict.fromkeys(("trig", "nt", "nq"), DEEP["ttl"])


def deepest(text: str, form: str) -> tuple[int, int]:
    """The most open brackets, and the most open triple terms, of a text by the scan: the least limits that it passes."""
    state, most, data = np.zeros(kernel.STATE_CELLS, np.int64), (0, 0), np.frombuffer(text.encode(), np.uint8)
    unlimited = np.int64(1 << 40)
    for at in range(len(data)):
        place = kernel.first_too_deep(data[at : at + 1], FORMATS[form].table, state, unlimited, unlimited, unlimited)
        assert place == 1
        triples = max(int(state[kernel.TRIPLES]), int(state[kernel.UNCLOSED]))
        most = (max(most[0], int(state[kernel.BRACKETS])), max(most[1], triples))
    return most


def depth_of_json(value: object) -> int:
    inside = value if isinstance(value, list) else value.values() if isinstance(value, dict) else None
    return 0 if inside is None else 1 + max(map(depth_of_json, inside), default=0)


TEXTS = st.text(alphabet="[]{}\"\\'<>a\né", max_size=8)
VALUES = st.recursive(
    TEXTS | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@SCANS
@given(VALUES, st.booleans())
def test_json_is_as_deep_as_its_value(value: object, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    assert deepest(text, "json")[0] == depth_of_json(value)
    assert deepest(text + "\n" + text, "ndjson")[0] == depth_of_json(value)


MARKUP = st.sampled_from(
    ["<a>", "</a>", "<a/>", '<a b="/>&lt;\'>" c=\'"\'>', "<!-- <a> - -->", "<![CDATA[<a>]]]>", "<?p <a> ??>", "text/>", "<a\n/>"]
)  # fmt: skip
HEADS = st.sampled_from(["", '<!DOCTYPE r [<!ENTITY x "it\'s"><?p "?>]>', "<!DOCTYPE r>", '<!DOCTYPE r SYSTEM "u">'])


@SCANS
@given(HEADS, st.lists(MARKUP, max_size=20))
def test_xml_is_as_deep_as_its_elements(head: str, parts: list[str]) -> None:
    text, opened = head + "<r>", 0
    for part in parts:
        opened += part.startswith("<a") and not part.endswith("/>")
        if part == "</a>" and not opened:
            continue
        opened -= part == "</a>"
        text += part
    text += "</a>" * opened + "</r>"

    def depth(element: ElementTree.Element) -> int:
        return 1 + max(map(depth, element), default=0)

    assert deepest(text, "rdf")[0] == depth(ElementTree.fromstring(text))


MARKS = [
    '"',
    "'",
    '"' * 3,
    "'" * 3,
    "<",
    ">",
    "<a:b>",
    "\\q",
    "\\u12",
    '\\"',
    "\\",
    "\n",
    " . ",
    "<<(",
    "<<(<a:a> <a:b> ",
    ")>>",
    "<<",
]
MARKS += [
    ">>",
    "#",
    "@",
    "@en",
    "^^",
    "_:a",
    " ",
    "a:",
    *"{}[]();=",
    "<a b",
    "1.",
    "%",
    "{|",
    "|}",
    "é",
    "a:b\\#",
    "@prefix",
]
SOUP = st.lists(st.sampled_from(MARKS), max_size=8)


def depth_of_term(term: object) -> int:
    return 1 + max(map(depth_of_term, (term.subject, term.object))) if isinstance(term, pyoxigraph.Triple) else 0


@settings(SCANS, max_examples=400)
@given(SOUP, st.sampled_from([" .\n", "\n", "", " . "]), st.integers(1, 4), st.sampled_from(["ttl", "trig", "nq"]))
def test_no_term_is_deeper_than_the_scan_says_also_behind_errors(
    soup: list[str], end: str, deep: int, form: str
) -> None:
    nested = "<a:a> <a:b> " + "<<(<a:a> <a:b> " * deep + "<a:c>" + " )>>" * deep + " .\n"
    text = "<a:a> <a:b> " + "".join(soup) + end + nested + nested
    parser, found = pyoxigraph.parse(text.encode(), turtle.RDF_FORMATS[form]), 0
    while True:
        try:
            found = max(found, depth_of_term(next(parser).object))
        except StopIteration:
            break
        except SyntaxError:
            continue
    assert found <= deepest(text, form)[1]


@pytest.mark.parametrize("form", sorted(DEEP))
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_the_place_does_not_depend_on_chunks(form: str, size: int) -> None:
    text = b" \n\n  " + DEEP[form]
    with pytest.raises(TooDeep) as whole:
        check_depth(text, form, "a.txt")
    passed = []
    with pytest.raises(TooDeep) as cut:
        for chunk in shallow((text[start : start + size] for start in range(0, len(text), size)), form, "a.txt"):
            passed.append(chunk)  # noqa: PERF402
    assert str(cut.value) == str(whole.value)
    assert isinstance(whole.value.place, Place) and whole.value.place.column is not None
    before = b"".join(passed)
    assert text.startswith(before) and len(before) == len(b" \n\n  ") + whole.value.place.column - 3


def body(form: str) -> Callable[[bytes, Path], object]:
    opening = Opening(stream="a:s", number=0, dictionary=Dictionary(), on_error="stop")
    return lambda data, _: document_elements(data, form, opening, source="body", arrival=1)


def read_all(path: Path) -> None:
    for _ in open_source(
        str(path), Opening(stream="a:s", number=0, dictionary=Dictionary(), on_error="stop", time_predicate="a:t")
    ):
        pass  # fmt: skip


def read_file(ending: str) -> Callable[[bytes, Path], object]:
    def read(data: bytes, folder: Path) -> None:
        path = folder / f"deep.{ending}"
        path.write_bytes(data)
        read_all(path)

    return read


def read_static(ending: str) -> Callable[[bytes, Path], object]:
    def read(data: bytes, folder: Path) -> object:
        path = folder / f"static.{ending}"
        path.write_bytes(data)
        return load_static(str(path), Dictionary(), 1)

    return read


def with_context(data: bytes, folder: Path) -> None:
    path = folder / "one.jsonld"
    path.write_bytes(b'{"@context": "a:c", "a:b": 1}')
    context = {"@context": {"x": json.loads(data)}}
    for _ in open_source(
        str(path), Opening(stream="a:s", number=0, dictionary=Dictionary(), contexts={"a:c": context["@context"]})
    ):
        pass  # fmt: skip


def page(kind: str) -> Callable[[bytes, Path], object]:
    return lambda data, _: read_page(data, kind, "http://h/p", JsonLd(), None)


ENTRANCES = {
    **{f"body {form}": (form, body(form)) for form in ("ttl", "trig", "jsonld")},
    "body ndjson": ("jsonld", body("ndjson")),
    **{f"file {form}": (form, read_file(form)) for form in ("ttl", "trig", "jsonld")},
    "file ndjson": ("jsonld", read_file("ndjson")),
    **{f"static {form}": (form, read_static(form)) for form in ("ttl", "trig", "rdf", "jsonld")},
    "static in a request": ("ttl", lambda data, _: inline_static({"type": "text/turtle", "data": data.decode()})),
    "context": ("jsonld", with_context),
    "page ttl": ("ttl", page("text/turtle")),
    "page rdf": ("rdf", page("application/rdf+xml")),
    "page jsonld": ("jsonld", page("application/ld+json")),
    "JSON of a request": ("jsonld", lambda data, _: json_value(data)),
    "answer of SERVICE": ("jsonld", lambda data, _: sparql_protocol.answered("http://h/", data)),
    "dict": ("jsonld", lambda data, _: Engine().push("a:s", json.loads(data), time=1)),
}


@pytest.mark.parametrize("name", ENTRANCES)
def test_each_entrance_refuses_what_is_too_deep(name: str, tmp_path: Path) -> None:
    form, enter = ENTRANCES[name]
    with pytest.raises(CqelsError, match="nested more than"):
        enter(DEEP[form], tmp_path)


@pytest.mark.parametrize("deep", [("(", "1 = 1", ")"), ("(", "?o + 1", ")"), ("EXISTS { ?s ?p ?o FILTER(", "?o", ")}")])
def test_query_texts_are_refused_with_the_place(deep: tuple[str, str, str]) -> None:
    opening, inner, closing = deep
    text = "SELECT * {\n STREAM <a:s> [NOW] { ?s ?p ?o }\n FILTER(" + opening * 101 + inner + closing * 101 + ") }"
    with pytest.raises(QuerySyntaxError, match="more than 100 open brackets") as refused:
        Engine().register(text)
    assert refused.value.place is not None and refused.value.place.line == 3
    with pytest.raises(CqelsError, match="more than 100 open brackets"):
        dataset_of(text, "a:")


def test_what_stands_before_is_read_and_reading_skips_to_the_next_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "some.ndjson"
    path.write_bytes(b'{"@id":"a:1","a:b":1}\n' + DEEP["jsonld"] + b'\n{"@id":"a:2","a:b":1}\n')
    reported: list[DataError] = []
    opening = Opening(
        stream="a:s", number=0, dictionary=Dictionary(), on_error="skip", report=reported.append, time_predicate=None
    )
    assert sum(len(batch) for batch in open_source(str(path), opening)) <= 2
    (error,) = [error for error in reported if "nested" in error.message]
    assert error.place is not None and error.place.line == 2


def test_markup_in_a_doctype_is_refused(tmp_path: Path) -> None:
    text = b'<!DOCTYPE r [<!ENTITY e "<b>">]>' + DEEP["rdf"]
    with pytest.raises(DataError, match="declaration of DOCTYPE"):
        read_static("rdf")(text, tmp_path)


def test_a_document_has_a_limit_of_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (depth, __import__("cqels_py.sources.documents", fromlist=["documents"])):
        monkeypatch.setattr(module, "MOST_STATEMENTS", 3)
    few, many = (b"<a:a> <a:b> " + b",".join(b"<a:%d>" % n for n in range(count)) + b" .\n" for count in (3, 4))
    for enter in (body("ttl"), page("text/turtle")):
        with pytest.raises(CqelsError, match="more than 3 statements"):
            enter(many, Path())
    assert len(body("ttl")(few, Path()).subject) == 3  # type: ignore[attr-defined]


def test_a_process_outlives_whatever_is_nested_in_what_it_reads() -> None:
    kinds = sum(len(brackets) for _, brackets, _ in NESTED.values())
    assert run_apart(0, seed=2) == kinds
