"""Queries with equal results share the lines of their last results until their stores write them; nobody notices."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from cqels_py.checkpoints import durable_files
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
        self._path, self._former = path, list[Service]()
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

    def keep(self, name: str, keep: Keep | None) -> None:
        assert self.service.put_query(name, QueryDefinition(TEXT, keep=keep))[0] is False

    def kill(self) -> None:
        """Go on from what is in files, as another process does."""
        self._former.append(self.service)
        path = self._path.with_name(f"killed{len(self._former)}")
        # With its hard links.
        subprocess.run(["cp", "-a", self._path, path], check=True)
        self._path, self.service, self.heard = path, Service(path), {}

    def close(self) -> None:
        for each in (self.service, *self._former):
            each.close()

    @property
    def files_in_common(self) -> int:
        return sum(path.stat().st_nlink > 1 for path in self._path.rglob("*.results"))

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

    def check_all(self) -> None:
        for name in self.expected:
            self.check(name)

    def check(self, name: str) -> None:
        expected, store = self.expected[name], self.store(name)
        assert store.last == store.next - 1 == len(expected)
        assert self.service.registered(name).delivery.count == len(expected)
        first, least = store.first, self._least(store.keep)
        assert first <= max(1, len(expected) - least + 1)
        assert _found(store, first) == list(enumerate(expected, 1))[first - 1 :]
        assert self.heard.get(name, len(expected)) == len(expected)

    @staticmethod
    def _least(keep: Keep) -> int:
        """How many results are kept."""
        assert keep.results is not None
        return 0 if keep.bytes is not None else keep.results


def _found(store: ResultStore, start: int = 1) -> list[tuple[int, str]]:
    lines: list[dict[str, Any]] = []
    while more := store.read(start + len(lines), 1000):
        lines += map(json.loads, more)
    return [(line["number"], line["bindings"]["s"]["value"].removeprefix(EX)) for line in lines]


@pytest.mark.parametrize("seed", range(8))
def test_each_of_equal_queries_has_its_results_whatever_happens_to_the_others(seed: int, tmp_path: Path) -> None:
    drawn, most, in_common = random.Random(seed), 0, 0
    sizes = {"_WRITTEN_TOGETHER": drawn.choice([1, 3_000]), "IN_A_FILE": drawn.choice([7, 100])}
    keeps = [None, Keep(bytes=1 << 20), Keep(bytes=2_000), Keep(results=ALL), Keep(results=20)]
    with (
        patch.object(shared_lines, "_WRITTEN_TOGETHER", sizes["_WRITTEN_TOGETHER"]),
        patch.multiple(result_store, **sizes),
    ):
        served = _Served(tmp_path / "data")
        for _ in range(4):
            served.put()
        for _ in range(60):
            match drawn.randrange(12):
                case 0 if len(served.expected) < 6:
                    served.put(drawn.choice(keeps))
                case 1 if len(served.expected) > 3:
                    served.delete(drawn.choice([*served.expected]))
                case 2:
                    served.listen(drawn.choice([*served.expected]))
                case 3:
                    served.service.engine.checkpoint()
                case 4:
                    served.check(drawn.choice([*served.expected]))
                case 5 if drawn.random() < 0.3:
                    served.keep(drawn.choice([*served.expected]), drawn.choice(keeps))
                case 6 if drawn.random() < 0.3:
                    served.kill()
                case _:
                    served.push(drawn.choice([1, 3, 40]))
                    most = max(most, served.together)
                    in_common = max(in_common, served.files_in_common)
        assert most >= 2 and in_common >= 2
        served.check_all()
        served.kill()
        served.check_all()
        served.close()


def test_each_store_writes_its_own_files_where_there_are_no_hard_links(tmp_path: Path) -> None:
    served = _Served(tmp_path / "data")
    for _ in range(4):
        served.put()
    with (
        patch.object(durable_files, "link", side_effect=OSError(errno.EPERM, "Operation not permitted")),
        patch.object(shared_lines, "_WRITTEN_TOGETHER", 500),
        patch.object(result_store, "_WRITTEN_TOGETHER", 500),
    ):
        for _ in range(6):
            served.push(3)
        served.service.engine.checkpoint()
    assert served.together == 3 and not served.files_in_common
    served.check_all()
    served.kill()
    served.check_all()
    served.close()


def test_a_file_in_common_is_synced_once_for_a_snapshot(tmp_path: Path) -> None:
    served, synced = _Served(tmp_path / "data"), list[str]()
    for _ in range(5):
        served.put()
    for _ in range(3):
        served.push(2)
    served.service.engine.checkpoint()
    # The first is not among them: the others get the results that it has.
    assert served.together == served.files_in_common == 4

    def sync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    served.push(2)
    with patch.object(durable_files, "sync", sync):
        served.service.engine.checkpoint()
    assert sum(path.endswith(".results") for path in synced) == 2
    assert served.files_in_common == 4
    served.check_all()
    served.close()


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
    served.check_all()
    served.close()


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
        served.check_all()
    served.push(3)
    assert not served.store("q1").failing
    for name in served.expected:
        served.check(name)
        assert not served.store(name).failing
    served.close()
