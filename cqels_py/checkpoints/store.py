"""The durable state of one partition: snapshots, a log of the input of each micro-batch since, and the outcome of each.

    <batch>-<run>-<execution>-<attempt>-<id>.input      the rows of a micro-batch, and the id of the state before it
    <batch>-<run>-<execution>-<attempt>-<id>.outcome    says that the input counts; the partition's counts after it
    <batch>-<run>-<execution>-<attempt>-<id>.snapshot   the whole state after a micro-batch

A state's id is a digest of the id before it and the input, so it identifies the whole history of the partition, like a
commit in git: equal histories have equal ids in every process. The state is the latest snapshot of that history
with the later inputs replayed, since the dataflow is deterministic.

Spark may run a task of a micro-batch more than once: after a failure, in speculative execution, or when a lost worker
turns out to be alive; and after a restart of the driver it may run the whole micro-batch again. Four rules keep the
state correct, in stores that can neither lock nor create exclusively:

* An attempt only writes objects of its own: names have its number and the content's digest. So a request that is
  delayed or repeated does no harm.
* All attempts at one execution (one Spark stage of one run of the driver) have one outcome. An attempt that finds the
  outcome of another one evaluates that one's input instead of its own. Otherwise it writes its input first, and then
  looks for those of others: of two attempts at least one sees the other. Where they differ, it fails, unless there is
  an outcome by now. So all attempts that end deliver the same rows, and it does not matter which of them Spark accepts.
* A micro-batch starts from the latest execution of the one before it, and its input records which. A replay after a
  restart is a later execution, and it counts from then on.
* No attempt removes objects of its own micro-batch or of later ones. When a snapshot has been written, everything older
  than the snapshot before it is removed, and than the one from which the micro-batches are reached to which an operator
  may set Spark back; an attempt that sees the outcome of a later micro-batch writes nothing.

Every object has a digest of its content; one that is damaged, such as a part of an upload, counts as missing where
there is another way. A snapshot is written when the inputs since the last one are larger than it, so the size of a
folder follows the state, not the stream. The snapshot before it is kept, with the inputs after it, in case a snapshot
turns out to be damaged.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.objects import Store
from cqels_py.checkpoints.state_file import State, from_bytes, to_bytes
from cqels_py.errors import RunError
from cqels_py.state.named_values import NamedValues

BEFORE = -1
"""The number of the batch before the first."""
_LEAST = 1 << 20
_DIGEST = 16
_ID = 16
_FIRST_ID = "0" * _ID
_NAME = re.compile(r"(\d+)-(\d+)-(\d+)-(\d+)-([0-9a-f]{16})\.(input|outcome|snapshot)")
_AFTER_ALL_RUNS = 1 << 62
_THREADS = 8
"""Requests at a time that remove old objects."""
_START_AGAIN = "To start again, remove both the state and Spark's checkpoint: neither is of use without the other"


class DamagedFile(RunError):
    """An object of the state differs from the data that was written."""

    code = "CQ-DAMAGED"


class OtherRows(RunError):
    """Two attempts at one execution got different rows, and neither has an outcome."""

    code = "CQ-OTHER-ROWS"


class SetBack(RunError):
    """Spark goes on with a micro-batch to which the state cannot go back."""

    code = "CQ-SET-BACK"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a micro-batch. `execution`: Spark's number of the stage, which all attempts at it share; it grows
    within a `run` of the driver, as runs do: so the order of (run, execution) is that in which the driver planned them.
    `number`: Spark's of the attempt, which no other task of the run has."""

    batch: int
    run: int = 0
    execution: int = 0
    number: int = field(default=0, compare=False)

    @property
    def age(self) -> tuple[int, int]:
        return self.run, self.execution

    def is_late(self, outcomes: Iterable[Name]) -> bool:
        """Has a later micro-batch finished that was planned after this attempt? Then Spark has accepted another
        attempt."""
        return any(each.attempt.batch > self.batch and each.attempt.age >= self.age for each in outcomes)


@dataclass(frozen=True, slots=True)
class Name:
    """The name of an object: the attempt that wrote it, the id of the state that it leads to, and its kind."""

    attempt: Attempt
    id: str
    kind: str

    def __str__(self) -> str:
        attempt = self.attempt
        return f"{attempt.batch}-{attempt.run}-{attempt.execution}-{attempt.number}-{self.id}.{self.kind}"

    @property
    def reached(self) -> Reached:
        return Reached(self.attempt.batch, self.id)


@dataclass(frozen=True, slots=True)
class Reached:
    """The state after a micro-batch, by its id."""

    batch: int
    id: str

    def __str__(self) -> str:
        return f"{self.batch}-{self.id}"


