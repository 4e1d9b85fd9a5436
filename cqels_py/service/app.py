"""The requests of the service: each is checked here, and done by `Service` in a thread, as the engine's calls block."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from cqels_py.engine.query import Query
from cqels_py.errors import CqelsError, UsageError
from cqels_py.formats.jelly import require_pyjelly
from cqels_py.formats.json_documents import json_value
from cqels_py.service.accept import chosen
from cqels_py.service.answers import answer_in
from cqels_py.service.bodies import body_of, media_type, text_of
from cqels_py.service.definitions import QueryDefinition, StreamDefinition, backfill_of
from cqels_py.service.elements import Elements, ShortPath
from cqels_py.service.failures import (
    Failed,
    MethodNotAllowed,
    NotFound,
    ServiceError,
    TooMany,
    Unauthorized,
    UnknownMediaType,
)
from cqels_py.service.following import Hub
from cqels_py.service.guard import COOKIE, SESSION, is_token
from cqels_py.service.metrics import metrics_text
from cqels_py.service.one_shot import OneShot, answer_once, window_list, with_graphs
from cqels_py.service.openapi import openapi
from cqels_py.service.pushing import Pushing
from cqels_py.service.responses import json_response, problem_response
from cqels_py.service.result_forms import EVENTS, JELLY, LINES
from cqels_py.service.sending import ResultResponse, first_number, send_to_socket
from cqels_py.service.service import ServedQuery, Service
from cqels_py.service.sign_in import SIGN_IN

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
_SECONDS_AFTER_A_WRONG_TOKEN = 0.5
_OTHERS, _PROMPT = 8, 4
_SESSION_BYTES = 1024
"""Of a body with a token. Everybody may send it, and it is read by the thread that answers."""
PLANS = {"text/plain": "text", "application/json": "json", "text/vnd.graphviz": "dot"}
"""Forms of a plan by media type."""
PROFILES = ("application/json", "text/plain", "text/vnd.graphviz")
_LOG = logging.getLogger("cqels_py")


class Requests:
    """Answers requests."""

    def __init__(self, service: Service, token: str | None = None) -> None:
        self.service = service
        self._token = token
        self.hub = Hub(service.limits)
        # Elements wait for the disk, queries for compilers: neither waits for the other.
        self._pushing = Pushing(service.push)
        self.elements = Elements(service, self._pushing)
        self._others = ThreadPoolExecutor(_OTHERS, "cqels request")
        # What waits for no step, however long it takes, and for no compiler.
        self._prompt = ThreadPoolExecutor(_PROMPT, "cqels answer")
        self._one_shots = ThreadPoolExecutor(service.limits.sparql_queries, "cqels sparql")
        self._asked = 0

    def close(self) -> None:
        """Wait for the requests that have begun."""
        self._pushing.close()
        self._others.shutdown()
        self._prompt.shutdown()
        self._one_shots.shutdown()

    async def _done(self, call: Callable[Given, Answer], *arguments: Given.args, **named: Given.kwargs) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._others, partial(call, *arguments, **named))

    async def _at_once(self, call: Callable[Given, Answer], *arguments: Given.args, **named: Given.kwargs) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._prompt, partial(call, *arguments, **named))

    # --- streams ------------------------------------------------------------------------------------------------------

    async def list_streams(self, request: Request) -> ASGIApp:
        service = self.service
        return json_response(
            await self._at_once(lambda: [service.stream_figures(name) for name in list(service.streams)])
        )

    async def get_stream(self, request: Request) -> ASGIApp:
        return json_response(await self._at_once(self.service.stream_figures, request.path_params["name"]))

    async def put_stream(self, request: Request) -> ASGIApp:
        name, body = request.path_params["name"], await body_of(request.headers, request.receive, self.service.limits)
        _check_json(request)
        new = await self._done(lambda: self.service.put_stream(name, StreamDefinition.of(json_value(body))))
        return json_response(await self._at_once(self.service.stream_figures, name), 201 if new else 200)

    async def delete_stream(self, request: Request) -> ASGIApp:
        await self._done(self.service.delete_stream, request.path_params["name"])
        return Response(status_code=204)

    async def post_elements(self, request: Request) -> ASGIApp:
        return self.elements

    async def get_rejects(self, request: Request) -> ASGIApp:
        return json_response(await self._at_once(self.service.stream_rejects, request.path_params["name"]))

    # --- queries ------------------------------------------------------------------------------------------------------

    async def list_queries(self, request: Request) -> ASGIApp:
        service = self.service
        return json_response(
            await self._at_once(lambda: [service.query_figures(each) for each in list(service.queries.values())])
        )

    async def get_query(self, request: Request) -> ASGIApp:
        running = self.service.query(request.path_params["name"])
        return json_response(await self._at_once(self.service.query_figures, running))

    async def put_query(self, request: Request) -> ASGIApp:
        name, kind = request.path_params["name"], media_type(request.headers)
        if kind not in ("application/sparql-query", "application/json"):
            raise UnknownMediaType(f"a query is application/sparql-query or application/json, not {kind!r}")
        body = await body_of(request.headers, request.receive, self.service.limits)
        new, running = await self._done(self._put_query, name, kind, body, request.query_params)
        return json_response(await self._at_once(self.service.query_figures, running), 201 if new else 200)

    def _put_query(self, name: str, kind: str, body: bytes, parameters: Mapping[str, str]) -> tuple[bool, ServedQuery]:
        given = {"text": text_of(body)} if kind == "application/sparql-query" else json_value(body)
        if parameters.get("changelog") in ("true", "1") and isinstance(given, dict):
            given = {**given, "changelog": True}
        if "backfill" in parameters and isinstance(given, dict):
            given = {**given, "backfill": parameters["backfill"]}
        return self.service.put_query(name, QueryDefinition.of(given), backfill_of(given))

    async def delete_query(self, request: Request) -> ASGIApp:
        name = request.path_params["name"]
        await self._at_once(self.service.delete_query, name)
        return Response(status_code=204)

    async def get_plan(self, request: Request) -> ASGIApp:
        name, kind = request.path_params["name"], chosen(_accept(request), PLANS)

        def plan_of(query: Query) -> str:
            text = query.explain(PLANS[kind])
            return text if kind == "text/vnd.graphviz" else with_graphs(text, window_list(name, query), kind)

        text = await self._done(self.service.of_registered, name, plan_of)
        return Response(text, media_type=kind, headers={"Vary": "Accept"})

    async def get_profile(self, request: Request) -> ASGIApp:
        name, kind = request.path_params["name"], chosen(_accept(request), PROFILES)
        profile = await self._done(self.service.of_registered, name, Query.profile)
        if kind == "application/json":
            return json_response(profile.as_dict())
        return Response(str(profile) if kind == "text/plain" else profile.dot(), media_type=kind)

    async def get_results(self, request: Request) -> ASGIApp:
        query = self.service.query(request.path_params["name"])
        makes_graphs = query.query is not None and query.query.form == "CONSTRUCT"
        offered = (EVENTS, LINES, JELLY) if makes_graphs else (EVENTS, LINES)
        kind = chosen(_accept(request), offered)
        if kind == JELLY:
            require_pyjelly("results as Jelly")
        number = first_number(query, _whole(request.query_params.get("from")), request.headers.get("last-event-id"))
        if self.hub.count >= self.service.limits.subscribers:
            raise TooMany(f"there are {self.hub.count} subscribers already (--max-subscribers)")
        return ResultResponse(self.hub, self.service.limits, query, number, kind)

    async def get_answer(self, request: Request) -> ASGIApp:
        name, accept = request.path_params["name"], _accept(request)
        body, kind, number = await self._done(self.service.answer, name, partial(answer_in, accept=accept))
        headers = {"Cache-Control": "no-store", "Vary": "Accept", "Cqels-Result": str(number)}
        return Response(body, media_type=kind, headers=headers)

    async def pause(self, request: Request) -> ASGIApp:
        return await self._paused(request, paused=True)

    async def resume(self, request: Request) -> ASGIApp:
        return await self._paused(request, paused=False)

    async def _paused(self, request: Request, *, paused: bool) -> ASGIApp:
        name = request.path_params["name"]
        await self._at_once(self.service.pause, name, paused=paused)
        return json_response(await self._at_once(self.service.query_figures, self.service.query(name)))

    async def results_socket(self, socket: WebSocket) -> None:
        """The results over a WebSocket."""
        try:
            query = self.service.query(socket.path_params["name"])
            number = first_number(query, _whole(socket.query_params.get("from")), None)
            await send_to_socket(socket, self.hub, self.service.limits, query, number)
        except CqelsError as error:
            await socket.send_denial_response(problem_response(error))

    # --- one-shot queries ---------------------------------------------------------------------------------------------

    async def get_sparql(self, request: Request) -> ASGIApp:
        return await self._answer_once(request, request.query_params)

    async def post_sparql(self, request: Request) -> ASGIApp:
        kind = media_type(request.headers)
        if kind not in ("application/sparql-query", "application/x-www-form-urlencoded"):
            raise UnknownMediaType(
                f"a query is application/sparql-query or application/x-www-form-urlencoded, not {kind!r}; nothing is updated here"
            )
        text = text_of(await body_of(request.headers, request.receive, self.service.limits))
        if kind == "application/sparql-query":
            return await self._answer_once(request, request.query_params, text)
        return await self._answer_once(request, QueryParams(text))

    async def _answer_once(self, request: Request, parameters: QueryParams, text: str | None = None) -> ASGIApp:
        """By the protocol's parameters. `text`: the query where it is the body."""
        if "update" in parameters:
            raise UsageError("nothing is updated here: the triples are those of streams and of static data")
        text = parameters.get("query") if text is None else text
        if text is None:
            raise UsageError("the parameter query is the query: /sparql?query=SELECT…")
        if self._asked >= self.service.limits.sparql_queries:
            raise TooMany(f"{self._asked} one-shot queries run already: send it a little later")
        base = str(request.base_url)
        default, named = parameters.getlist("default-graph-uri"), parameters.getlist("named-graph-uri")
        asked = OneShot(text, base, _accept(request), default, named)
        self._asked += 1
        try:
            answering = partial(answer_once, self.service, asked)
            body, kind = await asyncio.get_running_loop().run_in_executor(self._one_shots, answering)
        finally:
            self._asked -= 1
        return Response(body, media_type=kind, headers={"Cache-Control": "no-store", "Vary": "Accept"})

    # --- the server ---------------------------------------------------------------------------------------------------

    async def livez(self, request: Request) -> ASGIApp:
        return json_response({"status": "alive"})

    async def healthz(self, request: Request) -> ASGIApp:
        lacking = self.service.lacking()
        return json_response(
            {"status": "ok" if not lacking else "failing", "lacking": lacking}, 503 if lacking else 200
        )

    async def metrics(self, request: Request) -> ASGIApp:
        text = await self._at_once(metrics_text, self.service, self.hub)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def begin_session(self, request: Request) -> ASGIApp:
        """A browser gets the token as a cookie that no script can read."""
        limits = replace(self.service.limits, body=_SESSION_BYTES, decompressed=_SESSION_BYTES)
        given = json_value(await body_of(request.headers, request.receive, limits))
        token = given.get("token") if isinstance(given, dict) else None
        if not isinstance(token, str) or not is_token(token, self._token):
            await asyncio.sleep(_SECONDS_AFTER_A_WRONG_TOKEN)
            raise Unauthorized("this is not the token of the server")
        answer = Response(status_code=204)
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure)
        return answer

    async def sign_in(self, request: Request) -> ASGIApp:
        return Response(SIGN_IN, media_type="text/html")

    async def end_session(self, request: Request) -> ASGIApp:
        answer = Response(status_code=204)
        answer.delete_cookie(COOKIE)
        return answer

    async def openapi(self, request: Request) -> ASGIApp:
        return json_response(openapi())


