"""Partitioning: from rows of a data frame to the input of each partition of the state.

A partition gets the triples that it owns, as ids, and the texts of their terms. Where windows count elements, and for event
patterns and rules, it gets the time and stream of every element, so that windows, expiries and boundaries happen at the same ticks
as on one machine. Elsewhere it gets its own elements, the first element of each of their times, where windows let expire, and the
first and the last one of all, which say where time begins and how far it has come; the first partition also gets the times of the
others, to count them. Where another stage combines ticks of several partitions, it gets all elements of the times of its own, as
the n-th ticks of an instant are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, empty_elements, take_elements
from cqels_py.dataflow.ownership import owner_of, strides
from cqels_py.dictionary import Dictionary
from cqels_py.distribution.heavy_values import Test, tests_of
from cqels_py.distribution.rule_keys import fact_patterns
from cqels_py.distribution.stages import PlannedStage
from cqels_py.errors import RunError
from cqels_py.plan.nodes import GRAPH, PatternText, Plan, is_variable
from cqels_py.plan.traverse import scans_of, states_of
from cqels_py.runners.spark.frequent import Sampled, Watched, watched_of
from cqels_py.runners.spark.frequent import sampled as values_sampled
from cqels_py.runners.spark.packing import packed, unpacked
from cqels_py.runners.spark.watermarks import LatestTimes
from cqels_py.state.named_values import Array, Plain
from cqels_py.terms.layout import TAG_IRI, TAG_LITERAL, TAG_SHIFT

_OTHERS, _REACHED, _UNTIL, _BEGINS, _SAMPLED = "others", "reached", "until", "begins", "sampled"
EVERYWHERE = 0
"""The partition of all triples when the state cannot be divided."""


@dataclass(frozen=True, slots=True)
class Route:
    """Triples of `stream` that match the constants (0: a variable) belong to some cells of the hypercube. A fourth
    constant is that of the graph; the triples then have to be in one.

    `axes`: a position of the triple, the share of the variable there, and the stride of its axis in a cell's number.
    `copies`: the offsets of the cells along the axes of other variables, for each of which there is a copy. `tests`: a position, an
    id, and whether it must stand there or must not. `first`: the number of the first cell.
    """

    stream: int
    constants: tuple[int, ...]
    axes: tuple[tuple[int, int, int], ...]
    copies: tuple[int, ...] = (0,)
    tests: tuple[tuple[int, int, bool], ...] = ()
    first: int = 0


@dataclass(frozen=True, slots=True)
class Routing:
    """How triples find their partitions. No routes: all go to one partition. `own_elements`: a partition gets its own elements,
    the first ones of their times (`instants`: all), and the first and last of all. `watched`: where values may be frequent;
    `cells`:
    parts that are not those of heavy values."""

    parts: int
    routes: tuple[Route, ...]
    own_elements: bool = False
    instants: bool = False
    watched: tuple[Watched, ...] = ()
    cells: int = 1

    def owners(self, batch: ElementBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The partitions of each triple: positions and partitions, each pair once, ordered by partition, then position."""
        if not self.routes:
            return np.arange(batch.triples), np.full(batch.triples, EVERYWHERE, np.int64)
        columns = (
            batch.positions
            if batch.graph is not None
            else (*batch.positions[:GRAPH], np.zeros(batch.triples, np.int64))
        )
        stream = np.repeat(batch.stream, np.diff(batch.first))
        pairs = []
        for route in self.routes:
            matching = stream == route.stream
            for column, constant in zip(columns, route.constants, strict=False):
                if constant:
                    matching &= column == constant
            if len(route.constants) > GRAPH:
                matching &= columns[GRAPH] != 0
            for position, id_, wanted in route.tests:
                matching &= (columns[position] == id_) == wanted
            rows = np.flatnonzero(matching)
            cells = np.full(len(rows), route.first)
            for position, share, stride in route.axes:
                cells += owner_of(columns[position][rows], share) * stride
            pairs += [(cells + copy) * batch.triples + rows for copy in route.copies]
        # numpy.unique takes a hundred times as long.
        chosen = np.sort(np.concatenate(pairs))
        if len(pairs) > 1:
            chosen = chosen[np.diff(chosen, prepend=-1) != 0]
        return chosen % max(batch.triples, 1), chosen // max(batch.triples, 1)


def routing_of(plan: Plan, stage: PlannedStage, dictionary: Dictionary) -> Routing:
    """The routes to the parts of a plan's first stage; without any, all is in one part."""
    if stage.shares is None or not stage.shares.axes:
        return Routing(stage.parts, ())
    cubes = [_Cube(stage.shares.axes, tuple(tests_of(stage.blocks, None)), 0)]
    for number, block in enumerate(stage.blocks):
        cubes.append(_Cube(block.shares.axes, tuple(tests_of(stage.blocks, number)), block.first))
    facts = fact_patterns(plan.rules, states_of(stage.root), [name for name, _ in stage.shares.axes])
    routes = [
        route
        for cube in cubes
        for route in (
            *(
                cube.route(plan.windows[scan.window].stream, scan.pattern, _first_positions(scan.pattern), dictionary)
                for scan in scans_of(stage.root)
            ),
            *(cube.route(each.stream, each.pattern, dict(each.keys), dictionary) for each in facts),
        )
    ]
    watched = watched_of(plan, stage, dictionary)
    return Routing(stage.parts, tuple(dict.fromkeys(routes)), watched=watched, cells=stage.shares.cells)