FIRST = Reached(BEFORE, _FIRST_ID)
"""The state before the first micro-batch, which has no snapshot: it is made anew."""


@dataclass(frozen=True, slots=True)
class Since:
    """The last snapshot in the history of a state, its bytes, and the bytes of inputs after that."""

    snapshot: Reached = FIRST
    size: int = 0
    inputs: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """The state from which an attempt starts, and its last snapshot.

    `counts`: of the partition so far. `settled`: the input for which this execution has an outcome, None if it has none
    yet.
    """

    reached: Reached
    since: Since
    counts: Mapping[str, Any]
    settled: bytes | None = None
    late: bool = False

    @property
    def name(self) -> str:
        return str(self.reached)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A state in the history of the one to start from, and the `inputs` that lead from there to it. `near`: its name, if the caller
    has it; otherwise it is `state`, None: that before the first micro-batch, which is to be made."""

    inputs: list[bytes]
    near: str | None = None
    state: dict[str, NamedValues] | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """The name of the state after an attempt. `late`: a later micro-batch has finished already."""

    name: str
    late: bool


class PartStore:
    """Loads and saves the state of one partition. `where`: its store, for messages."""

    def __init__(self, store: Store, where: str) -> None:
        self._store = store
        self._where = where

    # --- loading --------------------------------------------------------------------------------------------------

    def start(self, attempt: Attempt) -> Start:
        """The state from which an attempt starts; RunError if there is none of the micro-batch before it."""
        names = self._names()
        outcomes = _of_kind(names, "outcome")
        late = attempt.is_late(outcomes)
        for name in outcomes:
            if name.attempt == attempt and (kept := self._outcome(name)) is not None:
                before, data = self._input(names, name.reached, late=late)
                return Start(before, kept["before"], kept["counts"], data, late)
        if attempt.batch - 1 == BEFORE:
            self._check_first(attempt, outcomes)
            return Start(FIRST, Since(), {}, late=late)
        found = self._newest_before(attempt, outcomes)
        if found is None:
            raise self._not_ended(attempt.batch, outcomes, late=late)
        name, outcome = found
        return Start(name.reached, outcome["after"], outcome["counts"], late=late)

    def after(self, batch: int) -> Start:
        """The state after a micro-batch, from which one continues that is planned now; RunError if there is none."""
        return self.start(Attempt(batch + 1, _AFTER_ALL_RUNS))

    def newest(self) -> int:
        """The last micro-batch that has ended; BEFORE if none has."""
        return _newest(_of_kind(self._names(), "outcome"))

    def reachable(self) -> set[int]:
        """The micro-batches with which Spark can go on: those after a state that can be made of what is there."""
        names = self._names()
        kinds = ("outcome", "input", "snapshot")
        outcomes, inputs, snapshots = ({each.attempt.batch for each in _of_kind(names, kind)} for kind in kinds)
        made = {BEFORE}
        for batch in sorted(inputs | snapshots):
            if batch in snapshots or batch - 1 in made:
                made.add(batch)
        return {batch + 1 for batch in outcomes & made}

    def check_ended(self, batch: int) -> None:
        """RunError unless this micro-batch has ended here, or a later one."""
        outcomes = _of_kind(self._names(), "outcome")
        if _newest(outcomes) < batch:
            raise self._not_ended(batch + 1, outcomes, late=False)

    def begin_with(self, reached: Reached, state: State, counts: Mapping[str, Any]) -> None:
        """Lay out a new store with the state after a micro-batch of another one."""
        attempt = Attempt(reached.batch)
        size = self._put_snapshot(Name(attempt, reached.id, "snapshot"), state)
        outcome = {"before": asdict(Since()), "after": asdict(Since(reached, size)), "counts": counts}
        self._put(Name(attempt, reached.id, "outcome"), json.dumps(outcome).encode())

    def _newest_before(self, attempt: Attempt, outcomes: list[Name]) -> tuple[Name, dict[str, Any]] | None:
        """The latest outcome of the micro-batch before."""
        candidates = [each for each in outcomes if each.attempt.batch == attempt.batch - 1]
        # A streaming query of an earlier run that is started again may come after the batches of a later one.
        planned_before = [each for each in candidates if each.attempt.age <= attempt.age] or candidates
        for name in sorted(planned_before, key=lambda each: each.attempt.age, reverse=True):
            if (outcome := self._outcome(name)) is not None:
                return name, outcome
        return None

    def _check_first(self, attempt: Attempt, outcomes: list[Name]) -> None:
        """RunError if an earlier run has gone on from the first micro-batch: Spark would not begin with it again."""
        if any(each.attempt.batch > 0 and each.attempt.run < attempt.run for each in outcomes):
            raise RunError(
                f"the state in {self._where} has later micro-batches than the first, with which this checkpoint begins: "
                f"it is another one. {_START_AGAIN}"
            )

    def load(self, start: Start, near: Collection[str] = ()) -> Loaded:
        """The latest state in the history of the one to start from that has an intact snapshot, or that the caller has: `near` has
        the names of those. Of one that is older than the last snapshot nothing is gained."""
        if start.name in near:
            return Loaded([], start.name)
        names = self._names()
        reached, inputs = start.reached, list[bytes]()
        while reached != FIRST:
            if str(reached) in near:
                return Loaded(inputs[::-1], str(reached))
            for name in _of_kind(names, "snapshot"):
                if name.reached == reached and (state := self._snapshot(name)) is not None:
                    return Loaded(inputs[::-1], state=state)
            reached, data = self._input(names, reached, late=start.late)
            inputs.append(data)
        return Loaded(inputs[::-1])

    def _input(self, names: list[Name], reached: Reached, *, late: bool) -> tuple[Reached, bytes]:
        """The state before one, and the input that leads from there to it."""
        damage: DamagedFile | None = None
        for name in _of_kind(names, "input"):
            if name.reached != reached:
                continue
            try:
                found = self._get(name)
                return Reached(reached.batch - 1, found[:_ID].decode()), found[_ID:]
            except DamagedFile as error:
                damage = error
            except StorageError:
                # It was removed meanwhile, by an attempt at a later micro-batch.
                continue
        raise damage or self._removed(reached.batch, late=late)

    def _removed(self, batch: int, *, late: bool) -> RunError:
        if late:
            # It must not ask anybody to remove a state that is intact.
            return RunError("this attempt came too late: later micro-batches have ended, and its objects were removed")
        return RunError(
            f"the state in {self._where} is incomplete: micro-batch {batch} has ended there, and the object with its input is not "
            f"there any more. {_START_AGAIN}"
        )

    def _not_ended(self, batch: int, outcomes: list[Name], *, late: bool) -> RunError:
        """Why the state has nothing to go on from with this micro-batch."""
        if late:
            return self._removed(batch - 1, late=True)
        if any(each.attempt.batch >= batch for each in outcomes):
            return SetBack(
                f"Spark goes on with micro-batch {batch}, and the state in {self._where} has only later ones"
            )
        last = _newest(outcomes)
        ends = "has no micro-batch that has ended" if last == BEFORE else f"ends with micro-batch {last}"
        return RunError(
            f"the state in {self._where} {ends}, and Spark goes on with {batch}: no task has ended micro-batch {last + 1} there, or "
            f"the object that says so was removed. A sink has to evaluate all rows of each micro-batch. {_START_AGAIN}"
        )

    # --- saving ---------------------------------------------------------------------------------------------------

    def save(
        self,
        attempt: Attempt,
        start: Start,
        data: bytes,
        take_state: Callable[[], State],
        counts: Mapping[str, Any],
        retained: int = 0,
    ) -> Saved | None:
        """Save the input of a batch and its outcome, and from time to time a snapshot of the state that `take_state` returns.

        `retained`: the states after so many micro-batches before this one can be reached afterwards, at least.
        None: another attempt at this execution was faster, with another input. Then `start` again, with that one.
        OtherRows if it is unknown which one counts.
        """
        id_ = _digest(start.reached.id, data)
        reached = Reached(attempt.batch, id_)
        outcomes = _of_kind(self._names(), "outcome")
        late = attempt.is_late(outcomes)
        settled = self._settled(attempt, outcomes)
        if settled is None and not late:
            self._put(Name(attempt, id_, "input"), start.reached.id.encode(), data)
            names = self._names()
            settled = self._settled(attempt, _of_kind(names, "outcome"))
            if settled is None:
                self._check_others(attempt, _of_kind(names, "input"))
                before = start.since
                after = Since(before.snapshot, before.size, before.inputs + len(data))
                if _outweighs(after.inputs, before.size):
                    after = Since(reached, self._put_snapshot(Name(attempt, id_, "snapshot"), take_state()))
                outcome = {"before": asdict(before), "after": asdict(after), "counts": counts}
                self._put(Name(attempt, id_, "outcome"), json.dumps(outcome).encode())
                if after.snapshot == reached:
                    snapshots = _of_kind(names, "snapshot")
                    far = _newest(each for each in snapshots if each.attempt.batch <= attempt.batch - retained)
                    self._drop_before(min(before.snapshot.batch, far))
        if settled is not None and settled != id_:
            return None
        return Saved(str(reached), late)

    def _settled(self, attempt: Attempt, outcomes: list[Name]) -> str | None:
        """The id of the state after this execution, if another attempt has settled it."""
        mine = (each for each in outcomes if each.attempt == attempt and self._outcome(each) is not None)
        return next((each.id for each in mine), None)

    def _check_others(self, attempt: Attempt, inputs: list[Name]) -> None:
        if len({each.id for each in inputs if each.attempt == attempt}) > 1:
            raise OtherRows(
                f"two attempts at micro-batch {attempt.batch} have got different rows, and neither has ended, so it is "
                "unknown whose results count: the data frame gives other rows when it is read again. A later attempt, or "
                "the query once it is started again, goes on from the micro-batch before"
            )

    def _put_snapshot(self, name: Name, state: State) -> int:
        data = to_bytes(state)
        self._store.put(str(name), data)
        return len(data)

    def _drop_before(self, batch: int) -> None:
        """Remove everything that is older than the snapshot before the last: only the newest batch is ever run again."""
        # The inputs after a snapshot begin with the next batch.
        old = [each for each in self._names() if each.attempt.batch < batch + (each.kind == "input")]
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(self._store.delete, map(str, old)))

    # --- objects --------------------------------------------------------------------------------------------------

    def _names(self) -> list[Name]:
        """The names of all objects, the newest first."""
        return sorted(
            _parsed(self._store.names()), key=lambda each: (each.attempt.batch, each.attempt.age), reverse=True
        )

    def _put(self, name: Name, *blocks: bytes) -> None:
        self._store.put(str(name), _with_digest(*blocks))

    def _get(self, name: Name) -> bytes:
        """The content of an input or an outcome. DamagedFile if its digest does not fit, StorageError if it is not there."""
        raw = self._store.get(str(name))
        found = raw[_DIGEST:]
        if len(raw) < _DIGEST or _with_digest(found)[:_DIGEST] != raw[:_DIGEST]:
            raise DamagedFile(f"the object {self._where}/{name} is damaged: its digest is wrong. {_START_AGAIN}")
        return found

    def _outcome(self, name: Name) -> dict[str, Any] | None:
        """An outcome; None if it is damaged, as the part of an upload, or has just been removed."""
        try:
            found: dict[str, Any] = json.loads(self._get(name))
        except (DamagedFile, StorageError):
            return None
        for key in ("before", "after"):
            found[key] = Since(**{**found[key], "snapshot": Reached(**found[key]["snapshot"])})
        return found

    def _snapshot(self, name: Name) -> dict[str, NamedValues] | None:
        """A snapshot; None if it is damaged, or has just been removed."""
        try:
            data = self._store.get(str(name))
        except StorageError:
            return None
        try:
            return from_bytes(data)
        except StorageError:
            return None

    def counts(self) -> Mapping[str, Any] | None:
        """The partition's counts after the last batch."""
        outcomes = _of_kind(self._names(), "outcome")
        for name in sorted(outcomes, key=lambda each: (each.attempt.age, each.attempt.batch), reverse=True):
            if (outcome := self._outcome(name)) is not None:
                counts: Mapping[str, Any] = outcome["counts"]
                return counts
        return None


def _parsed(names: Iterable[str]) -> Iterator[Name]:
    for match in map(_NAME.fullmatch, names):
        if match is not None:
            batch, run, execution, number = map(int, match.groups()[:4])
            yield Name(Attempt(batch, run, execution, number), match[5], match[6])


def _newest(names: Iterable[Name]) -> int:
    """The last micro-batch; BEFORE if there is none."""
    return max((each.attempt.batch for each in names), default=BEFORE)


def _of_kind(names: list[Name], kind: str) -> list[Name]:
    return [each for each in names if each.kind == kind]


def _digest(before: str, data: bytes) -> str:
    found = hashlib.blake2b(before.encode(), digest_size=_ID // 2)
    found.update(data)
    return found.hexdigest()


def _outweighs(inputs: int, snapshot: int) -> bool:
    """Is it time for a snapshot, given the bytes of inputs since the last one and its own size?"""
    return inputs > max(_LEAST, snapshot)


def _with_digest(*blocks: bytes) -> bytes:
    found = hashlib.blake2b(digest_size=_DIGEST)
    for block in blocks:
        found.update(block)
    return b"".join((found.digest(), *blocks))
