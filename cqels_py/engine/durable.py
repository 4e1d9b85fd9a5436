"""A durable engine: its inputs are logged in the order in which they are taken in, and its state is saved from time to time.

    push, push_batch, run ┐
    advance, finish       ├─ Inputs ─ log ─┐
    register, connect, …  ┘                ├─ after a restart: snapshot, then what the log has since
    state of all queries ─────── snapshot ─┘

The log has what the runner takes in, step by step, so that a replay makes the same steps: the same results, in the same order, with
the same numbers. Results are handed out, and calls return, when the log is durable up to there.
"""

from __future__ import annotations

import json
import struct
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cqels_py.algebra.nodes import Output
from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import take_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.checkpoints import log
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.objects import LocalStore
from cqels_py.checkpoints.packed import count_of, pack_elements, pack_terms, unpack_elements, unpack_terms
from cqels_py.checkpoints.savepoints import numbers_of
from cqels_py.checkpoints.snapshots import Snapshots, locked
from cqels_py.checkpoints.state_file import from_bytes
from cqels_py.dataflow.static_data import StaticData
from cqels_py.engine.compile import CompiledQuery, compile_query
from cqels_py.engine.query import Query
from cqels_py.engine.registered_rules import RegisteredRules, read_rules, rule_set_of
from cqels_py.engine.services import Answers
from cqels_py.errors import UnsupportedQuery, UsageError
from cqels_py.plan.nodes import VolatileColumn
from cqels_py.runners.chaining import ConstructedStream
from cqels_py.state.named_values import NamedValues, restore, values_of

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine

SYNC, BATCH, OFF = "sync", "batch", "off"
"""When a call answers: when its input is durable; likewise, but one sync serves the calls of 2 ms; at once."""
LEAST = 8 << 20
"""A log of fewer bytes needs no snapshot."""

_NUMBER = struct.Struct("<Q")
_HEAD = struct.Struct("<QQq")
"""At each record, the numbers of the last pushed element and the last document, and the time of the clock that decides."""
_HEADER, _COMPANION, _ENGINE, _QUERY = "durable", "companion", "engine/", "query/"


class Kind(IntEnum):
    """The kinds of records. Numbers are never used again for another kind."""

    ELEMENTS = 1
    WAITING = 2
    ADVANCE = 3
    FINISH = 4
    REGISTER = 5
    UNREGISTER = 6
    CONNECT = 7
    STATIC = 8
    FOLLOW = 9
    RUN = 10
    READ = 11


_STEPS = (Kind.ELEMENTS, Kind.WAITING, Kind.ADVANCE, Kind.FINISH, Kind.STATIC, Kind.FOLLOW, Kind.READ)


@dataclass(frozen=True, slots=True)
class Registration:
    """How a query was registered, as plain data. `key`: its name, or its text if it was given none."""

    key: str
    name: str | None
    text: str
    source: str | None
    changelog: bool
    entailment: str | None
    guarantee: bool
    without: tuple[str, ...]
    rules: Mapping[str, Any] | None
    services: Answers = field(default_factory=Answers, compare=False)

    @staticmethod
    def of(
        text: str | CompiledQuery,
        name: str | None,
        source: str | None,
        *,
        changelog: bool,
        entailment: str | None,
        guarantee: bool,
        rules: RegisteredRules | None,
    ) -> Registration:
        """The registration with the arguments of `Engine.register`. UsageError for a name that is none."""
        if name is not None and (not isinstance(name, str) or not name):
            raise UsageError(f"name is a text by which the query is known, not {name!r}")
        without: tuple[str, ...] = ()
        if isinstance(text, CompiledQuery):
            changelog = changelog or text.asked.output is Output.CHANGELOG
            guarantee, without = guarantee or text.guarantee, tuple(sorted(text.without))
            text = text.text
        given = rules.given if isinstance(rules, RegisteredRules) else None
        return Registration(name or text, name, text, source, changelog, entailment, guarantee, without, given)

    def compiled(self) -> CompiledQuery:
        """The query, compiled anew."""
        rules = None if self.rules is None else rule_set_of(read_rules(**self.rules, register=_registers_nothing))
        return compile_query(
            self.text,
            source=self.source,
            changelog=self.changelog,
            without=self.without,
            guarantee=self.guarantee,
            rules=rules,
            ask=self.services.again,
        )

    def plain(self) -> dict[str, Any]:
        """Plain data, from which `from_plain` makes the registration."""
        return {**{each.name: getattr(self, each.name) for each in fields(self)}, "services": self.services.given}

    @staticmethod
    def from_plain(given: Mapping[str, Any]) -> Registration:
        """The registration."""
        return Registration(**{**given, "without": tuple(given["without"]), "services": Answers(given["services"])})

    def differing(self, other: Registration) -> list[str]:
        """The options in which another registration differs."""
        names = ("text", "changelog", "entailment", "guarantee", "without", "rules")
        return [name for name in names if _plain(getattr(self, name)) != _plain(getattr(other, name))]


