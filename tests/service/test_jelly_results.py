"""Results of CONSTRUCT as Jelly: the frames that come are those that `application/x-jelly-rdf` takes in."""

from __future__ import annotations

import io
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.support import EX, declare, reading, register, results, send, served

JELLY = "application/x-jelly-rdf"
HOTTEST = f"""PREFIX : <{EX}> CONSTRUCT {{ ?s :hot ?t . ?s :in _:room }}
    {{ STREAM :readings [RANGE 1h] {{ ?s :t ?t }} FILTER(?t > 30) }}"""
HOT = f"PREFIX : <{EX}> SELECT ?s {{ STREAM :readings [RANGE 1h] {{ ?s :t ?t }} FILTER(?t > 30) }}"

pytest.importorskip("pyjelly", reason="pip install pyjelly")


def _whole(client: httpx.Client, start: int) -> bytes:
    """All that comes until the query is removed."""
    found = b""
    with client.stream("GET", "/queries/hot/results", params={"from": start}, headers={"Accept": JELLY}) as response:
        assert response.status_code == 200 and response.headers["content-type"] == JELLY
        for chunk in response.iter_raw():
            if not found:
                assert client.delete("/queries/hot").status_code == 204
            found += chunk
    return found


def _graphs(data: bytes) -> dict[str, set[tuple[str, ...]]]:
    """By pyjelly alone: the triples of each graph, with its blank nodes as _:, and its time as that of the default graph."""
    parse = import_module("pyjelly.integrations.generic.parse").parse_jelly_grouped
    found: dict[str, set[tuple[str, ...]]] = {}
    for sink in parse(io.BytesIO(data)):
        for quad in sink.store:
            terms: list[Any] = [getattr(term, "_iri", None) or getattr(term, "_lex", None) or "_:" for term in quad[:3]]
            name = str(getattr(quad[3], "_iri", "")) or terms[0]
            found.setdefault(name, set()).add(tuple(terms))
    return found


def test_a_frame_for_each_result(tmp_path: Path) -> None:
    with served(tmp_path / "data") as client:
        declare(client)
        assert register(client, text=HOTTEST).status_code == 201
        for number in range(3):
            assert send(client, reading(f"s{number}", 31 + number)).status_code == 200
        plain = {f"urn:cqels:result:{each['number']}": each for each in results(client, 3)}
        data = _whole(client, 2)
        assert client.put("/streams/again", json={"iri": f"{EX}again"}).status_code == 201
        sent = client.post("/streams/again", content=data, headers={"Content-Type": JELLY})
        assert sent.json()["elements"] == 2, sent.text
    found = _graphs(data)
    assert list(found) == ["urn:cqels:result:2", "urn:cqels:result:3"]
    for name, triples in found.items():
        number = int(name[-1]) - 1
        assert triples == {
            (name, "http://www.w3.org/ns/prov#generatedAtTime", plain[name]["time"]),
            (f"{EX}s{number}", f"{EX}hot", f"{31 + number}"),
            (f"{EX}s{number}", f"{EX}in", "_:"),
        }


def test_only_of_construct(tmp_path: Path) -> None:
    with served(tmp_path / "data") as client:
        declare(client)
        assert register(client, text=HOT).status_code == 201
        refused = client.get("/queries/hot/results", headers={"Accept": JELLY})
        assert refused.status_code == 406 and "application/x-ndjson" in refused.json()["detail"]
        # Those of a former text are left out.
        assert send(client, reading("a", 31)).status_code == 200
        assert len(results(client, 1)) == 1
        assert register(client, text=HOTTEST).status_code == 200
        assert send(client, reading("b", 32)).status_code == 200
        assert json.dumps(results(client, 2)).count("triples") == 1
        assert list(_graphs(_whole(client, 1))) == ["urn:cqels:result:2"]
