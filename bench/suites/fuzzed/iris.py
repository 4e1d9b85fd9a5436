"""IRIs and language tags of every kind, written in every format of graphs and read again: all come back, and the same ones."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.iris import is_iri
from cqels_py.sinks.files import open_sink
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening

FORMATS = {"nquads": "nq", "trig": "trig", "jelly": "jelly"}
"""The formats of graphs that can be read as a stream, and their endings."""
_QUERY = "CONSTRUCT { ?s ?p ?o } WHERE { STREAM <urn:s> [NOW] { ?s ?p ?o } }"
_ASCII = "abcXYZ019-._~!$&'()*+,;=:@"
_BEYOND = "\xa0é\u200e\u202e\ud7ff\uf900\ufdf0\uffef\U00010000\U0001fffd\U000e1000\U000efffd"
_PIECES = st.sampled_from([*_ASCII, *_BEYOND, "%41", "%2f", "%EF"])
_TEXTS = st.lists(_PIECES, max_size=8).map("".join)
_HOSTS = st.sampled_from(["", "e", "u:p@e", "e:80", "[::1]", "[v1.a:b]:8", "é.example", "%41"])
_PATHS = st.lists(_TEXTS, max_size=4).map(lambda parts: "".join(f"/{part}" for part in parts))
_QUERIES = st.none() | st.lists(_PIECES | st.sampled_from(["/", "?", "\ue000", "\U000f0000", "\U0010fffd"])).map(
    "".join
)
_FRAGMENTS = st.none() | st.lists(_PIECES | st.sampled_from(["/", "?"])).map("".join)
_SCHEMES = st.sampled_from(["http", "https", "coap", "urn", "tag", "a+b-c.1"])

_TAGS = ("en", "zh-hant-tw", "sl-rozaj-biske-1994", "en-a-bb-b-c1-x-y", "x-a", "en-gb-oed", "i-klingon", "zh-min-nan")


def _joined(scheme: str, host: str | None, path: str, query: str | None, fragment: str | None) -> str:
    begin = f"{scheme}:" if host is None else f"{scheme}://{host}"
    # Without a host two slashes at the beginning would make one.
    path = path.lstrip("/") if host is None else path
    return begin + path + ("" if query is None else f"?{query}") + ("" if fragment is None else f"#{fragment}")


def iris() -> st.SearchStrategy[list[str]]:
    """Lists of IRIs, with all that RFC 3987 allows."""
    return st.lists(
        st.builds(_joined, _SCHEMES, st.none() | _HOSTS, _PATHS, _QUERIES, _FRAGMENTS), min_size=1, max_size=6
    )


def check_iris(drawn: list[str], folder: Path) -> None:
    """They are IRIs, and each writer's output has them when it is read."""
    assert all(map(is_iri, drawn)), drawn
    terms = [f"<{each}>" for each in drawn]
    triples = [(term, terms[0], f'"x"^^{terms[-1]}') for term in terms]
    triples += [(terms[0], terms[0], f'"x"@{tag}') for tag in _TAGS]
    for format, ending in FORMATS.items():
        path = folder / f"iris.{ending}"
        with path.open("wb" if format == "jelly" else "w") as file, Engine() as engine:
            query = engine.register(_QUERY)
            query.write_to(
                open_sink(
                    format,
                    file,
                    dictionary=engine.dictionary,
                    form="CONSTRUCT",
                    variables=query.plan.variables,
                    template=tuple((each.subject, each.predicate, each.object) for each in query.plan.template),
                )
            )
            engine.push("urn:s", triples, time=1)
        assert _read(path) == set(triples), format


def _read(path: Path) -> set[tuple[str | None, ...]]:
    dictionary, found = Dictionary(), set[tuple[str | None, ...]]()
    for batch in open_source(str(path), Opening(stream="", number=0, dictionary=dictionary)):
        found.update(zip(*map(dictionary.decode, (batch.subject, batch.predicate, batch.object)), strict=True))
    return found