@dataclass(slots=True)
class FilesRead:
    """The files of runs: how many elements of each have been taken in, by "stream file".

    `last`: those of the last run, as [stream, file, bytes]; `documents`: the last number of a document before it.
    """

    positions: dict[str, int] = field(default_factory=dict)
    last: list[list[Any]] = field(default_factory=list)
    documents: int = 0

    def begun(self, sources: Mapping[str, object], documents: int) -> dict[str, Any]:
        """A run of these sources. UsageError for a file that has become shorter since it was begun."""
        found = {iri: path for iri, given in sources.items() if (path := _file(given)) is not None}
        files = [[iri, str(path), path.stat().st_size] for iri, path in found.items()]
        for iri, name, size in files:
            if any(known[:2] == [iri, name] and size < known[2] for known in self.last):
                raise UsageError(
                    f"{name} has become shorter since {self.positions.get(f'{iri} {name}', 0)} elements of it were taken in: it is "
                    "another file; give it another name"
                )
        same = [each[:2] for each in files] == [each[:2] for each in self.last]
        return {"files": files, "documents": self.documents if same else documents}

    def begin(self, run: Mapping[str, Any]) -> None:
        """The run begins."""
        self.last, self.documents = run["files"], run["documents"]

    def taken(self, stream: str) -> int:
        """How many elements of the stream's file have been taken in."""
        return next((self.positions.get(f"{iri} {path}", 0) for iri, path, _ in self.last if iri == stream), 0)

    def count(self, stream: str, elements: int) -> None:
        """So many elements of a stream are taken in; nothing is counted if its source is no file."""
        for iri, path, _ in self.last:
            if iri == stream:
                key = f"{iri} {path}"
                self.positions[key] = self.positions.get(key, 0) + elements


@dataclass(slots=True)
class Companion:
    """The folder of a checkpoint, for a program that keeps something of its own in step with the engine's state, such as an output.

    `identity`: what else has to be the same after a restart, by the names under which a difference is told. `state`: gives plain
    values for each snapshot. `restored`: those of the snapshot that the engine goes on from; None: the folder is new.
    """

    folder: Path
    identity: Mapping[str, str]
    state: Callable[[], NamedValues]
    restored: NamedValues | None = None


class Inputs:
    """The inputs of an engine, each told before it is taken in. This class keeps nothing: that of an engine without a checkpoint."""

    keeps = False

    def begin(self) -> None:
        """Called once, when the engine is complete."""

    def restored(self, registration: Registration) -> Query | None:
        """The query that goes on from an earlier process under this name. UsageError if it is another one."""
        return None

    @contextmanager
    def reading(self, sources: Mapping[str, object]) -> Iterator[None]:
        """Inside, these sources are opened and read. UsageError for a file that is not the one that was begun."""
        yield

    def unread(self, batch: ElementBatch) -> ElementBatch:
        """The elements that the engine does not have yet, of those that its sources have next."""
        return batch

    def elements(self, batch: ElementBatch, *, read: bool) -> None:
        """The elements of a step. `read`: from a source of a run."""

    def waiting_processed(self) -> None:
        """The elements that wait for a boundary are processed now."""

    def advanced(self, time: int) -> None:
        """No element before this time will come."""

    def followed(self, time: int) -> None:
        """Time goes on with the clock; see `LocalRunner.follow`."""

    def finished(self, until: int | None, *, ended: bool) -> None:
        """The sources have ended; see `LocalRunner.finish`. `ended`: nothing can follow."""

    def registered(self, query: Query, registration: Registration, data: StaticData) -> None:
        """A query with its static data. UnsupportedQuery for one whose results cannot be made again."""

    def unregistered(self, query: Query) -> None:
        """A query is removed."""

    def connected(self, query: Query, stream: str) -> None:
        """The results of a query are elements of the stream."""

    def static_replaced(self, query: Query, data: StaticData) -> None:
        """A query gets other static data."""

    def sync(self) -> None:
        """Return when all inputs so far are durable."""

    def snapshot(self) -> None:
        """Save the state. UsageError for an engine without a checkpoint."""
        raise UsageError("the engine has no checkpoint: make it with checkpoint=, a folder")

    def close(self) -> None:
        """No input follows."""


