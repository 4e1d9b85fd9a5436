"""Results as HTTP requests, against a server of the test's own."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import numpy as np
import pytest

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError, UsageError
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.urls import sink_of
from cqels_py.testing import check_sink
from tests.sinks.test_mqtt import shown
from tests.support.http_server import Request, served
from tests.support.servers import free_port, needed_module


@pytest.fixture(autouse=True)
def packages() -> None:
    needed_module("httpx", "http")


@pytest.mark.parametrize("options", ["", "#batch=7"])
def test_it_keeps_the_protocol(options: str) -> None:
    found: list[Any] = []

    def answer(request: Request) -> None:
        for line in request.body.decode().split("\n"):
            bindings = json.loads(line)["bindings"]
            found.append((bindings.get("a"), bindings.get("b")))
        request.send(204)

    with served(answer) as url:
        check_sink(lambda: sink_of(f"{url}/results?of=query{options}"), lambda: found, shown=shown)


def written(url: str, count: int, report: Any = None) -> Any:
    dictionary = Dictionary()
    sink: Any = sink_of(url).open(SinkOpening(dictionary=dictionary, form="SELECT", variables=("v",), report=report))
    values = dictionary.encode([f'"{n}"' for n in range(count)])
    sink.write(ResultBatch(("v",), np.arange(count), np.ones(count, np.int8), (values,)))
    return sink


def test_requests_are_numbered_and_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "key")
    requests: list[Request] = []

    def answer(request: Request) -> None:
        requests.append(request)
        request.send(200)

    with served(answer) as url:
        sink = written(f"{url}/a?b=c#secret=${{SECRET}}&batch=2", 3)
        assert sink.commit() == 3
        sink.close()
    assert [(request.path, request.headers["x-cqels-number"]) for request in requests] == [
        ("/a?b=c", "1"),
        ("/a?b=c", "3"),
    ]
    for request in requests:
        moment, _, signature = request.headers["x-cqels-signature"].partition(",")
        signed = moment.removeprefix("t=").encode() + b"." + request.body
        assert signature == "sha256=" + hmac.new(b"key", signed, hashlib.sha256).hexdigest()


def test_a_server_that_is_busy_is_asked_again() -> None:
    """The same result, until it is taken: in order, and none is left out."""
    numbers: list[str] = []

    def answer(request: Request) -> None:
        numbers.append(request.headers["x-cqels-number"])
        request.send(503 if len(numbers) == 1 else 429 if len(numbers) == 2 else 200)

    with served(answer) as url:
        sink = written(url, 2)
        sink.flush()
        sink.close()
    assert numbers == ["1", "1", "1", "2"]


def test_a_server_that_stays_away() -> None:
    sink = written(f"http://127.0.0.1:{free_port()}/#retry=300ms", 1)
    with pytest.raises(RunError, match=r"no success within 0\.3 s \(retry=\): .*refused"):
        sink.flush()
    sink.close()


def test_a_refused_result_is_reported() -> None:
    reports: list[RunError] = []

    def answer(request: Request) -> None:
        request.send(422 if b'"1"' in request.body else 200)

    with served(answer) as url:
        sink = written(url, 3, reports.append)
        assert sink.commit() == 3
        sink.close()
        assert ["refuses a result with status 422" in str(report) for report in reports] == [True]
        with pytest.raises(RunError, match="refuses a result"):
            written(url, 3).flush()


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(
        UsageError, match="there is no option 'sercet'; there are token, secret, batch, retry; did you mean secret"
    ):
        sink_of("https://h/#sercet=x")
    with pytest.raises(UsageError, match="requests hold the results of SELECT and ASK"):
        sink_of("https://h/").open(SinkOpening(dictionary=Dictionary(), form="CONSTRUCT", variables=()))
