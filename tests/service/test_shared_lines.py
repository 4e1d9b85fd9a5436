"""Queries with equal results share the lines of their last results until their stores write them; nobody notices."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.service import result_store, shared_lines
from cqels_py.service.definitions import Keep, QueryDefinition, StreamDefinition
from cqels_py.service.result_store import ResultStore
from cqels_py.service.service import Pushed, Service
from tests.service.support import EX, READINGS, reading

# Each element has one result, whatever the queries have seen before.
TEXT = f"SELECT ?s {{ STREAM <{READINGS}> [COUNT 5] {{ ?s <{EX}t> ?t }} }}"
ALL = 100_000


class _Served:
    """A service with equal queries. `expected`: by query, the elements since its registration."""

    def __init__(self, path: Path) -> None:
        self.service = Service(path)
        self.service.put_stream("readings", StreamDefinition.of({"iri": READINGS}))
        self.expected: dict[str, list[str]] = {}
        self.heard: dict[str, int] = {}
        self._pushed = self._named = 0

    def put(self, keep: Keep | None = None) -> None:
        name = f"q{self._named}"
        self._named += 1
        self.service.put_query(name, QueryDefinition(TEXT, keep=keep))
        self.expected[name] = []

    def delete(self, name: str) -> None:
        self.service.delete_query(name)
        del self.expected[name]
        self.heard.pop(name, None)

    def listen(self, name: str) -> None:
        """Read the results of a query as they come."""
        store = self.store(name)
        self.heard.setdefault(name, store.last)

        def hear() -> None:
            if name in self.heard:
                self.heard[name] += len(store.read(self.heard[name] + 1, ALL))

        store.listen(hear)

    def push(self, count: int) -> None:
        names = [f"s{self._pushed + at}" for at in range(count)]
        self._pushed += count
        body = b"".join(reading(name, 1) for name in names)
        self.service.push([Pushed.of(self.service.stream("readings"), body, "nt", None)])
        for each in self.expected.values():
            each += names

    def store(self, name: str) -> ResultStore:
        return self.service.queries[name].store

    @property
    def together(self) -> int:
        return sum(self.service.registered(name).delivery._among is not None for name in self.expected)

    def check(self, name: str) -> None:
        expected, store = self.expected[name], self.store(name)
        assert store.last == store.next - 1 == len(expected)
        assert self.service.registered(name).delivery.count == len(expected)
        assert _found(store) == list(enumerate(expected, 1))
        assert self.heard.get(name, len(expected)) == len(expected)


def _found(store: ResultStore, start: int = 1) -> list[tuple[int, str]]:
    lines: list[dict[str, Any]] = []
    while more := store.read(start + len(lines), 1000):
        lines += map(json.loads, more)
    return [(line["number"], line["bindings"]["s"]["value"].removeprefix(EX)) for line in lines]


@pytest.mark.parametrize("seed", range(4))
def test_each_of_equal_queries_has_its_results_whatever_happens_to_the_others(seed: int, tmp_path: Path) -> None:
    drawn, most = random.Random(seed), 0
    with patch.object(shared_lines, "_WRITTEN_TOGETHER", 3_000):
        served = _Served(tmp_path / "data")
        for _ in range(4):
            served.put()
        for _ in range(60):
            match drawn.randrange(9):
                case 0 if len(served.expected) < 6:
                    served.put(drawn.choice([None, Keep(bytes=1 << 20), Keep(results=ALL)]))
                case 1 if len(served.expected) > 3:
                    served.delete(drawn.choice([*served.expected]))
                case 2:
                    served.listen(drawn.choice([*served.expected]))
                case 3:
                    served.service.engine.checkpoint()
                case 4:
                    served.check(drawn.choice([*served.expected]))
                case _:
                    served.push(drawn.choice([1, 3, 40]))
                    most = max(most, served.together)
        assert most >= 3
        for name in served.expected:
            served.check(name)
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    again = Service(tmp_path / "killed")
    for name, expected in served.expected.items():
        assert _found(again.queries[name].store) == list(enumerate(expected, 1))
    again.close()
    served.service.close()


def test_a_subscriber_beside_the_store_gets_what_follows_and_the_others_go_on_together(tmp_path: Path) -> None:
    served = _Served(tmp_path / "data")
    for _ in range(4):
        served.put()
    for _ in range(3):
        served.push(2)
    assert served.together == 3
    also: list[int] = []
    served.service.registered("q2").subscribe(lambda result: also.append(result.number))
    assert served.together == 0
    for _ in range(3):
        served.push(2)
    assert also == [7, 8, 9, 10, 11, 12]
    for name in served.expected:
        served.check(name)
    served.service.close()


def test_results_that_cannot_be_written_wait_in_each_store(tmp_path: Path) -> None:
    served = _Served(tmp_path / "data")
    for _ in range(3):
        served.put()
    for _ in range(3):
        served.push(2)

    full = patch.object(ResultStore, "_write", side_effect=StorageError("no space left"))
    with patch.object(shared_lines, "_WRITTEN_TOGETHER", 1), patch.object(result_store, "_WRITTEN_TOGETHER", 1), full:
        served.push(2)
        assert all(served.store(name).failing for name in served.expected)
        for name in served.expected:
            served.check(name)
    served.push(3)
    assert not served.store("q1").failing
    for name in served.expected:
        served.check(name)
        assert not served.store(name).failing
    served.service.close()
