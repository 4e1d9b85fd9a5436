"""Numbers of JSON through a context are the terms that they are when a program pushes them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from cqels_py import Engine
from cqels_py.dictionary import Dictionary
from cqels_py.mappings.context import MessageContext
from cqels_py.sources.live import Message, MessageColumns
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening
from cqels_py.terms.values import text_of

XSD = "http://www.w3.org/2001/XMLSchema#"
STREAM = "http://ex.org/readings"
CONTEXT = MessageContext.inline(
    {
        "@base": "http://ex.org/",
        "@vocab": "http://ex.org/",
        "exact": {"@type": XSD + "decimal"},
        "id": "@id",
        "time": {"@id": "http://www.w3.org/ns/prov#generatedAtTime"},
    }
)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-1000, 1000, places=2).map(float),
    st.integers(-9, 9).map(float),
)


@settings(max_examples=150, deadline=None)
@given(value=NUMBERS)
def test_a_number_is_the_term_of_a_pushed_value(value: float) -> None:
    """An integer, in JSON-LD, if it has no fraction."""
    dictionary = Dictionary()
    decoder = MessageDecoder(
        Opening(stream=STREAM, number=0, dictionary=dictionary, map=CONTEXT), "test", MessageFormat(None, False)
    )
    body = json.dumps({"time": 1, "id": "s", "about": value, "exact": value}).encode()
    batch = decoder.elements(MessageColumns.of([Message(body, "test", None, 0)]))
    names = [str(name).rpartition("/")[2] for name in dictionary.decode(batch.predicate)]
    found = dict(zip(names, map(str, dictionary.decode(batch.object)), strict=True))
    if value.is_integer() and abs(value) < 1e15:
        assert found["about>"] == text_of(int(value))
    elif not value.is_integer():
        assert found["about>"] == text_of(value)
        exact = found["exact>"]
        assert exact.endswith(f'"^^<{XSD}decimal>')
        assert "e" not in exact.split('"')[1].lower()
        assert float(Decimal(exact.split('"')[1])) == value


def test_what_a_context_and_a_program_give_joins(tmp_path: Path) -> None:
    (tmp_path / "readings.ndjson").write_text('{"time": 1, "id": "s", "value": 21.5}\n')
    engine = Engine()
    found = []
    text = "STREAM :readings [RANGE 5m] { ?s :value ?v } STREAM :limits [RANGE 5m] { ?a :limit ?v }"
    engine.register(f"PREFIX : <http://ex.org/> SELECT ?a {{ {text} }}").subscribe(
        lambda result: found.append(str(result.bindings["a"]))
    )
    times = '<http://ex.org/g> <http://www.w3.org/ns/prov#generatedAtTime> "0" .'
    limit = f"<http://ex.org/room> <http://ex.org/limit> {text_of(21.5)} <http://ex.org/g> ."
    (tmp_path / "limits.nq").write_text(f"{times}\n{limit}\n")
    engine.run(
        {STREAM: str(tmp_path / "readings.ndjson"), "http://ex.org/limits": str(tmp_path / "limits.nq")},
        maps={STREAM: CONTEXT},
    )
    assert found == ["http://ex.org/room"]