class LoggedInputs(Inputs):
    """Logs the inputs of an engine in a folder, after `begin` has given the engine, a new one, the state that the folder has.

    `options`: those of the engine that decide results; UsageError if the folder has others. StorageError for a folder that cannot be
    written or read.
    """

    keeps = True

    def __init__(
        self, engine: Engine, folder: Path, durable: str, options: Mapping[str, object], companion: Companion | None
    ) -> None:
        if durable not in (SYNC, BATCH, OFF):
            raise UsageError(f"durable is {SYNC!r}, {BATCH!r} or {OFF!r}, not {durable!r}")
        self._engine = engine
        self._folder = folder
        self._waits = durable != OFF
        self._options = json.dumps({**options, **({} if companion is None else companion.identity)})
        self._companion = companion
        self._log = log.Log(folder, log.GATHER if durable == BATCH else 0.0)
        self._registrations: dict[Query, Registration] = {}
        self._unclaimed: dict[str, Query] = {}
        self._connections: list[tuple[Query, str]] = []
        # How many steps there had been when a query was registered: later queries share no scans with earlier ones.
        self._steps = 0
        self._steps_before: dict[Query, int] = {}
        # The numbers of the last pushed element and the last document that have been logged: scopes of blank nodes.
        self._scopes = 0, 0
        self._now = 0
        self._files = FilesRead()
        self._left: dict[int, int] = {}
        self._recent = False
        self._replaying = True
        self._resources = ExitStack()
        self._resources.enter_context(locked(folder))
        self._snapshots = Snapshots(LocalStore(folder))
        self._number = self._snapshot_bytes = 0
        weakref.finalize(engine, self._resources.close)

    def begin(self) -> None:
        runner = self._engine._runner
        # The log says which queries were stopped, and when.
        most, runner.max_state = runner.max_state, None
        try:
            self._open()
        except BaseException:
            self._resources.close()
            raise
        runner.max_state = most
        self._replaying = False

    # --- inputs -------------------------------------------------------------------------------------------------------

    def restored(self, registration: Registration) -> Query | None:
        key = registration.key
        query = self._unclaimed.get(key)
        known = next((each for each in self._registrations if self._registrations[each].key == key), None)
        if known is None:
            return None
        if query is None:
            raise UsageError(
                f"a query is registered as {key!r} already: in an engine with a checkpoint, give each a name= of its own"
            )
        if differing := self._registrations[query].differing(registration):
            raise UsageError(
                f"the checkpoint {self._folder} has another query as {key!r}, which differs in: {', '.join(differing)}. Unregister "
                "that one first (it is in engine.queries), or give this one another name="
            )
        del self._unclaimed[key]
        return query

    @contextmanager
    def reading(self, sources: Mapping[str, object]) -> Iterator[None]:
        dictionary = self._engine.dictionary
        before = dictionary.documents
        run = self._files.begun(sources, before)
        self._append(Kind.RUN, json.dumps(run).encode())
        self._files.begin(run)
        self._left = {self._engine._registry.streams.number(iri): self._files.taken(iri) for iri, _, _ in run["files"]}
        # Blank nodes of files that are opened again are those of the first time.
        dictionary.number_documents_after(run["documents"])
        try:
            yield
        finally:
            self._left = {}
            dictionary.number_documents_after(max(before, dictionary.documents))

    def unread(self, batch: ElementBatch) -> ElementBatch:
        if not any(self._left.values()):
            return batch
        unread = np.ones(len(batch), np.bool_)
        for number, left in self._left.items():
            known = np.flatnonzero(batch.stream == number)[:left]
            unread[known] = False
            self._left[number] = left - len(known)
        return take_elements(batch, np.flatnonzero(unread))

    def elements(self, batch: ElementBatch, *, read: bool) -> None:
        if not self._replaying:
            self._append(Kind.READ if read else Kind.ELEMENTS, pack_elements(batch, self._engine.dictionary))
            if read:
                self._count(batch)

    def _count(self, batch: ElementBatch) -> None:
        streams = self._engine._registry.all_streams
        numbers, counts = np.unique(batch.stream, return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            self._files.count(streams[number], count)

    def waiting_processed(self) -> None:
        self._append(Kind.WAITING, b"")

    def advanced(self, time: int) -> None:
        self._append(Kind.ADVANCE, json.dumps(time).encode())

    def followed(self, time: int) -> None:
        self._append(Kind.FOLLOW, json.dumps(time).encode())

    def finished(self, until: int | None, *, ended: bool) -> None:
        self._append(Kind.FINISH, json.dumps({"until": until, "ended": ended}).encode())

    def registered(self, query: Query, registration: Registration, data: StaticData) -> None:
        if any(isinstance(column, VolatileColumn) for column in query.plan.added):
            raise UnsupportedQuery(
                "UUID, STRUUID, RAND and BNODE would have other values when results are made again after a restart; leave them out, "
                "or make the engine without checkpoint="
            )
        if any("_:" in text for answer in registration.services.given for row in answer or () for text in row.values()):
            raise UnsupportedQuery(
                "an answer of SERVICE has a blank node, which would be another one after a restart; ask for IRIs and literals, or "
                "make the engine without checkpoint="
            )
        self._append(Kind.REGISTER, _with_terms(registration.plain(), data, self._engine))
        self._registrations[query] = registration
        self._steps_before[query] = self._steps

    def unregistered(self, query: Query) -> None:
        registration = self._registrations[query]
        self._append(Kind.UNREGISTER, registration.key.encode())
        del self._registrations[query], self._steps_before[query]
        self._unclaimed.pop(registration.key, None)
        self._connections = [pair for pair in self._connections if pair[0] is not query]

    def connected(self, query: Query, stream: str) -> None:
        self._append(Kind.CONNECT, json.dumps([self._registrations[query].key, stream]).encode())
        self._connections.append((query, stream))

    def static_replaced(self, query: Query, data: StaticData) -> None:
        self._append(Kind.STATIC, _with_terms({"key": self._registrations[query].key}, data, self._engine))

    def sync(self) -> None:
        if self._waits:
            self._sync()

    def close(self) -> None:
        try:
            self._sync()
        finally:
            self._log.close()
            self._resources.close()

    def _append(self, kind: Kind, content: bytes) -> None:
        if not self._replaying:
            # A query may be removed in the middle of a step, and by any thread.
            if kind != Kind.UNREGISTER:
                self._decide()
            self._log.append(kind, _HEAD.pack(*self._scopes, self._now) + content)
            if self._recent:
                self._recent = False
                for query in self._registrations:
                    query.recent = []
        self._steps += kind in _STEPS

    def _decide(self) -> None:
        """Between two steps: save the state if it is time to, and settle what the next step depends on."""
        if self._log.size > max(LEAST, self._snapshot_bytes):
            self.snapshot()
        self._scopes = self._engine._elements, self._engine.dictionary.documents
        self._now = 0 if (clock := self._engine._clock) is None else clock.hold()

    def _sync(self) -> None:
        try:
            self._log.sync()
        except StorageError as error:
            self._engine._steps.ended = error
            raise

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> None:
        with self._engine._lock:
            self._engine._steps.check_open()
            self._sync()
            number = self._number + 1
            try:
                self._snapshot_bytes = self._snapshots.save(self._state(), number)
            except StorageError:
                if number in self._snapshots.numbers():
                    # It counts already: what is logged behind the one before would be lost.
                    self._begin_log(number)
                raise
            self._begin_log(number)
            self._drop_older()

    def _begin_log(self, number: int) -> None:
        self._number = number
        try:
            self._log.begin(number)
        except StorageError as error:
            self._engine._steps.ended = error
            raise

    def _drop_older(self) -> None:
        oldest = min(self._snapshots.numbers())
        for number in log.numbers(self._folder):
            if number < oldest:
                log.remove(self._folder, number)

    def _state(self) -> dict[str, NamedValues]:
        engine = self._engine
        queries = engine.queries
        scans = [_dataflow(query).shared_scans for query in queries]
        header = {
            "options": self._options,
            "streams": engine._registry.all_streams,
            "steps": self._steps,
            "queries": [self._registrations[query].plain() for query in queries],
            "counts": [query.delivery.count for query in queries],
            "steps_before": [self._steps_before[query] for query in queries],
            "scans": [scans.index(each) for each in scans],
            "files": asdict(self._files),
            "connections": [[queries.index(query), stream] for query, stream in self._connections],
        }
        state: dict[str, NamedValues] = {_HEADER: {"json": json.dumps(header)}}
        if self._companion is not None:
            state[_COMPANION] = self._companion.state()
        state |= {_ENGINE + part: values for part, values in engine._state().items()}
        # Those that were counted already, and are logged after this, are counted again after a restart.
        state[f"{_ENGINE}pushed"]["elements"], state[f"{_ENGINE}terms"]["documents"] = self._scopes
        for place, query in enumerate(queries):
            prefix = f"{_QUERY}{place}/"
            data = _dataflow(query).static
            if isinstance(feed := engine._queries[query].feed, ConstructedStream):
                state[f"{prefix}construction"] = values_of(feed.construction)
            state[f"{prefix}static"] = {"quads": data.quads, "names": data.names}
            state[f"{prefix}untaken"] = _saved_results(query.untaken(), len(query.variables))
            state |= {f"{prefix}dataflow/{part}": values for part, values in _dataflow(query).state().items()}
        return state

    # --- after a restart ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        state = self._snapshots.load()
        for message in self._snapshots.damaged:
            self._engine._reports.report(StorageError(f"{self._folder}: {message}; the one before it is"))
        if state is None:
            self._snapshot_bytes = self._snapshots.save(self._state(), 0)
            self._log.begin(0)
            return
        self._restore(state)
        loaded = cast(int, self._snapshots.loaded)
        numbers = [number for number in log.numbers(self._folder) if number >= loaded]
        self._number = max([loaded, *numbers])
        place = 0
        for number in numbers:
            records = log.records(self._folder, number, last=number == self._number)
            place = len(records)
            for record in records:
                self._replay(record)
        if numbers:
            self._log.resume(self._number, place)
        else:
            self._log.begin(self._number)
        self._unclaimed = {self._registrations[query].key: query for query in self._engine.queries}
        for query in self._engine.queries:
            query.keep_recent()
            query.restored = self._recent = True

    def _restore(self, state: Mapping[str, NamedValues]) -> None:
        engine = self._engine
        header = json.loads(str(state[_HEADER]["json"]))
        self._check_options(json.loads(header["options"]))
        if self._companion is not None:
            self._companion.restored = state[_COMPANION]
        engine._restore(_below(_ENGINE, state))
        self._scopes = engine._elements, engine.dictionary.documents
        engine._registry.know_streams(header["streams"])
        self._files = FilesRead(**header["files"])
        seen: set[int] = set()
        for place, given in enumerate(header["queries"]):
            own = _below(f"{_QUERY}{place}/", state)
            if header["scans"][place] not in seen:
                self._close_scans(header["steps_before"][place])
            seen.add(header["scans"][place])
            data = StaticData([cast(Ids, own["static"]["quads"])], cast(Ids, own["static"]["names"]).tolist())
            query = self._register(Registration.from_plain(given), data)
            _dataflow(query).restore(_below("dataflow/", own))
            if isinstance(feed := engine._queries[query].feed, ConstructedStream):
                restore(feed.construction, own["construction"])
            query.begin_after(header["counts"][place], _restored_results(own["untaken"], query))
        for place, stream in header["connections"]:
            engine._connect(engine.queries[place], stream)
        engine._runner.end_restore()
        self._close_scans(header["steps"])
        engine.dictionary.number_documents_after(self._scopes[1])

    def _check_options(self, found: Mapping[str, object]) -> None:
        mine = json.loads(self._options)
        if differing := [name for name in mine if found.get(name) != mine[name]]:
            raise UsageError(
                f"the checkpoint {self._folder} is another one's, which differs in: {', '.join(differing)}. Give the same, or name "
                "another folder"
            )

    def _close_scans(self, steps: int) -> None:
        """There had been so many steps: if some of them came after the last query, later queries are apart from it."""
        if steps != self._steps:
            self._engine._runner.pool.close()
        self._steps = steps

    def _replay(self, record: log.Record) -> None:
        engine, content = self._engine, memoryview(record.content)[_HEAD.size :]
        *scopes, self._now = _HEAD.unpack_from(record.content)
        self._scopes = scopes[0], scopes[1]
        engine.dictionary.number_documents_after(scopes[1])
        if engine._clock is not None:
            engine._clock.hold(self._now)
        engine._elements = self._scopes[0]
        match record.kind:
            case Kind.RUN:
                self._files.begin(json.loads(bytes(content)))
            case Kind.ELEMENTS | Kind.READ:
                batch = unpack_elements(content, engine.dictionary)
                if record.kind == Kind.READ:
                    self._count(batch)
                self._step(lambda: engine._runner.push(batch))
            case Kind.WAITING:
                self._step(engine._runner.process_waiting)
            case Kind.ADVANCE:
                time = json.loads(bytes(content))
                self._step(lambda: engine._runner.advance(time))
            case Kind.FOLLOW:
                time = json.loads(bytes(content))
                self._step(lambda: engine._runner.follow(time))
            case Kind.FINISH:
                given = json.loads(bytes(content))
                self._step(lambda: engine._runner.finish(given["until"]))
                if given["ended"]:
                    engine._end()
            case Kind.REGISTER:
                given, data = _read_with_terms(content, engine)
                self._register(Registration.from_plain(given), data)
            case Kind.UNREGISTER:
                engine._forget(self._by_key(bytes(content).decode()))
            case Kind.CONNECT:
                key, stream = json.loads(bytes(content))
                engine._connect(self._by_key(key), stream)
            case Kind.STATIC:
                given, data = _read_with_terms(content, engine)
                engine._replace_static(self._by_key(given["key"]), data)
            case _:
                raise StorageError(
                    f"{self._folder} has a record of kind {record.kind}, which this version does not know"
                )
        engine._deliver(engine._pending.take())

    def _step(self, step: Callable[[], None]) -> None:
        with self._engine._steps:
            step()
        self._steps += 1

    def _register(self, registration: Registration, data: StaticData) -> Query:
        compiled = registration.compiled()
        self._engine._prepare(compiled, registration, has_static=False)
        return self._engine._register_with(compiled, data, registration)

    def _by_key(self, key: str) -> Query:
        return next(query for query in self._registrations if self._registrations[query].key == key)


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of a checkpoint. `queries`: by name, the number of results before the last snapshot; None: a run over files.

    `snapshots`, `logs`: the bytes of each file; a snapshot that is damaged has a negative number.
    """

    elements: int
    records: int
    queries: Mapping[str, int] | None
    snapshots: Mapping[str, int]
    logs: Mapping[str, int]


def summary(folder: Path) -> Summary:
    """The content of a checkpoint that may be in use. UsageError for another folder; StorageError if it is damaged."""
    state: Mapping[str, NamedValues] | None = None
    snapshots: dict[str, int] = {}
    number = 0
    for number in numbers_of(folder):
        path = folder / f"{number:012}.snapshot"
        data = path.read_bytes()
        try:
            state, loaded = from_bytes(data), number
            snapshots[path.name] = len(data)
        except StorageError:
            snapshots[path.name] = -len(data)
    if state is None:
        raise StorageError(f"no snapshot of {folder} is intact")
    logs = {log.name_of(each): (folder / log.name_of(each)).stat().st_size for each in log.numbers(folder)}
    if _HEADER not in state:
        return Summary(cast(int, state["run"]["elements"]), 0, None, snapshots, logs)
    records = [record for each in log.numbers(folder) if each >= loaded for record in log.look(folder, each)]
    header = json.loads(str(state[_HEADER]["json"]))
    queries = {each["key"]: count for each, count in zip(header["queries"], header["counts"], strict=True)}
    elements = cast(int, state[f"{_ENGINE}counters"]["elements"])
    for record in records:
        content = memoryview(record.content)[_HEAD.size :]
        if record.kind in (Kind.ELEMENTS, Kind.READ):
            elements += count_of(content)
        elif record.kind == Kind.REGISTER:
            queries[_head_of(content)["given"]["key"]] = 0
        elif record.kind == Kind.UNREGISTER:
            queries.pop(bytes(content).decode(), None)
    return Summary(elements, len(records), queries, snapshots, logs)


def opened(engine: Engine, folder: object, durable: str, options: Mapping[str, object]) -> Inputs:
    """The inputs of an engine: logged in the folder, if there is one."""
    if folder is None:
        return Inputs()
    if isinstance(folder, Companion):
        return LoggedInputs(engine, folder.folder, durable, options, folder)
    if not isinstance(folder, str | Path):
        raise UsageError(f"checkpoint is a folder, not {folder!r}")
    return LoggedInputs(engine, Path(folder), durable, options, None)


def _file(source: object) -> Path | None:
    """The file that can be read again, if the source is one."""
    if not isinstance(source, str | Path):
        return None
    path: Path = Path(str(source).removeprefix("file://"))
    return path.absolute() if path.is_file() else None


def _dataflow(query: Query) -> Any:
    assert query._dataflow is not None
    return query._dataflow


def _plain(value: object) -> object:
    """The value as it comes back from JSON."""
    return json.loads(json.dumps(value))


def _registers_nothing(*_: object, **__: object) -> Query:
    raise UsageError("these rules belong to an engine that has ended")


def _below(prefix: str, state: Mapping[str, NamedValues]) -> dict[str, NamedValues]:
    return {part.removeprefix(prefix): values for part, values in state.items() if part.startswith(prefix)}


def _with_terms(given: Mapping[str, Any], data: StaticData, engine: Engine) -> bytes:
    head = json.dumps({"given": given, "quads": data.quads.shape[1]}).encode()
    ids = np.concatenate([data.quads.reshape(-1), data.names])
    return _NUMBER.pack(len(head)) + head + pack_terms(ids, engine.dictionary)


def _read_with_terms(content: memoryview, engine: Engine) -> tuple[dict[str, Any], StaticData]:
    head = _head_of(content)
    ids = unpack_terms(content[_NUMBER.size + _NUMBER.unpack_from(content)[0] :], engine.dictionary)
    quads = 4 * head["quads"]
    return head["given"], StaticData([ids[:quads].reshape(4, -1)], ids[quads:].tolist())


def _head_of(content: memoryview) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(content[_NUMBER.size :][: _NUMBER.unpack_from(content)[0]]))
    return found


def _saved_results(batches: Iterable[ResultBatch], width: int) -> NamedValues:
    """Results that nobody has got, one batch behind the other. `tick` -1: the batch has none."""
    given = list(batches)
    columns = [np.stack(batch.columns) if width else np.zeros((0, len(batch)), np.int64) for batch in given]
    ticks = [np.full(len(batch), -1, np.int32) if batch.tick is None else batch.tick for batch in given]
    return {
        "counts": [len(batch) for batch in given],
        "numbers": [batch.number for batch in given],
        "time": np.concatenate([np.zeros(0, np.int64), *(batch.time for batch in given)]),
        "sign": np.concatenate([np.zeros(0, np.int8), *(batch.sign for batch in given)]),
        "tick": np.concatenate([np.zeros(0, np.int32), *ticks]),
        "columns": np.concatenate([np.zeros((width, 0), np.int64), *columns], axis=1),
    }


def _restored_results(values: NamedValues, query: Query) -> Iterable[ResultBatch]:
    time, sign, tick, columns = (np.array(values[name]) for name in ("time", "sign", "tick", "columns"))
    start = 0
    for count, number in zip(cast("list[int]", values["counts"]), cast("list[int]", values["numbers"]), strict=True):
        rows = slice(start, start + count)
        ticks = None if tick[start] < 0 else tick[rows]
        yield ResultBatch(query.variables, time[rows], sign[rows], tuple(columns[:, rows]), ticks, number)
        start += count
