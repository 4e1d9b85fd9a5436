"""One-shot SPARQL over the current data of the service's queries: static data, and the triples in their windows as named graphs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from cqels_py.engine.contents import WindowGraph, as_n_quads, static_graphs, windows_of
from cqels_py.engine.query import Query
from cqels_py.errors import CqelsError, Place, QuerySyntaxError, UsageError
from cqels_py.service.accept import chosen
from cqels_py.service.answers import GRAPHS, SOLUTIONS, in_xml
from cqels_py.service.datasets import AskedDataset, dataset_of, graph_iri
from cqels_py.service.failures import Conflict, Forbidden, NotAcceptable, NotFound, TookTooLong, TooLarge
from cqels_py.service.service import Service

_PROCESS = Path(__file__).with_name("sparql_process.py")


@dataclass(frozen=True, slots=True)
class OneShot:
    """A query by SPARQL's protocol. `base`: the address of the server, to which names of graphs are relative.

    `default`, `named`: the graphs of the protocol's parameters, in the place of FROM.
    """

    text: str
    base: str
    accept: str
    default: Sequence[str] = ()
    named: Sequence[str] = ()


def graph_of(name: str, window: int) -> str:
    """The name of a window's graph, relative to the server. Windows are counted from 1."""
    return f"/queries/{name}/windows/{window}"


def window_list(name: str, query: Query) -> list[dict[str, Any]]:
    """The windows of a query as graphs: with the reason where their triples are not known."""
    return [
        {
            "graph": graph_of(name, number),
            "stream": each.stream,
            "window": each.text,
            "patterns": list(each.patterns),
            "kept": each.unkept is None,
            **({} if each.unkept is None else {"reason": each.unkept}),
        }
        for number, each in enumerate(windows_of(query), 1)
    ]


def with_graphs(plan: str, windows: list[dict[str, Any]], kind: str) -> str:
    """A plan as text or JSON, with the graphs of its windows."""
    if kind == "application/json":
        return json.dumps({**json.loads(plan), "graphs": windows}, indent=1, ensure_ascii=False)
    lines = [f"  {each['graph']}  {each.get('reason', 'the triples of ' + each['window'])}\n" for each in windows]
    return f"{plan}\ngraphs\n{''.join(lines)}"


def answer_once(service: Service, asked: OneShot) -> tuple[bytes, str]:
    """The answer and its media type.

    Forbidden for SERVICE; NotFound and Conflict for graphs that are not there, or not known; QuerySyntaxError; TooLarge;
    TookTooLong.
    """
    limits = service.limits
    if len(asked.text) > limits.query:
        raise TooLarge(f"the text of a query has at most {limits.query} characters (--max-query)")
    dataset = dataset_of(asked.text, asked.base)
    if asked.default or asked.named:
        dataset.default, dataset.named = (
            [graph_iri(asked.base, each) for each in of] for of in (asked.default, asked.named)
        )
        dataset.iris.update(dataset.default, dataset.named)
    queries = [each.query for each in list(service.queries.values()) if each.query is not None]
    # Names of windows are not those of other graphs.
    static = {each for each in static_graphs(service.engine, queries) if not _is_window(each, asked.base)}
    graphs = _graphs(service, asked.base, dataset, static)
    named = static if _asks_for_any(dataset) else static & dataset.iris
    try:
        data = as_n_quads(service.engine, graphs, queries, sorted(named), limits.sparql_triples)
    except OverflowError as error:
        raise TooLarge(
            f"the query may read {error} triples; at most {limits.sparql_triples} are loaded: name the windows that it reads, with "
            "GRAPH <…> or FROM NAMED <…>"
        ) from None
    request = {
        "query": asked.text,
        "base": asked.base,
        "default": dataset.default if asked.default or asked.named else None,
        "named": dataset.named if asked.default or asked.named else None,
        "solutions": _accepted(asked.accept, SOLUTIONS),
        "graphs": _accepted(asked.accept, GRAPHS),
        "rows": limits.answer,
        "memory": limits.sparql_memory,
        "seconds": limits.sparql_seconds,
    }
    return _evaluated(json.dumps(request).encode() + b"\n" + b"".join(data), limits.sparql_seconds, limits.answer)