def _first_positions(pattern: PatternText) -> dict[str, int]:
    """By variable."""
    return {text[1:]: place for place, text in reversed([*enumerate(pattern)]) if is_variable(text)}


@dataclass(frozen=True, slots=True)
class _Cube:
    """Parts from the number `first` on, which divide by `axes` the mappings that pass the tests."""

    axes: tuple[tuple[str, int], ...]
    tests: tuple[Test, ...]
    first: int

    def route(self, stream: int, pattern: PatternText, positions: Mapping[str, int], dictionary: Dictionary) -> Route:
        """`positions`: those of variables."""
        constants = [0 if is_variable(text) else dictionary.encode_one(text) for text in pattern]
        mine, others = [], []
        for (name, share), stride in zip(self.axes, strides(self.axes), strict=True):
            if name in positions:
                mine.append((positions[name], share, stride))
            else:
                others.append([place * stride for place in range(share)])
        tests = tuple((positions[name], id_, wanted) for name, id_, wanted in self.tests if name in positions)
        copies = tuple(map(sum, product(*others)))
        return Route(stream, tuple(constants), tuple(mine), copies, tests, self.first)


@dataclass(frozen=True, slots=True)
class Promise:
    """No element before `time` will come. `begins`: time begins there, if there was no element yet."""

    time: int
    begins: bool

    @staticmethod
    def of_all(promises: Iterable[Promise | None]) -> Promise | None:
        """The common promise of several tasks.

        >>> Promise.of_all([Promise(7, False), None, Promise(5, True)])
        Promise(time=7, begins=True)
        """
        told = [each for each in promises if each is not None]
        return Promise(max(each.time for each in told), any(each.begins for each in told)) if told else None


@dataclass(frozen=True, slots=True)
class PartitionSlice:
    """The input of one partition from one task: all elements, or those that it needs; its own triples, and the texts of hashed
    terms.

    `needed`: triples that any partition gets, each once; `skipped`: malformed rows. Both are counted in one of the partitions, as
    are `others`, the times (n) of elements that it does not get. `promise`: of a clock, or of another query's time. `reached`: how
    far the task's elements go, where elements wait for others. `sampled`: values of all of the task's triples, for one of the
    partitions.
    """

    elements: ElementBatch
    ids: Ids
    texts: npt.NDArray[np.uint8]
    offsets: Ids
    needed: int = 0
    skipped: int = 0
    others: Ids | None = None
    promise: Promise | None = None
    reached: LatestTimes | None = None
    sampled: tuple[Sampled, ...] = ()

    def pack(self) -> bytes:
        elements: dict[str, Array | None] = {
            each.name: getattr(self.elements, each.name) for each in fields(self.elements)
        }
        terms: dict[str, Array | None] = {
            "ids": self.ids,
            "texts": self.texts,
            "offsets": self.offsets,
            _OTHERS: self.others,
            _REACHED: None if self.reached is None else self.reached.arrays(),
        }
        plain: dict[str, Plain] = {"needed": self.needed, "skipped": self.skipped}
        if self.promise is not None:
            plain |= {_UNTIL: self.promise.time, _BEGINS: self.promise.begins}
        if self.reached is not None:
            plain["now"] = self.reached.now
        if self.sampled:
            plain[_SAMPLED] = [each.plain() for each in self.sampled]
        return packed({**elements, **terms}, plain)

    @staticmethod
    def unpack(data: bytes) -> PartitionSlice:
        arrays, counts = unpacked(data)
        others, columns, now = arrays.pop(_OTHERS, None), arrays.pop(_REACHED, None), counts.pop("now", None)
        reached = None if columns is None else LatestTimes.from_arrays(columns, now)
        ids, texts, offsets = (arrays.pop(name) for name in ("ids", "texts", "offsets"))
        until, begins = counts.pop(_UNTIL, None), counts.pop(_BEGINS, True)
        promise = None if until is None else Promise(until, begins)
        sampled = tuple(map(Sampled.from_plain, counts.pop(_SAMPLED, [])))
        return PartitionSlice(
            ElementBatch(**arrays),
            ids,
            texts,
            offsets,
            **counts,
            others=others,
            promise=promise,
            reached=reached,
            sampled=sampled,
        )