def application(requests: Requests) -> ASGIApp:
    """All requests."""
    return ShortPath(requests.elements, _routed(requests))


def _routed(requests: Requests) -> Starlette:
    r = requests
    routes = [
        Route("/streams", _answered(r.list_streams), methods=["GET"]),
        *_routes("/streams/{name}", GET=r.get_stream, PUT=r.put_stream, DELETE=r.delete_stream, POST=r.post_elements),
        Route("/streams/{name}/rejects", _answered(r.get_rejects), methods=["GET"]),
        Route("/queries", _answered(r.list_queries), methods=["GET"]),
        *_routes("/queries/{name}", GET=r.get_query, PUT=r.put_query, DELETE=r.delete_query),
        Route("/queries/{name}/plan", _answered(r.get_plan), methods=["GET"]),
        Route("/queries/{name}/profile", _answered(r.get_profile), methods=["GET"]),
        Route("/queries/{name}/results", _answered(r.get_results), methods=["GET"]),
        WebSocketRoute("/queries/{name}/results", r.results_socket),
        Route("/queries/{name}/answer", _answered(r.get_answer), methods=["GET"]),
        Route("/queries/{name}/pause", _answered(r.pause), methods=["POST"]),
        Route("/queries/{name}/resume", _answered(r.resume), methods=["POST"]),
        *_routes("/sparql", GET=r.get_sparql, POST=r.post_sparql),
        *_routes(SESSION, GET=r.sign_in, POST=r.begin_session, DELETE=r.end_session),
        Route("/livez", _answered(r.livez), methods=["GET"]),
        Route("/healthz", _answered(r.healthz), methods=["GET"]),
        Route("/metrics", _answered(r.metrics), methods=["GET"]),
        Route("/openapi.json", _answered(r.openapi), methods=["GET"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _http_problem})


def _routes(path: str, **methods: Callable[[Request], Awaitable[ASGIApp]]) -> list[Route]:
    """One route for several methods, so that others are answered with 405 and the header Allow."""
    handlers = {method: _answered(handler) for method, handler in methods.items()}

    async def by_method(request: Request) -> Any:
        return await handlers["GET" if request.method == "HEAD" else request.method](request)

    return [Route(path, by_method, methods=list(methods))]


def _answered(handler: Callable[[Request], Awaitable[ASGIApp]]) -> Callable[[Request], Awaitable[Any]]:
    """The handler, whose errors are responses."""

    @wraps(handler)
    async def answer(request: Request) -> Any:
        try:
            return await handler(request)
        except CqelsError as error:
            return problem_response(error)
        except Exception:
            # A mistake of this program, whose text may say too much.
            _LOG.exception("%s %s failed", request.method, request.url.path)
            return problem_response(Failed("the request failed by a mistake of the server, which its log shows"))

    return answer


async def _http_problem(request: Request, error: Exception) -> Response:
    """Paths and methods that are not there."""
    assert isinstance(error, HTTPException)
    told: ServiceError
    if error.status_code == 404:
        dashboard = ", and the dashboard needs pip install 'cqels_py[dashboard]'" if request.url.path == "/" else ""
        told = NotFound(f"there is nothing at {request.url.path}; /openapi.json lists all that is there{dashboard}")
    else:
        told = MethodNotAllowed(f"{request.url.path} does not take {request.method}", headers=dict(error.headers or {}))
    return problem_response(told)


def _accept(request: Request) -> str:
    """The header Accept, which may come in several lines."""
    return ", ".join(request.headers.getlist("accept"))


def _check_json(request: Request) -> None:
    if media_type(request.headers) != "application/json":
        raise UnknownMediaType("the body is application/json")


def _whole(text: str | None) -> str | None:
    if text is not None and not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise UsageError(f"from= is the number of a result, 0 or more, not {text!r}")
    return text
