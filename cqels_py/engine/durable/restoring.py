"""An engine after a restart: it gets the state of a snapshot, and takes in the records of the log since then."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cqels_py.batches.elements import Ids
from cqels_py.checkpoints import log
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.packed import unpack_elements
from cqels_py.dataflow.static_data import StaticData
from cqels_py.engine.backfill import begun
from cqels_py.engine.documents import Once
from cqels_py.engine.durable.files_read import FilesRead
from cqels_py.engine.durable.joining import Joining
from cqels_py.engine.durable.records import HEAD, Kind, elements_behind, head_of, read_with_terms
from cqels_py.engine.durable.registration import Registration
from cqels_py.engine.durable.saved_state import ENGINE, HEADER, QUERY, below, dataflow_of, restored_results
from cqels_py.event_time.frontiers import Frontiers
from cqels_py.runners.chaining import ConstructedStream
from cqels_py.state.named_values import NamedValues, restore

if TYPE_CHECKING:
    from cqels_py.engine.compile import CompiledQuery
    from cqels_py.engine.durable.durable_state import DurableState
    from cqels_py.engine.engine import Engine
    from cqels_py.engine.query import Query
    from cqels_py.runners import local
    from cqels_py.runners.running import RunningQuery


_OF_JOINING = (Kind.BACKFILL, Kind.JOINED, Kind.UNREGISTER, Kind.LEFT_OUT)
"""Kinds that follow while a query is joining; another thread may remove one meanwhile."""


@dataclass(slots=True)
class _Joins:
    """A query that is given elements of before. `streams`: how many there were before it; `held`: keeps its terms.

    `before`: the numbers of the last element and document that had been logged.
    """

    asked: Joining
    running: RunningQuery
    joining: local.Joining
    streams: int
    held: ExitStack
    before: tuple[int, int] = (0, 0)


class Restoring:
    """Brings a new engine to where an earlier process was, step by step as that one went."""

    def __init__(self, engine: Engine, durable: DurableState, folder: Path) -> None:
        self._engine = engine
        self._durable = durable
        self._folder = folder
        self._joins: _Joins | None = None

    def restore(self, state: Mapping[str, NamedValues]) -> None:
        """Give the engine the state of a snapshot."""
        engine, durable = self._engine, self._durable
        header = json.loads(str(state[HEADER]["json"]))
        engine._restore(below(ENGINE, state))
        durable.scopes = engine._elements, engine.dictionary.documents
        engine._registry.know_streams(header["streams"])
        durable.files = FilesRead(**header["files"])
        for once in header.get("once", ()):
            engine._once.add(Once(**once))
        for stream, (lateness, clock) in header.get("declared", {}).items():
            engine._declare(stream, lateness, clock)
        seen: set[int] = set()
        for place, given in enumerate(header["queries"]):
            own = below(f"{QUERY}{place}/", state)
            if header["scans"][place] not in seen:
                self._close_scans(header["steps_before"][place])
            seen.add(header["scans"][place])
            data = StaticData([cast(Ids, own["static"]["quads"])], cast(Ids, own["static"]["names"]).tolist())
            query = self._register(Registration.from_plain(given), data)
            dataflow_of(query).restore(below("dataflow/", own))
            if isinstance(feed := engine._queries[query].feed, ConstructedStream):
                restore(feed.construction, own["construction"])
            # Checkpoints of earlier versions have no ids.
            durable.ordinals[query] = header.get("ordinals", range(1, place + 2))[place]
            query.begin_after(header["counts"][place], restored_results(own["untaken"], query))
        for place, stream in header["connections"]:
            engine._connect(engine.queries[place], stream)
        durable.id, durable.registered = header.get("id", durable.id), header.get("registered", durable.registered)
        engine._runner.end_restore()
        self._close_scans(header["steps"])
        engine.dictionary.number_documents_after(durable.scopes[1])

    def _close_scans(self, steps: int) -> None:
        """There had been so many steps: if some of them came after the last query, later queries are apart from it."""
        if steps != self._durable.steps:
            self._engine._runner.pool.close()
        self._durable.steps = steps

    def replay(self, record: log.Record) -> None:
        """Take in the content of a record. StorageError for one of an unknown kind."""
        engine, durable = self._engine, self._durable
        if record.kind not in _OF_JOINING:
            self.end()
        before = durable.scopes
        *scopes, durable.now = HEAD.unpack_from(record.content)
        durable.scopes = scopes[0], scopes[1]
        engine.dictionary.number_documents_after(scopes[1])
        if durable.now:
            engine._clocks.wall.hold(durable.now)
        engine._elements = scopes[0]
        self._take(record.kind, memoryview(record.content)[HEAD.size :])
        if record.kind == Kind.JOIN and self._joins is not None:
            self._joins.before = before
        engine._rejects.write_dropped()
        engine._deliver(engine._pending.take())

    def _take(self, kind: int, content: memoryview) -> None:
        engine, durable = self._engine, self._durable
        match kind:
            case Kind.LEFT_OUT:
                record = json.loads(bytes(content))
                engine._rejects.add(record)
                durable.count_left_out(record)
            case Kind.RUN:
                durable.files.begin(json.loads(bytes(content)))
            case Kind.PLACES:
                durable.files.places |= json.loads(bytes(content))
            case Kind.RAN:
                durable.files.end()
            case Kind.ELEMENTS | Kind.READ:
                batch = unpack_elements(content, engine.dictionary)
                if kind == Kind.READ:
                    durable.count_read(batch, engine._registry.all_streams)
                self._step(lambda: engine._runner.push(batch))
            case Kind.ONCE:
                engine._once.add(Once(**head_of(content)))
                once = unpack_elements(elements_behind(content), engine.dictionary)
                self._step(lambda: engine._runner.push(once))
            case Kind.DECLARE:
                engine._declare(*json.loads(bytes(content)))
            case Kind.WAITING:
                self._step(engine._runner.process_waiting)
            case Kind.ADVANCE:
                time = json.loads(bytes(content))
                self._step(lambda: engine._runner.advance(time))
            case Kind.FOLLOW:
                found = json.loads(bytes(content))
                # Once it was the time alone.
                time, behind = found if isinstance(found, list) else (found, ())
                self._step(lambda: engine._runner.follow(time, behind))
            case Kind.HOLD:
                frontiers = Frontiers.from_plain(json.loads(bytes(content)))
                self._step(lambda: engine._runner.hold(frontiers))
            case Kind.FINISH:
                given = json.loads(bytes(content))
                self._step(lambda: engine._runner.finish(given["until"], ended=given["ended"]))
                if given["ended"]:
                    engine._end()
            case Kind.REGISTER:
                given, data = read_with_terms(content, engine.dictionary)
                self._register(Registration.from_plain(given), data)
                engine.dictionary.number_documents_after(durable.scopes[1])
            case Kind.JOIN:
                given, data = read_with_terms(content, engine.dictionary)
                self._join(Registration.from_plain(given), data)
            case Kind.BACKFILL:
                joins = self._joins
                assert joins is not None
                batch = unpack_elements(content, engine.dictionary)
                self._step(lambda: engine._runner.backfill(joins.joining, batch))
            case Kind.JOINED:
                self._add_joined()
            case Kind.UNREGISTER:
                engine._forget(self._by_key(bytes(content).decode()))
            case Kind.CONNECT:
                key, stream = json.loads(bytes(content))
                engine._connect(self._by_key(key), stream)
            case Kind.STATIC:
                given, data = read_with_terms(content, engine.dictionary)
                engine._replace_static(self._by_key(given["key"]), data)
            case _:
                raise StorageError(f"{self._folder} has a record of kind {kind}, which this version does not know")

    def end(self) -> None:
        """No more elements of before follow for a query that was not registered: the earlier process ended, or it failed."""
        if self._joins is not None:
            self._joins.held.close()
            self._engine._give_up(self._joins.asked.query, self._joins.streams)
            # Whoever registers it again has the same blank nodes as if nothing had been.
            self._durable.scopes = self._joins.before
            self._engine.dictionary.number_documents_after(self._joins.before[1])
            self._joins = None

    def _join(self, registration: Registration, data: StaticData) -> None:
        engine, streams = self._engine, len(self._engine._registry.all_streams)
        engine._runner.pool.close()
        query, running = engine._built(self._compiled(registration), data, registration)
        asked, held = Joining(query, registration, data), ExitStack()
        held.enter_context(engine.dictionary.holding(query.live_ids))
        engine._inputs.joining(asked)
        self._joins = _Joins(asked, running, begun(engine, running), streams, held)

    def _add_joined(self) -> None:
        joins, self._joins = self._joins, None
        assert joins is not None
        with self._engine._steps:
            self._engine._runner.end_backfill(joins.joining)
        self._engine._inputs.registered(joins.asked.query, joins.asked.registration, joins.asked.static)
        self._engine._add(joins.asked.query, joins.running)
        joins.held.close()

    def _step(self, step: Callable[[], None]) -> None:
        with self._engine._steps:
            step()
        self._durable.steps += 1

    def _register(self, registration: Registration, data: StaticData) -> Query:
        return self._engine._register_with(self._compiled(registration), data, registration)

    def _compiled(self, registration: Registration) -> CompiledQuery:
        compiled = registration.compiled()
        if registration.documents is not None:
            self._engine.dictionary.number_documents_after(registration.documents)
        self._engine._prepare(compiled, registration, has_static=False)
        return compiled

    def _by_key(self, key: str) -> Query:
        query = self._durable.by_key(key)
        assert query is not None
        return query
