"""Metrics for Prometheus: the engine's counts, as its client library writes them."""

from __future__ import annotations

import sys
import urllib.request

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cqels_py import Engine, EngineCollector, MissingExtra, UsageError
from cqels_py.engine.metrics import metrics_served
from tests.cli.conftest import QUERY, STREAM

TRIPLE = ("<http://ex.org/a>", "<http://ex.org/v>", '"1"')
NAMED = f"REGISTER QUERY hot AS {QUERY}"


def values(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """By name and the labels' values."""
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def collected(engine: Engine, now: float = 0.0) -> dict[tuple[str, tuple[str, ...]], float]:
    registry = prometheus_client.CollectorRegistry()
    registry.register(EngineCollector(engine, clock=lambda: now))
    return values(prometheus_client.generate_latest(registry).decode())


def test_counts_are_those_of_the_statistics() -> None:
    engine = Engine(report=lambda _: None)
    named, other = engine.register(NAMED), engine.register(QUERY)
    for time in (5, 20, 10):
        engine.push(STREAM, [TRIPLE], time=time * 1_000_000)
    found = collected(engine, now=21.5)
    assert found["cqels_elements_total", ()] == 3
    assert found["cqels_results_total", ()] == 4
    assert found["cqels_rejected_total", ("late", STREAM)] == 1
    assert found["cqels_event_time_seconds", ()] == 20
    assert found["cqels_event_time_lag_seconds", ()] == 1.5
    assert found["cqels_query_state_bytes", ("hot",)] == named.nbytes > 0
    assert found["cqels_query_waiting_results", ("2",)] == 2
    assert list(other.results())
    assert collected(engine)["cqels_query_waiting_results", ("2",)] == 0
    engine.unregister(named)
    assert ("cqels_query_state_bytes", ("hot",)) not in collected(engine)


def test_before_the_first_element_there_is_no_event_time() -> None:
    engine = Engine()
    engine.register(QUERY)
    found = collected(engine)
    assert found["cqels_elements_total", ()] == 0
    assert ("cqels_event_time_seconds", ()) not in found


def test_they_are_served_while_the_context_lasts() -> None:
    engine = Engine()
    engine.register(QUERY)
    with metrics_served(engine, 0) as address:
        engine.push(STREAM, [TRIPLE], time=0)
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert values(answer.read().decode())["cqels_elements_total", ()] == 1
        port = int(address.rsplit(":", 1)[1].partition("/")[0])
        with pytest.raises(UsageError, match=f"port {port}: Address already in use"), metrics_served(engine, port):
            pass
    with pytest.raises(OSError):
        urllib.request.urlopen(address, timeout=10)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtra, match=r"cqels_py\[metrics\]"):
        EngineCollector(Engine())
