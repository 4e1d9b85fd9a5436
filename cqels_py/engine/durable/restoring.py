"""An engine after a restart: it gets the state of a snapshot, and takes in the records of the log since then."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cqels_py.batches.elements import Ids
from cqels_py.checkpoints import log
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.packed import unpack_elements
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.static_data import StaticData
from cqels_py.engine.backfill import Beside
from cqels_py.engine.documents import Once
from cqels_py.engine.durable.durable_state import DurableState, Failed
from cqels_py.engine.durable.files_read import FilesRead
from cqels_py.engine.durable.inputs import Fed
from cqels_py.engine.durable.left_out import LeftOut, check_unread
from cqels_py.engine.durable.records import HEAD, Kind, elements_behind, head_of, read_with_terms
from cqels_py.engine.durable.registration import Registration
from cqels_py.engine.durable.saved_state import (
    ENGINE,
    HEADER,
    QUERY,
    below,
    dataflow_of,
    restore_engine,
    restored_results,
)
from cqels_py.engine.registering import prepare_kernels, register_with
from cqels_py.engine.static_updates import replace_static
from cqels_py.errors import UsageError
from cqels_py.event_time.frontiers import Frontiers
from cqels_py.runners.chaining import ConstructedStream
from cqels_py.state.named_values import NamedValues, restore

if TYPE_CHECKING:
    from cqels_py.engine.compile import CompiledQuery
    from cqels_py.engine.engine import Engine
    from cqels_py.engine.query import Query
    from cqels_py.engine.rejects import Record


_OF_JOINING = (Kind.BACKFILL, Kind.JOINED, Kind.GIVEN_UP, Kind.UNREGISTER, Kind.FAILED, Kind.LEFT_OUT)
"""Kinds that follow while a query is joining; in logs of earlier versions another one says that it was given up."""


@dataclass(slots=True)
class _Joins:
    """A query that is given elements of before. `before`: the numbers of the last element and document that had been logged.

    `exclusive`: no other inputs come meanwhile, as in logs of earlier versions. `alone`: none has come.
    """

    beside: Beside
    before: tuple[int, int]
    exclusive: bool
    alone: bool = True


class Restoring:
    """Brings a new engine to where an earlier process was, step by step as that one went."""

    def __init__(self, engine: Engine, durable: DurableState, folder: Path, left_out: LeftOut) -> None:
        self._engine = engine
        self._durable = durable
        self._folder = folder
        self._joins: _Joins | None = None
        self._left_out = left_out
        left_out.begin(engine)
        self._streams_left_out: set[str] = set()
        self.removed: dict[str, None] = {}
        """The keys of queries that are left out, where the log does not say yet that they have been removed."""
        self.failed_again: dict[str, None] = {}
        """The keys of queries that have failed here, where the log does not say yet that they have."""

    def restore(self, state: Mapping[str, NamedValues]) -> None:
        """Give the engine the state of a snapshot."""
        engine, durable = self._engine, self._durable
        header = json.loads(str(state[HEADER]["json"]))
        restore_engine(engine, below(ENGINE, state))
        durable.scopes = engine._elements, engine.dictionary.documents
        engine._registry.know_streams(header["streams"])
        durable.files = FilesRead(**header["files"])
        for once in header.get("once", ()):
            engine._once.add(Once(**once))
        for stream, url, position in header.get("fed", ()):
            engine._fed[stream, url] = position
        for stream, options in header.get("declared", {}).items():
            engine._declare(stream, *options)
        durable.failed = {key: Failed(*each) for key, each in header.get("failed", {}).items()}
        restored: dict[int, SharedScans] = {}
        feeding = {place for place, _ in header["connections"]}
        for place, given in enumerate(header["queries"]):
            own = below(f"{QUERY}{place}/", state)
            number, steps = header["scans"][place], header["steps_before"][place]
            self._open_scans([restored[number]] if number in restored else (), steps)
            data = StaticData([cast(Ids, own["static"]["quads"])], cast(Ids, own["static"]["names"]).tolist())
            # One that feeds others has steps of its own.
            engine._runner.pool.shares = place not in feeding
            query = self._register(Registration.from_plain(given), data)
            engine._runner.pool.shares = True
            dataflow_of(query).restore(below("dataflow/", own))
            restored.setdefault(number, dataflow_of(query).shared_scans)
            if isinstance(feed := engine._queries[query].feed, ConstructedStream):
                restore(feed.construction, own["construction"])
            # Checkpoints of earlier versions have no ids.
            durable.ordinals[query] = header.get("ordinals", range(1, place + 2))[place]
            query.begin_after(header["counts"][place], restored_results(own["untaken"], query))
        for place, stream in header["connections"]:
            engine._connect(engine.queries[place], stream)
        durable.id, durable.registered = header.get("id", durable.id), header.get("registered", durable.registered)
        engine._runner.end_restore()
        known = zip(header["scans"], header["steps_before"], strict=True)
        self._open_scans([restored[number] for number, steps in known if steps == header["steps"]], header["steps"])
        engine.dictionary.number_documents_after(durable.scopes[1])
        self._leave_out()

    def _open_scans(self, scans: Iterable[SharedScans], steps: int) -> None:
        """There had been so many steps: the next query may share these scans, and no others."""
        pool = self._engine._runner.pool
        pool.close()
        for each in scans:
            pool.open_again(each)
        self._durable.steps = steps

    def replay(self, record: log.Record) -> None:
        """Take in the content of a record. StorageError for one of an unknown kind."""
        engine, durable = self._engine, self._durable
        if record.kind == Kind.REFUSED:
            # By a thread beside the others, so it says nothing about them.
            self._refuse(*json.loads(record.content[HEAD.size :]))
            return
        if record.kind not in _OF_JOINING and self._joins is not None:
            self._joins.alone = False
            if self._joins.exclusive:
                self.end()
        before = durable.scopes
        *scopes, durable.now = HEAD.unpack_from(record.content)
        durable.scopes = scopes[0], scopes[1]
        engine.dictionary.number_documents_after(scopes[1])
        if durable.now:
            engine._clocks.wall.hold(durable.now)
        engine._elements = scopes[0]
        self._take(record.kind, memoryview(record.content)[HEAD.size :])
        if record.kind in (Kind.JOIN, Kind.JOINING) and self._joins is not None:
            self._joins.before = before
        engine._rejects.write_dropped()
        self._stop_failed()
        self._leave_out()
        engine._deliver(engine._pending.take())

    def _stop_failed(self) -> None:
        """Queries fail where they did: others go on, and who registers them is told why."""
        before, failures = set(self._durable.failed), list[BaseException]()
        stopped = {key: query for query, key in self._keys().items()} if self._engine._pending.failed else {}
        self._engine._forget_failed(failures)
        self.removed |= dict.fromkeys(
            key
            for key, query in stopped.items()
            if query not in self._engine.queries and key not in self._durable.failed
        )
        self.failed_again |= dict.fromkeys(key for key in self._durable.failed if key not in before)

    def _keys(self) -> dict[Query, str]:
        return {query: self._durable.registrations[query].key for query in self._engine.queries}

    def _leave_out(self) -> None:
        """Forget the queries that do not come back, before the next step. UsageError where others read the stream of one."""
        left = [(query, key) for query, key in self._keys().items() if self._left_out.has(query)]
        for query, _ in left:
            check_unread(self._engine, query, self._left_out)
        for query, key in left:
            if query.plan.name is not None:
                self._streams_left_out.add(query.plan.name)
            self.removed[key] = None
            self._engine._forget(query)

    def _remove(self, key: str, failed: Failed | None) -> None:
        """The query was removed, or has `failed`."""
        self.failed_again.pop(key, None)
        self.removed.pop(key, None)
        if failed is not None:
            self._durable.failed[key] = failed
        query = self._durable.by_key(key)
        if query is not None:
            self._engine._forget(query)

    def _pass(self, found: Mapping[str, Any]) -> None:
        """The source of a feed has got to a position."""
        # Once a record had nothing but these three.
        fed = Fed(*found["fed"]) if "fed" in found else Fed(**found)
        self._engine._fed[fed.stream, fed.url] = fed.position
        for record in fed.left_out:
            self._engine._rejects.add(record)

    def _refuse(self, key: str | None, record: Record) -> None:
        self._durable.add_refused(key, record)
        self._engine._rejects.refused(record)
        self._engine._counters.subscriber_errors += 1

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
            case Kind.PASSED:
                found = json.loads(bytes(content))
                durable.files.places |= found["places"]
                for record in found["left_out"]:
                    engine._rejects.add(record)
            case Kind.STOPPED:
                durable.files.marks |= json.loads(bytes(content))
            case Kind.RAN:
                durable.files.end()
            case Kind.UNLOGGED:
                durable.files.unlogged = True
            case Kind.ELEMENTS | Kind.READ:
                batch = unpack_elements(content, engine.dictionary)
                if kind == Kind.READ:
                    durable.count_read(batch, engine._registry.all_streams)
                self._step(lambda: engine._runner.push(batch))
            case Kind.ONCE:
                head = head_of(content)
                # Once a record had one key.
                for key in head.get("keys", [head]):
                    engine._once.add(Once(**key))
                once = unpack_elements(elements_behind(content), engine.dictionary)
                self._step(lambda: engine._runner.push(once))
            case Kind.FED:
                self._pass(head_of(content))
                fed = unpack_elements(elements_behind(content), engine.dictionary)
                self._step(lambda: engine._runner.push(fed))
            case Kind.FED_PASSED:
                self._pass(json.loads(bytes(content)))
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
                registration = Registration.from_plain(given)
                self._register(registration, data)
                if registration.documents is None:
                    # In logs of earlier versions; now the numbers are those of the first registration.
                    engine.dictionary.number_documents_after(durable.scopes[1])
            case Kind.JOIN | Kind.JOINING:
                given, data = read_with_terms(content, engine.dictionary)
                self._join(Registration.from_plain(given), data, exclusive=kind == Kind.JOIN)
            case Kind.BACKFILL:
                if self._joins is not None:
                    self._joins.beside.take(unpack_elements(content, engine.dictionary))
                durable.steps += 1
            case Kind.JOINED:
                if self._joins is not None:
                    self._joins.beside.complete()
                    self._joins.beside.join()
                    self._joins = None
            case Kind.GIVEN_UP:
                self.end()
            case Kind.UNREGISTER:
                self._remove(bytes(content).decode(), None)
            case Kind.FAILED:
                key, *failed = json.loads(bytes(content))
                self._remove(key, Failed(*failed))
            case Kind.CONNECT:
                key, stream = json.loads(bytes(content))
                if key in self.removed:
                    self._streams_left_out.add(stream)
                elif self._runs(key):
                    engine._connect(self._by_key(key), stream)
            case Kind.STATIC:
                given, data = read_with_terms(content, engine.dictionary)
                if self._runs(given["key"]):
                    replace_static(engine, self._by_key(given["key"]), data)
            case _:
                raise StorageError(f"{self._folder} has a record of kind {kind}, which this version does not know")

    def end(self) -> bool:
        """No more elements of before follow for a query that was not registered: the earlier process ended. Is it to be told?"""
        if self._joins is None:
            return False
        joins = self._joins
        self._give_up()
        if joins.alone or joins.exclusive:
            # Whoever registers it again has the same blank nodes as if nothing had been; a record that follows says otherwise.
            self._durable.scopes = joins.before
            self._engine.dictionary.number_documents_after(joins.before[1])
        return not joins.exclusive

    def _give_up(self) -> None:
        if self._joins is not None:
            self._joins.beside.give_up()
            self._joins = None

    def _join(self, registration: Registration, data: StaticData, *, exclusive: bool) -> None:
        self._give_up()
        beside = Beside(self._engine, self._compiled(registration), data, registration)
        if self._left_out.has(beside.query):
            beside.give_up()
            self.removed[registration.key] = None
            return
        beside.begin()
        self._joins = _Joins(beside, (0, 0), exclusive)

    def _step(self, step: Callable[[], None]) -> None:
        with self._engine._steps:
            step()
        self._durable.steps += 1

    def _register(self, registration: Registration, data: StaticData) -> Query:
        query = register_with(self._engine, self._compiled(registration), data, registration)
        if not self._left_out.has(query) and (read := self._streams_left_out.intersection(query.streams)):
            raise UsageError(
                f"the query {query.name} reads <{read.pop()}>, which one that is left out constructs: leave it out too"
            )
        return query

    def _compiled(self, registration: Registration) -> CompiledQuery:
        compiled = registration.compiled()
        if registration.documents is not None:
            self._engine.dictionary.number_documents_after(registration.documents)
        prepare_kernels(self._engine, compiled, registration, has_static=False)
        return compiled

    def _runs(self, key: str) -> bool:
        """Did a query with this key neither fail here nor is it left out?"""
        return key not in self.failed_again and key not in self.removed

    def _by_key(self, key: str) -> Query:
        query = self._durable.by_key(key)
        assert query is not None
        return query
