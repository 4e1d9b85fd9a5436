"""Conformance tests for connectors: whoever writes a source or a sink runs these on it, under pytest or by themselves.

They raise AssertionError with a sentence about the rule that is broken. The rules are those of `cqels_py/sources/protocol.py` and
`cqels_py/sinks/protocol.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.engine.url_sinks import close_sink
from cqels_py.errors import DataError
from cqels_py.formats.triples import Triple, triple_texts
from cqels_py.mappings.context import RowMap
from cqels_py.sinks.protocol import Sink, SinkConnector, SinkOpening
from cqels_py.sources.protocol import Connector, Opening, Source

STREAM = "http://example.org/stream"
"""The stream of the sources under test."""

NUMBER = 3
_QUIET = 0.5
"""Seconds without an element after which a source that does not end is taken to have no more."""

Element = tuple[int, frozenset[tuple[str, ...]]]


def check_source(
    connector: Callable[[], Connector],
    expected: Iterable[tuple[int, Iterable[Triple]]],
    *,
    resumes: bool = False,
    malformed: Callable[[], Connector] | None = None,
    map: RowMap | None = None,
    seconds: float = 30,
) -> None:
    """Check that a source keeps order, positions, restarts and errors as the protocol says.

    `connector` makes the connector, anew each time, of a source that has the `expected` elements (microseconds and triples), in
    this order, and no others. `resumes`: the other side remembers the last commit, as brokers do, and begins behind it; others
    begin with their first element whenever they are opened. `malformed` makes one whose source has these elements, too, and
    malformed input among them. `map`: that of the stream. `seconds`: how long to wait for the elements.
    """
    elements = [(moment, _shown(triple_texts(triples))) for moment, triples in expected]
    first = _Reading(connector(), seconds, map)
    first.check(elements, "the first reading")
    if resumes or first.positions[-1:] not in ([], [None]):
        _Reading(connector(), seconds, map).check(elements, "a second reading, nothing of the first being committed,")
    if resumes:
        begun = _Reading(connector(), seconds, map, commit_after=1)
        begun.check(elements, "a reading that commits its first batch")
        _Reading(connector(), seconds, map, commit_after=0).check(
            elements[begun.committed :], "a reading behind a commit", may_repeat=elements
        )
        _Reading(connector(), seconds, map).check([], "a reading behind the last commit", may_repeat=elements[-1:])
    if malformed is not None:
        _check_errors(malformed, elements, seconds, map)


def _check_errors(
    malformed: Callable[[], Connector], elements: Sequence[Element], seconds: float, map: RowMap | None
) -> None:
    skipping = _Reading(malformed(), seconds, map, on_error="skip")
    skipping.check(elements, 'with on_error="skip", a reading')
    assert skipping.reported, 'with on_error="skip", malformed input is given to opening.report, and nothing was'
    try:
        _Reading(malformed(), seconds, map)
    except DataError:
        return
    raise AssertionError('with on_error="stop", malformed input raises a DataError, and nothing was raised')


class _Reading:
    """A source from its opening to its end. `commit_after`: so many batches are committed each; 0: all of them."""

    def __init__(
        self,
        connector: Connector,
        seconds: float,
        map: RowMap | None,
        on_error: str = "stop",
        commit_after: int | None = None,
    ) -> None:
        self.reported: list[DataError] = []
        self.elements: list[Element] = []
        self.positions: list[object] = []
        self.committed = 0
        self._seconds = seconds
        self._commit_after = commit_after
        self._dictionary = Dictionary()
        assert isinstance(connector, Connector), f"{connector!r} has no method open"
        self._source: Source = connector.open(
            Opening(
                stream=STREAM,
                number=NUMBER,
                dictionary=self._dictionary,
                on_error=on_error,
                report=self.reported.append,
                map=map,
            )
        )
        try:
            self._read()
        finally:
            self._source.close()

    def _read(self) -> None:
        until = time.monotonic() + self._seconds
        quiet_since: float | None = None
        batches = 0
        while time.monotonic() < until:
            assert isinstance(self._source.idle, bool), "idle is True or False"
            batch = self._source.poll()
            if batch is None:
                return
            assert isinstance(batch, ElementBatch), f"poll returns an ElementBatch or None, not {batch!r}"
            if not len(batch):
                quiet_since = quiet_since or time.monotonic()
                if self.elements and time.monotonic() - quiet_since > _QUIET:
                    return
                if time.monotonic() - quiet_since > max(_QUIET, self._seconds / 10):
                    return
                time.sleep(0.001)
                continue
            quiet_since = None
            batches += 1
            self._take(batch)
            if self._commit_after is not None and batches <= (self._commit_after or batches):
                self._source.commit(self.positions[-1])
                self.committed = len(self.elements)
        raise AssertionError(f"the source neither ended nor paused within {self._seconds} seconds")

    def _take(self, batch: ElementBatch) -> None:
        assert (batch.stream == NUMBER).all(), "the elements of a batch have the number of the opening as their stream"
        bounds = batch.first.tolist()
        columns = [self._dictionary.decode(column) for column in (batch.subject, batch.predicate, batch.object)]
        for e, moment in enumerate(batch.time.tolist()):
            triples = zip(*(column[bounds[e] : bounds[e + 1]] for column in columns), strict=True)
            self.elements.append((moment, _shown(term.encode() for triple in triples for term in triple if term)))
        position = self._source.position()
        assert _is_plain(position), f"a position is None, an integer, a text or a tuple of such, not {position!r}"
        assert position == self._source.position(), "position returns the same until the next poll"
        self.positions.append(position)

    def check(self, expected: Sequence[Element], what: str, may_repeat: Sequence[Element] = ()) -> None:
        """AssertionError for other elements; some of `may_repeat` may come again before them (at least once)."""
        found = self.elements
        if may_repeat and len(found) > len(expected):
            repeated = found[: len(found) - len(expected)]
            assert set(repeated) <= set(may_repeat), f"{what} gave elements that there are not: {repeated}"
            found = found[len(repeated) :]
        for place, (got, wanted) in enumerate(zip(found, expected, strict=False), 1):
            assert got == wanted, f"{what} gave as element {place} {got}, and not {wanted}"
        assert len(found) == len(expected), f"{what} gave {len(found)} elements, and not {len(expected)}"


def _is_plain(position: object) -> bool:
    return (
        position is None
        or isinstance(position, int | str)
        or (isinstance(position, tuple | list) and all(map(_is_plain, position)))
        or (
            isinstance(position, dict)
            and all(isinstance(key, str) and _is_plain(value) for key, value in position.items())
        )
    )


def _shown(texts: Iterable[bytes]) -> frozenset[tuple[str, ...]]:
    """Triples as a set of three texts each. Blank nodes have no names of their own."""
    terms = ["_:" if text.startswith(b"_:") else text.decode() for text in texts]
    return frozenset(tuple(terms[at : at + 3]) for at in range(0, len(terms), 3))


TERMS: tuple[str | None, ...] = (
    "<http://example.org/a>",
    '"21"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"a \\"quoted\\" text, of\\ntwo lines;\ta tab and a \\\\"',
    '"größer"@de',
    '""',
    "<http://example.org/b>",
    None,
)
"""Terms that `check_sink` writes, in N-Triples syntax; None: unbound."""


@dataclass
class _Results:
    """The results that are written: pairs of terms, each different from the others."""

    dictionary: Dictionary
    rows: list[tuple[str | None, str | None]] = field(default_factory=list)

    def batch(self, rows: Sequence[tuple[str | None, str | None]], signs: Sequence[int]) -> ResultBatch:
        columns = tuple(
            np.array([0 if term is None else self.dictionary.encode_one(term) for term in column], np.int64)
            for column in zip(*rows, strict=True)
        )
        times = 1_700_000_000_000_000 + np.arange(len(rows), dtype=np.int64)
        return ResultBatch(("a", "b"), times, np.array(signs, np.int8), columns)


def check_sink(
    connector: Callable[[], SinkConnector],
    rows: Callable[[], Sequence[tuple[Any, Any]]],
    *,
    shown: Callable[[str | None], object] = lambda term: term,
    exactly_once: bool = False,
) -> None:
    """Check that a sink keeps order, visibility, commits and restarts as the protocol says.

    `connector` makes the connector, anew each time, of a sink that is empty at first. `rows` reads the other side: the pairs of
    values of the results' variables ?a and ?b that are visible there, in order (of a sink with `changelog`, in any order). `shown`:
    how a term in N-Triples syntax, or None for unbound, looks there. `exactly_once`: the sink remembers the number of the last
    result, and leaves out results that a continued run gives it again.
    """
    made = [(first, second) for first in TERMS for second in TERMS if (first, second) != (None, None)]
    early, late = made[:20], made[20:]
    retracts = connector().changelog
    writing = _Writing(connector, retracts)
    writing.write(early)
    writing.sink.flush()
    _compare(rows(), early, shown, retracts, "after flush")
    writing.sink.flush()
    _compare(rows(), early, shown, retracts, "after a flush with nothing to write")
    writing.write(late)
    position = writing.sink.commit()
    assert _is_plain(position), f"commit returns None, an integer, a text or a tuple of such, not {position!r}"
    _compare(rows(), made, shown, retracts, "after commit")
    held = list(made)
    if retracts:
        writing.write(late, sign=-1)
        writing.write(early[:2], sign=-1)
        writing.write(early[:1])
        writing.sink.flush()
        held = [*early[2:], *early[:1]]
        _compare(rows(), held, shown, retracts, "after retractions")
    count = writing.count
    close_sink(writing.sink)
    close_sink(writing.sink)
    _compare(rows(), held, shown, retracts, "after close")
    if exactly_once:
        _check_continued(connector, rows, shown, held, retracts, count)


def _check_continued(
    connector: Callable[[], SinkConnector],
    rows: Callable[[], Sequence[tuple[Any, Any]]],
    shown: Callable[[str | None], object],
    held: Sequence[tuple[str | None, str | None]],
    retracts: bool,
    count: int,
) -> None:
    """A run that continues gives its last results again."""
    again, new = [(TERMS[0], TERMS[1])] * 3, [(TERMS[5], TERMS[3]), (TERMS[5], TERMS[5])]
    writing = _Writing(connector, retracts, written=count - len(again))
    writing.write([*again, *new])
    writing.sink.commit()
    close_sink(writing.sink)
    _compare(rows(), [*held, *new], shown, retracts, "after a restart that gave three results again")


class _Writing:
    """A sink from its opening on, and the number of results that it got."""

    def __init__(self, connector: Callable[[], SinkConnector], changelog: bool, written: int | None = None) -> None:
        dictionary = Dictionary()
        made = connector()
        assert isinstance(made, SinkConnector), f"{made!r} has not the method open and the property changelog"
        self.sink: Sink = made.open(
            SinkOpening(
                dictionary=dictionary, form="SELECT", variables=("a", "b"), changelog=changelog, written=written
            )
        )
        self.count = written or 0
        self._results = _Results(dictionary)

    def write(self, rows: Sequence[tuple[str | None, str | None]], sign: int = 1) -> None:
        self.sink.write(self._results.batch(rows, [sign] * len(rows)))
        self.count += len(rows)


def _compare(
    found: Sequence[tuple[Any, Any]],
    expected: Sequence[tuple[str | None, str | None]],
    shown: Callable[[str | None], object],
    any_order: bool,
    when: str,
) -> None:
    wanted = [(shown(first), shown(second)) for first, second in expected]
    got = [tuple(row) for row in found]
    if any_order:
        missing, extra = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
        assert not missing and not extra, (
            f"{when} these rows are missing: {[*missing]}, and these should not be there: {[*extra]}"
        )
        return
    for place, (row, right) in enumerate(zip(got, wanted, strict=False), 1):
        assert row == right, f"{when} row {place} is {row}, and not {right}"
    assert len(got) == len(wanted), f"{when} there are {len(got)} rows, and not {len(wanted)}"