def _graphs(service: Service, base: str, dataset: AskedDataset, static: Set[str]) -> list[WindowGraph]:
    """The windows that a query may read. `static`: the other graphs that there are."""
    named = {iri for iri in dataset.iris if _is_window(iri, base)}
    for iri in sorted(named):
        _check_known(service, iri, _path(iri, base))
    for iri in sorted({*(dataset.default or ()), *(dataset.named or ())} - named - static):
        raise NotFound(
            f"there is no graph <{iri}> here, and nothing is fetched: a dataset has windows, such as </queries/NAME/windows/1>, "
            "which /queries/NAME/plan lists, and the named graphs of static data"
        )
    found = []
    for name, served in list(service.queries.items()):
        if served.query is None or served.failure is not None:
            continue
        mine = [urljoin(base, graph_of(name, number)) for number in range(1, len(served.query.plan.windows) + 1)]
        asked = [at for at, iri in enumerate(mine) if iri in named or _asks_for_any(dataset)]
        if asked:
            windows = windows_of(served.query)
            found += [WindowGraph(served.query, at, mine[at]) for at in asked if windows[at].unkept is None]
    return found


def _asks_for_any(dataset: AskedDataset) -> bool:
    """May it read all graphs, whatever their names are?"""
    return dataset.any_graph and dataset.named is None


def _is_window(iri: str, base: str) -> bool:
    return _path(iri, base).startswith("/queries/") and "/windows/" in iri


def _path(iri: str, base: str) -> str:
    return urlsplit(iri).path if iri.startswith(urljoin(base, "/")) else ""


def _check_known(service: Service, iri: str, path: str) -> None:
    """NotFound for a window that is not there, Conflict for one whose triples are not known."""
    _, _, name, _, number = [*path.split("/"), "", ""][:5]
    windows = windows_of(service.registered(name))
    if path not in {graph_of(name, each) for each in range(1, len(windows) + 1)}:
        raise NotFound(f"the query {name!r} has {len(windows)} windows, and no graph <{iri}>")
    if reason := windows[int(number) - 1].unkept:
        raise Conflict(f"the triples of <{iri}> are not known: {reason}")


def _accepted(accept: str, offered: dict[str, str]) -> str | None:
    try:
        return chosen(accept, offered)
    except NotAcceptable:
        return None


def _evaluated(request: bytes, seconds: int, rows: int) -> tuple[bytes, str]:
    """The answer of a process of its own, which knows nothing of this one's environment."""
    try:
        ended = subprocess.run(
            [sys.executable, "-I", str(_PROCESS)],
            input=request,
            capture_output=True,
            timeout=seconds,
            env={},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TookTooLong(f"the query has taken more than {seconds} seconds (--max-sparql-seconds)") from None
    head, _, body = ended.stdout.partition(b"\n")
    if ended.returncode or not head:
        # It was killed by a limit, or ran out of memory.
        raise TooLarge("the query needs more memory or time than it may have")
    told = json.loads(head)
    if "kind" in told:
        return in_xml(body, told["kind"]), told["kind"]
    raise _refused(told["error"], told["detail"], rows)


def _refused(kind: str, detail: str, rows: int) -> CqelsError:
    match kind:
        case "syntax":
            place, text = _placed(detail)
            return QuerySyntaxError(text, place)
        case "rows":
            return TooLarge(f"the answer has more than {rows} rows: add a LIMIT")
        case "memory":
            return TooLarge("the query needs more memory than it may have")
        case "accept":
            return NotAcceptable(f"solutions are {', '.join(SOLUTIONS)}, and graphs {', '.join(GRAPHS)}")
        case "connection":
            return Forbidden("one-shot queries ask no other server")
        case _:
            return UsageError(f"the query cannot be answered: {detail}")


def _placed(detail: str) -> tuple[Place | None, str]:
    """The place that a message begins with, and the rest of it."""
    found = re.fullmatch(r"error at (\d+):(\d+): (.*)", detail, re.DOTALL)
    return (None, detail) if found is None else (Place(int(found[1]), int(found[2])), found[3])
