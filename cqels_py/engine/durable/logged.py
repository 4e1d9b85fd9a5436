"""The inputs of an engine in a log, and its state in snapshots from time to time.

    push, push_batch, run ┐
    advance, finish       ├─ Inputs ─ log ─┐
    register, connect, …  ┘                ├─ after a restart: snapshot, then the log since
    state of all queries ─────── snapshot ─┘

The log has all that the runner takes in, step by step, so that a replay makes the same steps: the same results, in the same order,
with the same numbers. Results are handed out, and calls return, when the log is durable up to there. Elements of files need not be
in it, see unlogged.py.
"""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import take_elements
from cqels_py.checkpoints import durable_files, log
from cqels_py.checkpoints.background import Background
from cqels_py.checkpoints.durable_files import Block, StorageError
from cqels_py.checkpoints.history import ORIGIN, Origin, logs_behind, origin_of
from cqels_py.checkpoints.log import Incomplete, ReadLog
from cqels_py.checkpoints.manifest import Contents, Manifest
from cqels_py.checkpoints.objects import LocalStore
from cqels_py.checkpoints.packed import Packing, element_of_lines, unpack_elements
from cqels_py.checkpoints.savepoints import explained
from cqels_py.checkpoints.snapshots import Snapshots, locked
from cqels_py.dataflow.static_data import StaticData
from cqels_py.engine.durable.companion import OF_FILE, Companion
from cqels_py.engine.durable.durable_state import DurableState, Failed
from cqels_py.engine.durable.files_read import FilesRead
from cqels_py.engine.durable.inputs import Fed, Inputs
from cqels_py.engine.durable.joining import Joining
from cqels_py.engine.durable.left_out import LeftOut
from cqels_py.engine.durable.records import BEFORE_RUN, HEAD, STEPS, Kind, elements_behind, with_plain, with_terms
from cqels_py.engine.durable.registration import Registration
from cqels_py.engine.durable.restoring import Restoring
from cqels_py.engine.durable.saved_state import COMPANION, HEADER, check_kind, copied, state_of
from cqels_py.engine.durable.unlogged import MOST_APART, Unlogged, comes_again, is_followed_by_files, pays
from cqels_py.engine.query import Query
from cqels_py.engine.rejects import Record, line_of
from cqels_py.errors import CqelsError, DataError, RunError, UnsupportedQuery, UsageError
from cqels_py.event_time.frontiers import Frontiers
from cqels_py.state.named_values import NamedValues

if TYPE_CHECKING:
    from cqels_py.engine.documents import Once
    from cqels_py.engine.engine import Engine
    from cqels_py.sources.time_merge import Piece, Place

SYNC, BATCH, OFF = "sync", "batch", "off"
"""When a call answers: when its input is durable; likewise, but one sync serves the calls of 2 ms; at once."""
LEAST = 16 << 20
"""A log of fewer bytes needs no snapshot."""
APART = 10.0
"""Seconds between snapshots, unless the log becomes too long."""
LONGEST = 4
"""So many times the bytes of the state, or the least: a log that is longer needs a snapshot at once."""
_MANY = 1 << 18
"""So many bytes are synced while they are processed; more where nothing waits for it, so that a later sync is short."""


