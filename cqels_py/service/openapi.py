"""The description of all requests, by OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from cqels_py import __version__
from cqels_py.service.answers import GRAPHS, SOLUTIONS
from cqels_py.service.failures import PROBLEM
from cqels_py.sources.documents import FORMATS

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_JSON = "application/json"
_PROBLEM = {"description": "The reason.", "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_ALWAYS = ("400", "401", "403", "503")
_WITH_BODY = ("413", "415")


_ONCE = ("404", "406", "409", "413", "429")


def _in_query(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": _TEXT}


_DATASET = [_in_query("default-graph-uri"), _in_query("named-graph-uri")]


def openapi() -> dict[str, Any]:
    """The document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "cqels serve", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": {
            "/streams": {"get": _does("List the streams.", _list("Stream"))},
            "/streams/{name}": {
                "parameters": [_name()],
                "get": _does("A stream.", _one("Stream"), "404"),
                "put": _does(
                    "Declare a stream.",
                    _one("Stream", "200", "201"),
                    "409",
                    "429",
                    "507",
                    body={_JSON: _ref("StreamDefinition")},
                ),
                "delete": _does("Remove a stream that no query reads.", _nothing(), "404", "409"),
                "post": _does(
                    "Add elements, all or none; answered when they are durable.",
                    _one("Taken"),
                    "404",
                    "429",
                    "507",
                    body=dict.fromkeys(FORMATS, _TEXT),
                    parameters=[
                        _header("Idempotency-Key", "A repeated body with the same key counts once, for 24 hours.")
                    ],
                ),
            },
            "/streams/{name}/rejects": {
                "parameters": [_name()],
                "get": _does("The last elements that were left out.", _list("Reject"), "404"),
            },
            "/queries": {"get": _does("List the queries.", _list("Query"))},
            "/queries/{name}": {
                "parameters": [_name()],
                "get": _does("A query and its figures.", _one("Query"), "404"),
                "put": _does(
                    "Register a query, or replace one by another text.",
                    _one("Query", "200", "201"),
                    "409",
                    "429",
                    "507",
                    body={"application/sparql-query": _TEXT, _JSON: _ref("QueryDefinition")},
                ),
                "delete": _does("Remove a query, its state and its results.", _nothing(), "404"),
            },
            "/queries/{name}/plan": {
                "parameters": [_name()],
                "get": _does("The plan.", _content("text/plain", _JSON, "text/vnd.graphviz"), "404", "406", "409"),
            },
            "/queries/{name}/profile": {
                "parameters": [_name()],
                "get": _does(
                    "The work of the operators.",
                    _content(_JSON, "text/plain", "text/vnd.graphviz"),
                    "404",
                    "406",
                    "409",
                ),
            },
            "/queries/{name}/results": {
                "parameters": [_name()],
                "get": _does(
                    "Results from now on, or from a number on.",
                    _content("text/event-stream", "application/x-ndjson", "application/x-jelly-rdf"),
                    "404",
                    "406",
                    "410",
                    "429",
                    "501",
                    parameters=[
                        {"name": "from", "in": "query", "schema": _COUNT, "description": "0: the first that is kept."},
                        _header("Last-Event-ID", "The number of the last result that the reader has."),
                    ],
                ),
            },
            "/queries/{name}/answer": {
                "parameters": [_name()],
                "get": _does("The answer as it stands.", _content(*SOLUTIONS, *GRAPHS), "404", "406", "409", "413"),
            },
            "/queries/{name}/pause": {
                "parameters": [_name()],
                "post": _does("Deliver no results until it is resumed.", _one("Query"), "404", "507"),
            },
            "/queries/{name}/resume": {
                "parameters": [_name()],
                "post": _does("Deliver results again.", _one("Query"), "404", "507"),
            },
            "/sparql": {
                "get": _does(
                    "Ask once, by the SPARQL 1.1 protocol, over static data and the triples in windows.",
                    _content(*SOLUTIONS, *GRAPHS),
                    *_ONCE,
                    parameters=[{**_in_query("query"), "required": True}, *_DATASET],
                ),
                "post": _does(
                    "Ask once.",
                    _content(*SOLUTIONS, *GRAPHS),
                    *_ONCE,
                    body={
                        "application/sparql-query": _TEXT,
                        "application/x-www-form-urlencoded": _object(["query"], query=_TEXT),
                    },
                    parameters=_DATASET,
                ),
            },
            "/session": {
                "post": _does(
                    "The token as a cookie, for browsers.",
                    _nothing(),
                    body={_JSON: _object(["token"], token=_TEXT)},
                ),
                "delete": _does("Forget the cookie.", _nothing()),
            },
            "/livez": {"get": _does("Does the process answer?", _content(_JSON))},
            "/healthz": {"get": _does("Is all there? 503 says what is lacking.", _content(_JSON))},
            "/metrics": {"get": _does("Figures for Prometheus.", _content("text/plain"), "501")},
            "/openapi.json": {"get": _does("This document.", _content(_JSON))},
        },
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _does(
    summary: str,
    answers: dict[str, Any],
    *problems: str,
    body: dict[str, Any] | None = None,
    parameters: list[Any] | None = None,
) -> dict[str, Any]:
    found: dict[str, Any] = {"summary": summary, "responses": dict(answers)}
    for status in (*_ALWAYS, *problems, *(_WITH_BODY if body else ())):
        found["responses"].setdefault(status, _PROBLEM)
    if body:
        found["requestBody"] = {
            "required": True,
            "content": {kind: {"schema": schema} for kind, schema in body.items()},
        }
    if parameters:
        found["parameters"] = parameters
    return found