def slices(
    batch: ElementBatch,
    routing: Routing,
    dictionary: Dictionary,
    skipped: int = 0,
    promise: Promise | None = None,
    reached: LatestTimes | None = None,
) -> list[PartitionSlice]:
    """The input of each partition. `skipped`: malformed rows that were left out; the others: see `PartitionSlice`."""
    rows, owners = routing.owners(batch)
    element = np.repeat(np.arange(len(batch)), np.diff(batch.first))
    cuts = np.searchsorted(owners, np.arange(routing.parts + 1))
    choice = _Choice.of(batch, routing) if routing.own_elements else None
    found = [
        _slice(batch, rows[cuts[part] : cuts[part + 1]], element, dictionary, choice) for part in range(routing.parts)
    ]
    needed = np.zeros(batch.triples, np.bool_)
    needed[rows] = True
    others = None
    if choice is not None:
        others = np.delete(batch.time, choice.elements(element[rows[: cuts[1]]]))
    found[0] = replace(found[0], needed=int(np.count_nonzero(needed)), skipped=skipped, others=others)
    found[0] = replace(found[0], sampled=tuple(values_sampled(batch, routing.watched, routing.cells, dictionary)))
    return [replace(each, promise=promise, reached=reached) for each in found]


def texts_of(ids: Ids, dictionary: Dictionary) -> tuple[Ids, npt.NDArray[np.uint8], Ids]:
    """The different ids whose terms are in the dictionary, and their texts, with the offsets of these."""
    tags = ids >> TAG_SHIFT
    ids = pc.unique(pa.array(ids[(tags == TAG_IRI) | (tags == TAG_LITERAL)])).to_numpy()
    return ids, *dictionary.decode_bytes(ids)


def learn(ids: Ids, texts: npt.NDArray[np.uint8], offsets: Ids, dictionary: Dictionary) -> None:
    """Insert terms into a partition's dictionary."""
    found = dictionary.encode_bytes(texts, offsets, np.zeros(len(ids), np.int64), existing=True)
    if not np.array_equal(found, ids):
        raise RunError("terms have other ids here than where they were encoded: are all workers of one version?")


def _slice(
    batch: ElementBatch, rows: Ids, element: Ids, dictionary: Dictionary, choice: _Choice | None
) -> PartitionSlice:
    """`rows`: the partition's triples; `element` that each triple of the batch is of. `choice`: None where it gets all elements."""
    numbers, time, stream = element[rows], batch.time, batch.stream
    if choice is not None:
        chosen = choice.elements(numbers)
        numbers, time, stream = np.searchsorted(chosen, numbers), time[chosen], stream[chosen]
    first = np.zeros(len(time) + 1, np.int64)
    np.cumsum(np.bincount(numbers, minlength=len(time)), out=first[1:])
    subject, predicate, object_ = batch.subject[rows], batch.predicate[rows], batch.object[rows]
    graph = None if batch.graph is None else batch.graph[rows]
    # Where triples are counted, one partition has all of them.
    counted = batch.counted if len(rows) == batch.triples else None
    mine = ElementBatch(time, stream, first, subject, predicate, object_, graph, counted)
    ids, texts, offsets = texts_of(np.concatenate(list(mine.live_ids())), dictionary)
    return PartitionSlice(mine, ids, texts, offsets)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The elements that a partition gets. `instant`: a number of each element's time; `first`: by instant the first element, None:
    all of its elements are needed; `ends`: the first and the last element by time."""

    instant: Ids
    first: Ids | None
    ends: Ids

    @staticmethod
    def of(batch: ElementBatch, routing: Routing) -> _Choice:
        _, first, instant = np.unique(batch.time, return_index=True, return_inverse=True)
        ends = [np.argmin(batch.time), np.argmax(batch.time)] if len(batch) else []
        return _Choice(instant, None if routing.instants else first, np.array(ends, np.int64))

    def elements(self, own: Ids) -> Ids:
        """The numbers of the elements for a partition with these elements of its own.

        An element lets expire whatever its time ends. If it came to the parts of its triples alone, a row that leaves and comes
        back at an instant would be two changes in one partition, and none in another.
        """
        if self.first is not None:
            return np.unique(np.concatenate([own, self.first[self.instant[own]], self.ends]))
        mine = np.zeros(len(self.instant), np.bool_)
        mine[self.instant[own]] = True
        found = mine[self.instant]
        found[self.ends] = True
        return np.flatnonzero(found)


def combine(parts: Sequence[PartitionSlice], dictionary: Dictionary, *, in_order: bool = False) -> ElementBatch:
    """The elements of all tasks in order of time (then of tasks), with their terms in the partition's dictionary.

    `in_order`: they stay in order of arrival.
    """
    for each in parts:
        learn(each.ids, each.texts, each.offsets, dictionary)
    batches = [each.elements for each in parts if len(each.elements)]
    if not batches:
        return empty_elements()
    together = concatenate_elements(batches)
    if in_order:
        return together
    return take_elements(together, np.argsort(together.time, kind="stable"))