class LoggedInputs(Inputs):
    """Logs the inputs of an engine in a folder, after `begin` has given the engine, a new one, the state that the folder has.

    `options`: those of the engine that decide results; UsageError if the folder has others. `clock`: seconds, by which snapshots are
    apart. StorageError for a folder that cannot be written or read.
    """

    keeps = True

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        durable: str,
        options: Mapping[str, object],
        companion: Companion | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if durable not in (SYNC, BATCH, OFF):
            raise UsageError(f"durable is {SYNC!r}, {BATCH!r} or {OFF!r}, not {durable!r}")
        self._engine = engine
        self._folder = self.folder = folder
        self.clock = clock
        self._waits = durable != OFF
        self._many_unsynced = _MANY if self._waits else 16 * _MANY
        self._options = json.dumps({**options, **({} if companion is None else companion.identity)})
        self._companion = companion
        self._log = log.Log(folder, log.GATHER if durable == BATCH else 0.0)
        self._packing = Packing(engine.dictionary)
        self._state = DurableState()
        self._left: dict[int, int] = {}
        # Pieces that are left out of sources which have not yet come to where they were.
        self._passed: dict[str, list[Piece]] = {}
        # Times to which the clock has moved watermarks alone since the last record, by the streams that are behind.
        self._followed: dict[frozenset[int], tuple[int, int]] = {}
        self._joining: Query | None = None
        # Is it to be logged that such a one was given up? A disk that was full may have been why.
        self._gives_up = False
        # The log and the place of the record with which that began.
        self._log_had = 0, 0
        self._recent = False
        self._replaying = True
        self._resources = ExitStack()
        self._resources.enter_context(locked(folder))
        self._store = LocalStore(folder)
        self._snapshots = Snapshots(self._store)
        self._manifest = Manifest(folder, Contents(self._state.id))
        self._number = self._snapshot_bytes = 0
        self._saving, self._syncing = Background("cqels snapshot"), Background("cqels log")
        self._saved_at = clock()
        self._unlogged = Unlogged()
        self._in_run = False
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
        self.expects_run = self._state.files.running
        self.makes_again = self.expects_run and self._state.files.unlogged

    # --- inputs -------------------------------------------------------------------------------------------------------

    def restored(self, registration: Registration) -> Query | None:
        key = registration.key
        failed = self._state.failed.get(key)
        if failed is not None and failed.text == registration.text:
            raise RunError(f"{failed.reason}; under another name= it begins anew")
        query = self._state.unclaimed.get(key)
        if self._state.by_key(key) is None:
            return None
        if query is None:
            raise UsageError(
                f"a query is registered as {key!r} already: in an engine with a checkpoint, give each a name= of its own"
            )
        if differing := self._state.registrations[query].differing(registration):
            raise UsageError(
                f"the checkpoint {self._folder} has another query as {key!r}, which differs in: {', '.join(differing)}. Unregister "
                "that one first (it is in engine.queries), or give this one another name="
            )
        del self._state.unclaimed[key]
        return query

    @contextmanager
    def reading(self, sources: Mapping[str, object]) -> Iterator[None]:
        dictionary = self._engine.dictionary
        before = dictionary.documents
        run = self._state.files.begun(sources, before)
        self._append(Kind.RUN, json.dumps(run).encode())
        self._state.files.begin(run)
        self.expects_run = False
        again = [*(iri for iri, _, _ in run["files"]), *run["live"]]
        self._left = {self._engine._registry.streams.number(iri): self._state.files.taken(iri) for iri in again}
        # Blank nodes of files that are opened again are those of the first time.
        dictionary.number_documents_after(run["documents"])
        self._engine._reports.known = self._state.files.known_malformed()
        self._leave_out(run)
        self._in_run = True
        try:
            yield
            self.makes_again = False
            self._append(Kind.RAN, b"")
            self._state.files.end()
        except DataError as error:
            # As far as an earlier process has come.
            self.makes_again = False
            # Otherwise the file has to stay as it is.
            with suppress(CqelsError):
                self._stop_at(error)
            raise
        finally:
            self._in_run = False
            self._unlogged.end()
            self._left, self._passed = {}, {}
            self._engine._reports.known = {}
            dictionary.number_documents_after(max(before, dictionary.documents))

    def _stop_at(self, error: DataError) -> None:
        """Log how a file is up to the malformed input with which the run ends."""
        if marks := self._state.files.stopped(error.place):
            self._append(Kind.STOPPED, json.dumps(marks).encode())
            self._state.files.marks |= marks

    def _leave_out(self, run: Mapping[str, Any]) -> None:
        """Leave elements of the files of a run out of the log, if they have more bytes than a snapshot would."""
        worth = pays(sum(size for _, _, size in run["files"]), self._snapshot_bytes)
        # By the clock time goes on between elements, and a query that is joining is in no snapshot.
        if worth and not self._engine._clocks.followed and self._joining is None:
            numbers = map(self._engine._registry.streams.number, (iri for iri, _, _ in run["files"]))
            self._unlogged.begin(numbers, alone=not run["live"])

    def unread(self, batch: ElementBatch) -> ElementBatch:
        if not any(self._left.values()):
            return batch
        unread = np.ones(len(batch), np.bool_)
        for number, left in self._left.items():
            known = np.flatnonzero(batch.stream == number)[:left]
            unread[known] = False
            self._left[number] = left - len(known)
        return take_elements(batch, np.flatnonzero(unread))

    def position_of(self, stream: str) -> object:
        return self._state.files.position(stream)

    def order_of(self, stream: str) -> Sequence[int] | None:
        return self._state.files.order(stream)

    def reached(self, places: Mapping[str, Place], left_out: Mapping[str, Sequence[Piece]]) -> None:
        # Those that are read again up to where they were have not got further.
        numbers = self._engine._registry.streams.numbers
        behind = {iri for iri in {*places, *left_out} if self._left.get(numbers.get(iri, -1))}
        ahead = {iri: place for iri, place in places.items() if iri not in behind}
        for iri, pieces in left_out.items():
            self._passed.setdefault(iri, []).extend(pieces)
        told = [piece for iri, pieces in self._passed.items() if iri not in behind for piece in pieces]
        self._passed = {iri: pieces for iri, pieces in self._passed.items() if iri in behind}
        self._state.files.move(ahead)
        news = self._state.files.news(ahead)
        if told:
            # In one record with the places behind them, so that they come neither again nor never.
            lines = [line_of(*piece) for piece in told]
            self._append(Kind.PASSED, json.dumps({"places": news, "left_out": lines}).encode())
        elif news:
            self._append(Kind.PLACES, json.dumps(news).encode())
        self._state.files.places |= news
        self._engine._reports.tell(told)

    def elements(self, batch: ElementBatch, *, read: bool, once: Sequence[Once] = (), fed: Fed | None = None) -> None:
        if read and self._unlogged.has(batch):
            self._take_unlogged(batch)
        elif not self._replaying:
            content = self._packing.elements(batch)
            if once:
                self._append(Kind.ONCE, *with_plain({"keys": list(map(asdict, once))}), *content)
            elif fed is not None:
                self._append(Kind.FED, *with_plain(fed._asdict()), *content)
            else:
                self._append(Kind.READ if read else Kind.ELEMENTS, *content)
            if read:
                self._state.count_read(batch, self._engine._registry.all_streams)
            self._sync_many()

    @property
    def takes_singles(self) -> bool:
        if self.makes_again or self._unlogged.any or self._saving.has_failed or self._gives_up:
            return False
        return not self._is_due()

    def single(self, stream: int, time: int, lines: bytes) -> None:
        if self._followed:
            self._log_followed()
        self._settle()
        self._write(Kind.ELEMENTS, *element_of_lines(time, stream, lines))
        self._state.steps += 1
        self._sync_many()

    def _sync_many(self) -> None:
        if self._log.unsynced >= self._many_unsynced and not self._syncing.busy:
            self._syncing.start(self._sync_ahead)

    def _take_unlogged(self, batch: ElementBatch) -> None:
        """These elements are taken in from files, in which they are found again."""
        self._log_given_up()
        self._log_followed()
        self._decide()
        if self._unlogged.removed:
            # When that was is nowhere else.
            self._save_unlogged()
            self._unlogged.on = True
        if self._unlogged.told != self._number:
            streams = [self._engine._registry.all_streams[number] for number in sorted(self._unlogged.streams)]
            self._log.append(Kind.UNLOGGED, self._head(), json.dumps(streams).encode())
            self._unlogged.told = self._number
            self._state.files.unlogged = True
        self._forget_recent()
        self._unlogged.steps += 1
        self._state.steps += 1
        self._state.count_read(batch, self._engine._registry.all_streams)

    def passed(self, fed: Fed) -> None:
        self._append(Kind.FED_PASSED, json.dumps(fed._asdict()).encode())

    def declared(self, stream: str, lateness: int, clock: str, duplicates: str) -> None:
        self._append(Kind.DECLARE, json.dumps([stream, lateness, clock, duplicates]).encode())

    def waiting_processed(self) -> None:
        self._append(Kind.WAITING, b"")

    def advanced(self, time: int) -> None:
        self._append(Kind.ADVANCE, json.dumps(time).encode())

    def followed(self, time: int, behind: frozenset[int]) -> None:
        engine = self._engine
        now = engine._clocks.wall.hold()
        self._followed.pop(behind, None)
        if engine._runner.is_due(time, behind, now):
            self._append(Kind.FOLLOW, _following(time, behind))
        else:
            # Watermarks alone move, which matters once something else comes.
            self._followed[behind] = time, now

    def held(self, frontiers: Frontiers) -> None:
        self._append(Kind.HOLD, json.dumps(frontiers.plain()).encode())

    def finished(self, until: int | None, *, ended: bool) -> None:
        self._append(Kind.FINISH, json.dumps({"until": until, "ended": ended}).encode())

    def left_out(self, record: Record) -> None:
        # Not by `_append`: it comes in the middle of reading, and decides about no step.
        if self._unlogged.on or self._unlogged.any:
            self._unlogged.steps += 1
        else:
            self._log.append(Kind.LEFT_OUT, self._head(), json.dumps(record).encode())
        self._state.count_left_out(record)

    def refused(self, query: Query, record: Record) -> bool:
        registration = self._state.registrations.get(query)
        key = None if registration is None else registration.key
        if self._state.is_refused(key, record):
            return False
        # As of input that is left out, the numbers of its head decide nothing. The sink commits the result after this.
        self._log.append(Kind.REFUSED, self._head(), json.dumps([key, record]).encode())
        self._state.add_refused(key, record)
        self.sync()
        return True

    def registered(self, query: Query, registration: Registration, data: StaticData) -> None:
        if query is not self._joining:
            self._check_services(registration)
            self._append(Kind.REGISTER, *with_terms(registration.plain(), data, self._engine.dictionary))
        else:
            self._append(Kind.JOINED, b"")
            self._joining = None
        self._state.add(query, registration)

    def joining(self, asked: Joining) -> None:
        self._check_services(asked.registration)
        self._append(Kind.JOINING, *with_terms(asked.registration.plain(), asked.static, self._engine.dictionary))
        self._joining = asked.query
        self._state.steps_before[asked.query] = self._state.steps
        # Those that are registered meanwhile share no scans with it.
        self._state.steps += 1
        self._log_had = self._number, self._log.place

    def backfilled(self, batch: ElementBatch) -> None:
        self._append(Kind.BACKFILL, *self._packing.elements(batch))

    def logged(self, streams: Sequence[int]) -> Iterator[ElementBatch]:
        """Up to the query that is joining."""
        names = [self._engine._registry.all_streams[number] for number in streams]
        self._reported(self._saving.wait)
        contents = self._manifest.contents
        for found in logs_behind(self._folder, contents, min(contents.logs), None):
            for place, record in enumerate(found.records):
                if (found.number, place) >= self._log_had:
                    return
                content = memoryview(record.content)[HEAD.size :]
                if record.kind == Kind.UNLOGGED and (of_files := set(json.loads(bytes(content))) & set(names)):
                    raise UsageError(
                        f'backfill="log": the log does not have the elements of <{">, <".join(sorted(of_files))}>, which were read '
                        "from files: name these as the sources of backfill="
                    )
                if record.kind in (Kind.ONCE, Kind.FED):
                    yield unpack_elements(elements_behind(content), self._engine.dictionary)
                elif record.kind in (Kind.ELEMENTS, Kind.READ):
                    yield unpack_elements(content, self._engine.dictionary)

    def given_up(self, query: Query) -> None:
        # Others are registered, or not, while one is joining.
        if query is self._joining:
            del self._state.steps_before[query]
            self._joining = None
            self._gives_up = not self._replaying and self._engine._steps.ended is None
            # An error is also that of the next record.
            with suppress(StorageError):
                self._log_given_up()

    def _log_given_up(self) -> None:
        """Before anything else that is logged: the numbers of streams depend on it."""
        if self._gives_up:
            self._log_followed()
            self._settle()
            self._write(Kind.GIVEN_UP)
            self._gives_up = False

    def _check_services(self, registration: Registration) -> None:
        if any("_:" in text for answer in registration.services.given for row in answer or () for text in row.values()):
            raise UnsupportedQuery(
                "an answer of SERVICE has a blank node, which would be another one after a restart; ask for IRIs and literals, or "
                "make the engine without checkpoint="
            )

    def unregistered(self, query: Query, failure: RunError | None = None) -> None:
        registration = self._state.registrations[query]
        if failure is not None:
            self._state.failed[registration.key] = Failed(registration.text, failure.message)
        if self._unlogged.any:
            # Perhaps in the middle of a step: the next one comes behind a snapshot.
            self._unlogged.removed = True
        else:
            self._append_removal(registration.key)
        self._state.remove(query)

    def _append_removal(self, key: str) -> None:
        failed = self._state.failed.get(key)
        if failed is None:
            self._append(Kind.UNREGISTER, key.encode())
        else:
            self._append(Kind.FAILED, json.dumps([key, *failed]).encode())

    def connected(self, query: Query, stream: str) -> None:
        self._append(Kind.CONNECT, json.dumps([self._state.registrations[query].key, stream]).encode())
        self._state.connections.append((query, stream))

    def static_replaced(self, query: Query, data: StaticData) -> None:
        self._append(
            Kind.STATIC, *with_terms({"key": self._state.registrations[query].key}, data, self._engine.dictionary)
        )

    def run_of(self, query: Query) -> str | None:
        return f"{self._state.id}.{self._state.ordinals[query]}"

    def sync(self) -> None:
        if self._waits:
            self._sync()

    def close(self) -> None:
        try:
            self._log_followed()
            self._sync()
        finally:
            try:
                # Others may use the folder when nothing is written any more.
                self._syncing.wait()
                self._saving.wait()
                self._seal()
            finally:
                self._log.close()
                self._resources.close()

    def _seal(self) -> None:
        """Keep how the log is, so that it is noticed if it is cut."""
        if not self._log.unsynced:
            # Where that fails, no more is known of the log than if the process had ended.
            with suppress(StorageError):
                self._manifest.end(self._log.digest)

    def _append(self, kind: Kind, *content: Block) -> None:
        if not self._replaying:
            self._log_given_up()
            # A query may be removed in the middle of a step, and by any thread.
            if kind not in (Kind.UNREGISTER, Kind.FAILED):
                self._check_run(kind)
                self._log_followed()
                self._decide()
                self._save_unlogged()
            self._write(kind, *content)
        self._state.steps += kind in STEPS

    def _write(self, kind: Kind, *content: Block) -> None:
        self._log.append(kind, self._head(), *content)
        self._forget_recent()

    def _head(self) -> bytes:
        return HEAD.pack(*self._state.scopes, self._state.now)

    def _forget_recent(self) -> None:
        if self._recent:
            self._recent = False
            for query in self._state.registrations:
                query.recent = []

    def _check_run(self, kind: Kind) -> None:
        """UsageError for input before the run in which an earlier process was, whose results would get numbers of others."""
        if self.makes_again and not self._in_run and kind not in BEFORE_RUN:
            files = ", ".join(name for _, name, _ in self._state.files.last)
            raise UsageError(
                f"the earlier process was reading {files}, and had results of more than this engine has: call run() with the same "
                "sources first, which makes them again"
            )

    def _log_followed(self) -> None:
        """Log how far time has followed the clock since the last record."""
        for behind, (passed, now) in list(self._followed.items()):
            self._log.append(Kind.FOLLOW, HEAD.pack(*self._state.scopes, now), _following(passed, behind))
            del self._followed[behind]
            self._state.steps += 1

    def _decide(self) -> None:
        """Between two steps: save the state if it is time to, and `_settle`."""
        self._reported(self._saving.check)
        if self._is_due():
            # The log goes on, unless the next record says why not.
            self._reported(self._begin_snapshot)
        self._settle()

    def _settle(self) -> None:
        """Settle the values on which the next step depends."""
        self._count_scopes()
        clocks = self._engine._clocks
        self._state.now = clocks.wall.hold() if clocks.followed else 0

    def _count_scopes(self) -> None:
        self._state.scopes = self._engine._elements, self._engine.dictionary.documents

    def _is_due(self) -> bool:
        """Does the log outweigh the state, and is the last snapshot long ago, or the log far too long? Or is it very long ago, and
        the log does not have everything?
        """
        most, passed = max(LEAST, self._snapshot_bytes), self.clock() - self._saved_at
        outweighs = self._log.size > most and (passed >= APART or self._log.size > LONGEST * most)
        return (
            (outweighs or (passed >= MOST_APART and self._unlogged.any))
            # The state of a query that is joining is in no snapshot.
            and self._joining is None
            and not self._saving.busy
            # Nor are results that wait for a sink, or that it could lose.
            and all(query.delivery.commit_if_settled() for query in self._engine.queries)
        )

    def _sync_ahead(self) -> None:
        # An error is also that of the next sync, which waits for this one.
        with suppress(StorageError):
            self._log.sync()

    def _sync(self) -> None:
        try:
            self._log.sync()
        except StorageError as error:
            self._engine._steps.ended = error
            raise

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def snapshot(self) -> None:
        with self._engine._lock:
            self._reported(self._saving.wait)
            # Nothing has been counted that is not logged.
            self._count_scopes()
            self._begin_snapshot()
        self._saving.wait()

    def _save_unlogged(self) -> None:
        """Save the state, if it depends on elements that are not logged: the next record comes behind these."""
        if not self._unlogged.any:
            return
        # A snapshot that is being saved may have them.
        self._reported(self._saving.wait)
        if self._unlogged.any:
            for query in self._engine.queries:
                query.delivery.commit()
            if not self.makes_again:
                self._state.files.unlogged = False
            self._begin_snapshot()
            self._saving.wait()
        self._unlogged.pause()

    def _reported(self, end: Callable[[], None]) -> None:
        """Report that an earlier snapshot has failed: the one before it counts, and the log since that one."""
        try:
            end()
        except StorageError as error:
            self._engine._reports.report(error)

    def _begin_snapshot(self) -> None:
        """Copy the state, and let another thread save it. Elements that are taken in from now on are in the log behind it."""
        self._engine._steps.check_open()
        number = self._number + 1
        self._log_given_up()
        self._log_followed()
        state = copied(self._current())
        self._sync()
        self._begin_log(number)
        state[ORIGIN] = Origin(self._state.id, number, self._log.before).values()
        self._number, self._saved_at = number, self.clock()
        # All sinks have the results of before.
        self._state.refused.clear()
        self._unlogged.removed = False
        self._unlogged.go_on()
        self._saving.start(partial(self._save, number, state, self._unlogged.steps))

    def _begin_log(self, number: int) -> None:
        self._log.begin(number, self._state.id, partial(self._manifest.name_log, number))

    def _current(self) -> dict[str, NamedValues]:
        return state_of(self._engine, self._state, self._options, self._companion)

    def _save(self, number: int, state: Mapping[str, NamedValues], unlogged: int = 0) -> None:
        if self._companion is not None and self._companion.sync is not None:
            self._companion.sync()
        self._snapshot_bytes = self._snapshots.save(state, number)
        kept = self._snapshots.last()
        self._manifest.name_snapshots(kept)
        self._unlogged.saved = unlogged
        oldest = kept[0]
        self._snapshots.remove_before(oldest)
        for each in log.numbers(self._folder):
            if each < oldest:
                log.remove(self._folder, each)

    # --- after a restart ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._store.remove_incomplete()
        with explained(self._folder):
            self._restore()

    def _restore(self) -> None:
        contents = Contents.read(self._folder)
        state = self._snapshots.load(contents)
        for message in self._snapshots.damaged:
            self._engine._reports.report(StorageError(f"{self._folder}: {message}; the one before it is"))
        rejects = self._engine._options.rejects
        if state is None:
            self._check_new()
            if rejects is not None:
                self._engine._rejects.begin(rejects)
            self._manifest.put(Contents(self._state.id))
            self._save(0, {**self._current(), ORIGIN: Origin(self._state.id, 0, 0).values()})
            self._begin_log(0)
            return
        check_kind(self._folder, state)
        header = json.loads(str(state[HEADER]["json"]))
        mended = FilesRead(**header["files"]).mended()
        self._check_options(json.loads(header["options"]), {f"{OF_FILE}{path}" for path in mended})
        if rejects is not None:
            self._engine._rejects.begin(rejects, header.get("rejects", 0))
        if self._companion is not None:
            self._companion.restored = state[COMPANION]
        left_out = LeftOut() if self._companion is None else self._companion.left_out
        restoring = Restoring(self._engine, self._state, self._folder, left_out)
        restoring.restore(state)
        loaded = cast(int, self._snapshots.loaded)
        origin = origin_of(state)
        self._log.before = 0 if origin is None else origin.before
        self._number, last, dropped = loaded, None, list[int]()
        for found in logs_behind(self._folder, contents, loaded, state):
            if last is not None and is_followed_by_files(last.records):
                # The snapshot that has the elements of files is not there.
                dropped.append(found.number)
                self._check_dropped(found)
                continue
            for record in found.records:
                restoring.replay(record)
            self._number, last = found.number, found
        # Not before the logs have been found to be enough: another attempt has to find it, too.
        given_up = restoring.end()
        self._go_on(contents, last, dropped)
        if given_up:
            self._log.append(Kind.GIVEN_UP, HEAD.pack(*self._state.scopes, self._state.now))
        for key in restoring.failed_again:
            # The earlier process ended before it could say so.
            self._log.append(Kind.FAILED, self._head(), json.dumps([key, *self._state.failed[key]]).encode())
        for key in restoring.removed:
            self._log.append(Kind.UNREGISTER, self._head(), key.encode())
        self._state.unclaimed = {self._state.registrations[query].key: query for query in self._engine.queries}
        for query in self._engine.queries:
            query.keep_recent()
            query.restored = self._recent = True

    def _go_on(self, contents: Contents | None, last: ReadLog | None, dropped: Sequence[int]) -> None:
        """Go on with the log that was read last, or with another one behind it."""
        logs = {} if contents is None else {n: own for n, own in contents.logs.items() if n <= self._number}
        if contents is None and last is not None:
            logs = {number: "" for number in log.numbers(self._folder) if number <= self._number}
        kept = [number for number in self._snapshots.numbers() if number <= cast(int, self._snapshots.loaded)]
        self._manifest.put(Contents(self._state.id, kept, logs, dropped=max(dropped, default=-1)))
        self._snapshots.remove_damaged()
        for number in dropped:
            log.remove(self._folder, number)
        if last is None:
            self._begin_log(self._number)
            return
        if last.torn:
            self._engine._reports.report(
                StorageError(
                    f"{self._folder / log.name_of(last.number)}: the last {last.torn:,} bytes were a record that was not "
                    "completed, as of a process that was killed; they are cut"
                )
            )
        copied = contents is not None and contents.copied and not is_followed_by_files(last.records)
        if last.head is not None and not copied:
            self._log.resume(last)
            return
        if last.torn:
            durable_files.cut(self._folder / log.name_of(last.number), last.length)
        self._log.before = last.digest
        self._number += 1
        self._begin_log(self._number)

    def _check_new(self) -> None:
        """Incomplete if the folder has logs."""
        if numbers := log.numbers(self._folder):
            raise Incomplete(f"{self._folder} has {log.name_of(numbers[0])}, and no snapshot")

    def _check_dropped(self, found: ReadLog) -> None:
        """A log behind a snapshot that cannot be read, or was not completed: then nothing of it has been answered.

        StorageError if there is something in it that does not come again with the files.
        """
        if self._snapshots.damaged and not comes_again(found.records):
            raise StorageError(
                f"{self._folder}: {'; '.join(self._snapshots.damaged)}. Inputs since then follow elements that are in no log, "
                "as they were read from files; a copy of the folder from before (cqels checkpoint copy) can be used instead"
            )

    def _check_options(self, found: Mapping[str, object], may_differ: Set[str]) -> None:
        mine = json.loads(self._options)
        if differing := [name for name in _differing(found, mine) if name not in may_differ]:
            raise UsageError(
                f"the checkpoint {self._folder} is another one's, which differs in: {', '.join(differing)}. Give the same, or name "
                "another folder"
            )


def _differing(found: Mapping[str, object], mine: Mapping[str, object]) -> list[str]:
    """The names of options with different values. One that a command has, too, is told by the name of that."""
    names = [name for name in {**found, **mine} if found.get(name) != mine.get(name)]
    return [name for name in names if f"--{name.replace('_', '-')}" not in names]


def _following(time: int, behind: frozenset[int]) -> bytes:
    return json.dumps([time, sorted(behind)]).encode()