def _name() -> dict[str, Any]:
    pattern = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
    return {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "pattern": pattern}}


def _header(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "schema": _TEXT, "description": description}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _one(name: str, *statuses: str) -> dict[str, Any]:
    answer = {"description": name, "content": {_JSON: {"schema": _ref(name)}}}
    return dict.fromkeys(statuses or ("200",), answer)


def _list(name: str) -> dict[str, Any]:
    schema = {"type": "array", "items": _ref(name)}
    return {"200": {"description": f"All: {name}", "content": {_JSON: {"schema": schema}}}}


def _content(*kinds: str) -> dict[str, Any]:
    return {"200": {"description": "It.", "content": {kind: {} for kind in kinds}}}


def _nothing() -> dict[str, Any]:
    return {"204": {"description": "It is gone."}}


def _object(required: list[str], **members: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": members}


_TEXTS = {"type": "array", "items": _TEXT}
_FLAG = {"type": "boolean"}
_STREAM = {
    "iri": {"type": "string", "format": "iri", "examples": ["http://example.org/readings"]},
    "source": {"type": ["string", "null"]},
    "lateness": {"type": ["string", "integer"], "examples": ["10s"]},
    "clock": {"enum": ["wall", "events"]},
    "duplicates": {"enum": ["keep", "drop"]},
    "context": {"type": ["object", "array", "string", "null"]},
    "map": {"type": ["string", "null"]},
}
_STATIC = {"oneOf": [_TEXT, _object(["type", "data"], type=_TEXT, data=_TEXT)]}
_QUERY = {
    "text": _TEXT,
    "static": {"type": "array", "items": _STATIC},
    "changelog": _FLAG,
    "entailment": {"enum": ["rdfs", None]},
    "clock": {"enum": ["wall", "events", None]},
    "sinks": _TEXTS,
    "dialect": {"enum": ["CQELS-QL", "RSP-QL", "C-SPARQL", None]},
    "keep": {
        "oneOf": [
            {"type": "integer", "minimum": 1},
            _object([], results=_COUNT, bytes=_COUNT, age={"type": ["string", "integer", "number"]}),
            {"type": "null"},
        ]
    },
    "backfill": {"enum": ["log", None]},
}
_SCHEMAS = {
    "Problem": _object(
        ["title", "status", "detail", "code"],
        type=_TEXT,
        title=_TEXT,
        status=_COUNT,
        detail=_TEXT,
        code=_TEXT,
        line=_COUNT,
        column={"type": ["integer", "null"]},
    ),
    "StreamDefinition": {**_object(["iri"], **_STREAM), "additionalProperties": False},
    "Stream": _object(
        ["name", "iri"],
        name=_TEXT,
        **_STREAM,
        elements=_COUNT,
        requests=_COUNT,
        refused=_COUNT,
        rejected={"type": "object"},
        queries=_TEXTS,
    ),
    "Reject": _object(["reason", "at"], stream=_TEXT, reason=_TEXT, at={"type": "number"}),
    "Taken": _object(["elements"], elements=_COUNT, late=_COUNT, ahead=_COUNT, repeated=_FLAG, unread=_FLAG),
    "QueryDefinition": {**_object(["text"], **_QUERY), "additionalProperties": False},
    "Query": _object(
        ["name", "state", "text", "results"],
        name=_TEXT,
        state={"enum": ["running", "paused", "failed"]},
        **_QUERY,
        generation=_COUNT,
        created={"type": "number"},
        results=_COUNT,
        first=_COUNT,
        subscribers=_COUNT,
        failure=_TEXT,
        form=_TEXT,
        variables=_TEXTS,
        streams=_TEXTS,
        memory=_TEXT,
        warnings=_TEXTS,
        state_bytes=_COUNT,
    ),
}
