"""N-Triples and N-Quads by way of the tokenizer kernel: statements, and the elements that they form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import empty_elements
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, Place
from cqels_py.formats.input_wait import InputWait
from cqels_py.formats.lines import Malformed
from cqels_py.formats.marks import Marks
from cqels_py.formats.nesting import Nesting
from cqels_py.formats.omissions import Omissions, logged_omissions
from cqels_py.formats.statements import statements
from cqels_py.formats.times import EXPECTED, GENERATED_AT, NO_TIME, times_of_ids
from cqels_py.formats.turtle_syntax import beyond_statements
from cqels_py.iris import check_names_of
from cqels_py.kernels.text import tokenizer as kernel
from cqels_py.kernels.text.nesting import rescope
from cqels_py.kernels.values import dictionary as tables
from cqels_py.terms.canonical import canonical
from cqels_py.terms.versions import refusal

TIME_OF_LINE = "<urn:cqels:time>"
"""The property that gives the time of a line's document, if the document's graphs do not."""

ELEMENT_BITS = 40
"""The scope of an element's blank nodes is the document number of its source, then the element's number in this many bits."""

_ROWS = 1 << 16
_TERM = r'(<[^<>]*>|_:[^\s<>"]+?|"(?:[^"\\\n\r]|\\.)*+"(?:[ \t]*@[A-Za-z0-9-]+|[ \t]*\^\^[ \t]*<[^<>]*>)?)'
_STATEMENT = re.compile(rf"[ \t]*{_TERM}[ \t]*{_TERM}[ \t]*{_TERM}[ \t]*(?:{_TERM}[ \t]*)?\.[ \t]*(?:#.*)?\r?")

SPLIT = (
    "triples of an element that was complete, because nothing came for a time; a longer --flush-after waits for them"
)
_NOT_WELL_FORMED = "this term is not well-formed"
_MESSAGES = {
    kernel.AS_SUBJECT: "expected the subject: <iri> or _:label",
    kernel.AS_PREDICATE: "expected the predicate: <iri>",
    kernel.AS_OBJECT: "expected the object: <iri>, _:label or a literal in quotes",
    kernel.AS_GRAPH: "expected the graph, or '.' at the end of the statement",
    kernel.AS_POINT: "expected '.' at the end of the statement",
    kernel.AS_END: "expected the end of the line after '.'",
    kernel.AS_TERM: _NOT_WELL_FORMED,
    kernel.AS_TIME: 'a triple of the default graph gives an element\'s time, <graph> {predicate} "…", or is about the graph of the '
    "current element, or of a later one whose time stands before it",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How statements become elements.

    `form`: kernel.BY_SUBJECT, BY_GRAPH or BY_LINE. `graphs`: whether the names of elements' graphs are needed. `time_predicate`:
    N-Triples text, or None. `source`: its name in messages. `numbered`: whether line numbers of the text are meaningful. `wait`: of
    input that comes while it is read; an element that has begun is complete where that says so, and `on_split` gets its later
    triples. `per_element`: blank nodes belong to their elements, not to the source. `on_questionable_time`: called once with an
    integer time of a table that seems to be in another unit. `arrival`: the time, in microseconds, of elements that have none; None:
    these are malformed. `marks`: where the text begins, and from where on it can be read by others. `scope`: that of blank nodes, or
    the first of those of elements; None: a new one of the dictionary. `omissions`: is told elements without triples.
    """

    form: int
    stream: int
    time_predicate: str | None
    source: str
    numbered: bool = True
    per_element: bool = False
    graphs: bool = False
    on_questionable_time: Callable[[int], object] | None = None
    wait: InputWait | None = None
    on_split: Malformed | None = None
    arrival: int | None = None
    marks: Marks | None = None
    scope: int | None = None
    omissions: Omissions = field(default_factory=logged_omissions)


class Tokenizer:
    """Feeds text to the kernel, and handles the statements that stop it."""

    def __init__(
        self, dictionary: Dictionary, form: int, graphs: bool, scope: int, source: str, malformed: Malformed
    ) -> None:
        self._dictionary = dictionary
        self._malformed = malformed
        self._source = source
        self.state = np.zeros(kernel.STATE_CELLS, np.int64)
        self.state[[kernel.FORM, kernel.GRAPHS, kernel.LINE_STEP]] = form, graphs, 1
        self.state[kernel.DOCUMENT] = scope
        self._scratch = np.zeros((kernel.SCRATCH_ROWS, 4), np.int64)
        self.declared = np.zeros(kernel.DECLARED_CELLS << 10, np.int64)
        self.pending = np.zeros((kernel.PENDING_ROWS, 1 << 6), np.int64)
        self.rows = np.empty((4, _ROWS), np.int64)
        self.elements = np.empty((3, _ROWS), np.int64)
        self.ahead = ""

    def feed(self, text: bytes, line: int | None = None) -> Iterator[None]:
        """Scan whole lines of UTF-8, the first with number `line`. Yields when `rows` are full; the caller then empties
        them.
        """
        if line is not None:
            self.state[kernel.LINE] = line
        data = np.frombuffer(text, np.uint8)
        at = 0
        while True:
            at, status = self._scan(data, at)
            if status == tables.DONE:
                return
            if status == kernel.ROWS_FULL:
                yield
                continue
            end = text.find(b"\n", at)
            end = len(text) if end < 0 else end
            if status == kernel.BAD_LINE:
                self._report(text, at, end, _MESSAGES[int(self.state[kernel.EXPECTED])].format(predicate=self.ahead))
            else:
                while not self._scan_slowly(text, at, end):
                    yield
            at = end

    def _scan(self, data: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
        """Scan until something happens that this function cannot handle."""
        known = self._dictionary
        while True:
            at, status = kernel.scan(
                data, at, known.shift, self.state, self._scratch, known.table, known.arena, known.meta,
                self.declared, self.pending, self.rows, self.elements,
            )  # fmt: skip
            if status in (tables.TABLE_FULL, tables.ARENA_FULL):
                known.grow(status, int(self.state[kernel.TERM_END] - self.state[kernel.TERM_START]))
            elif status == kernel.DECLARED_FULL:
                larger = np.zeros(2 * len(self.declared), np.int64)
                kernel.declare_all(self.declared, larger)
                self.declared = larger
            elif status == kernel.PENDING_FULL:
                self.pending = np.concatenate([self.pending, np.zeros_like(self.pending)], axis=1)
            elif status == tables.COLLISION:
                self._give(data)
            else:
                return at, status

    def _give(self, data: npt.NDArray[np.uint8]) -> None:
        """Give the kernel the overflow id of a term whose hash collides with that of another term."""
        start, end, identifier = self.state[[kernel.TERM_START, kernel.TERM_END, kernel.TERM_ID]].tolist()
        overflow = self._dictionary.resolve_collision(data[start:end].tobytes(), identifier)
        cell = kernel.GIVEN + 1 + 3 * int(self.state[kernel.GIVEN])
        self.state[cell : cell + 3] = start, end, overflow
        self.state[kernel.GIVEN] += 1

    def _scan_slowly(self, text: bytes, at: int, end: int) -> bool:
        """Scan a line with escapes: in canonical form, the kernel can read it. False if `rows` are full; then try again."""
        self.state[kernel.GIVEN] = 0
        line = text[at:end].decode()
        match = _STATEMENT.fullmatch(line)
        if match is None:
            self._report(text, at, end, "expected a statement on a line of its own: subject predicate object .")
            return True
        try:
            plain = " ".join(canonical(term) for term in match.groups() if term is not None) + " ."
        except DataError:
            self._report_term(text, at, end, match)
            return True
        _, status = self._scan(np.frombuffer(plain.encode(), np.uint8), 0)
        if status == tables.NOT_WRITTEN_SO:
            self._report_term(text, at, end, match)
        if status == kernel.BAD_LINE:
            self._report(text, at, end, _MESSAGES[int(self.state[kernel.EXPECTED])].format(predicate=self.ahead), at)
        return bool(status != kernel.ROWS_FULL)

    def _report_term(self, text: bytes, at: int, end: int, statement: re.Match[str]) -> None:
        """Report the first term of a statement that is none, or has an IRI or a language tag that is none."""
        for k, term in enumerate(statement.groups(), 1):
            try:
                check_names_of(canonical(term or ""))
            except DataError as error:
                offset = at + len(statement.string[: statement.start(k)].encode())
                self._report(text, at, end, error.message, offset)
                return

    def _report(self, text: bytes, at: int, end: int, message: str, offset: int | None = None) -> None:
        """Report the malformed statement that starts at `at`; its column is that of `offset`, or where the kernel stopped."""
        self.state[kernel.GIVEN] = 0
        offset = int(self.state[kernel.OFFSET]) if offset is None else offset
        newer = beyond_statements(text[at:end])
        refused = None if newer is None else refusal(text[at + newer : end].decode("utf-8", "replace"))
        if newer is not None:
            offset = at + newer
        start = text.rfind(b"\n", 0, at) + 1
        column = len(text[start:offset].decode("utf-8", "replace")) + 1
        found = text[offset : min(end, offset + 40)].decode("utf-8", "replace").strip()
        if refused is not None:
            message, shown = refused, ""
        elif message == _NOT_WELL_FORMED:
            shown = f" here: {found!r}" if found else ": the line ends within it"
        else:
            shown = f", not {found!r}" if found else ", but the line ends"
        if self.state[kernel.LINE] > 0:
            place: Place | None = Place(int(self.state[kernel.LINE]), column, self._source)
        else:
            place = None
            message = f"{self._source}: {message}"
        self._malformed(DataError(message + shown, place).about(text[at:end].decode("utf-8", "replace").strip()))


class StatementCheck:
    """Judges N-Triples, or N-Quads where `graphs` may be named, of which another parser makes statements."""

    def __init__(self, dictionary: Dictionary, graphs: bool, source: str) -> None:
        self._tokenizer = Tokenizer(dictionary, kernel.NO_ELEMENTS, graphs, 0, source, _stop)

    def check(self, text: bytes) -> None:
        """DataError, with its place, for the first statement of UTF-8 that is malformed."""
        state = self._tokenizer.state
        state[kernel.ROWS] = 0
        for _ in self._tokenizer.feed(text, 1):
            state[kernel.ROWS] = 0


def _stop(error: DataError) -> None:
    raise error


def read_statements(
    blocks: Iterable[tuple[bytes, int]], dictionary: Dictionary, scope: int, source: str, malformed: Malformed
) -> Iterator[Ids]:
    """All statements as columns (4, n) of ids: subject, predicate, object, graph (0: the default graph)."""
    tokenizer = Tokenizer(dictionary, kernel.NO_ELEMENTS, True, scope, source, malformed)

    def found() -> Ids:
        count = int(tokenizer.state[kernel.ROWS])
        tokenizer.state[kernel.ROWS] = 0
        return tokenizer.rows[:, :count].copy()

    for text, line in blocks:
        for _ in tokenizer.feed(text, line):
            yield found()
    yield found()


def _graphs_first(columns: Ids, first: Ids) -> tuple[Ids, Ids | None]:
    """Elements' triples with those in a graph first; and for each element the number of triples that count."""
    if not columns[3].any():
        return columns, None
    outside = columns[3] == 0
    element = np.repeat(np.arange(len(first) - 1), np.diff(first))
    sizes = np.bincount(element[~outside], minlength=len(first) - 1)
    # An element whose triples are all in the default graph has no graph.
    counted = np.where(sizes > 0, sizes, np.diff(first))
    if counted.sum() == len(element):
        return columns, None
    return np.ascontiguousarray(columns[:, np.lexsort((outside, element))]), counted


class ElementReader:
    """Forms elements of statements, in batches. An element is delivered when the next one begins, or at the end."""

    def __init__(self, dictionary: Dictionary, reading: Reading, malformed: Malformed) -> None:
        self._dictionary = dictionary
        self._reading = reading
        self._malformed = malformed
        self._scope = dictionary.next_document() << ELEMENT_BITS if reading.scope is None else reading.scope
        self._tokenizer = Tokenizer(
            dictionary, reading.form, reading.form != kernel.BY_SUBJECT, self._scope, reading.source, malformed
        )
        self._tokenizer.state[kernel.NAMED] = reading.graphs
        self._nesting = Nesting() if reading.form == kernel.BY_SUBJECT else None
        self._delivered = np.empty(0, np.int64)
        self._flushed = False
        if reading.marks is not None:
            self._begin_at(reading.marks)
        self._set_predicates()

    def _begin_at(self, marks: Marks) -> None:
        """Begin where another reader was; rows that follow of an element which it has begun are passed over."""
        self._document = self._scope
        self._scope += marks.begin.scopes
        self._tokenizer.state[kernel.KEY] = marks.begin.key
        self._flushed = marks.begin.key != 0
        marks.now = self._mark

    def _mark(self) -> tuple[int, bool, int] | None:
        """Between two blocks: the key of the last element (0: it is closed), whether it is still to be delivered, and how many
        elements have had scopes of their own. None: more has begun.
        """
        state = self._tokenizer.state
        if self._nesting is not None or state[kernel.DECLARED] or state[kernel.ELEMENTS] > 1:
            return None
        return int(state[kernel.KEY]), bool(state[kernel.ELEMENTS]), self._scope - self._document

    def _set_predicates(self) -> None:
        asked = self._reading.time_predicate
        generated, inside, self._of_line = self._dictionary.encode([GENERATED_AT, asked, TIME_OF_LINE]).tolist()
        self._dictionary.pin(np.array([generated, inside, self._of_line], np.int64))
        self._tokenizer.state[[kernel.TIME_INSIDE, kernel.KNOWN_AHEAD]] = inside, generated
        self._tokenizer.ahead = asked or GENERATED_AT
        self.read_by(self._reading.form)

    def read_by(self, form: int) -> None:
        """How statements form elements from the next block on; documents, which are BY_LINE, may be BY_GRAPH too."""
        state = self._tokenizer.state
        by_time = state[kernel.TIME_INSIDE] or state[kernel.KNOWN_AHEAD]
        state[kernel.FORM] = form
        state[kernel.TIME_AHEAD] = self._of_line if form == kernel.BY_LINE else by_time

    def read(self, blocks: Iterable[tuple[bytes, int]], line_step: int = 1) -> Iterator[ElementBatch]:
        """The elements of blocks (text, number of the first line). `line_step` 0: the whole block is that line."""
        self._tokenizer.state[kernel.LINE_STEP] = line_step
        with self._dictionary.holding(self._held):
            try:
                for text, line in blocks:
                    if not text:
                        yield from self._pause()
                        continue
                    for _ in self._tokenizer.feed(text, line):
                        yield from self._take(last=False, room=True)
                    if self._reading.form == kernel.BY_LINE:
                        self._end_document()
                    yield from self._take(last=False)
                    self._scope += self._reading.form == kernel.BY_LINE
            except DataError:
                yield from self._take_before_error()
                raise
            yield from self._take(last=True)
            self._report_pending()

    def _pause(self) -> Iterator[ElementBatch]:
        """Nothing comes for now: the element that has begun, as soon as that completes it; otherwise an empty batch."""
        tokenizer, wait = self._tokenizer, self._reading.wait
        count = int(tokenizer.state[kernel.ELEMENTS])
        if wait is not None and count and tokenizer.elements[kernel.TIME_ID, :count].any():
            if wait.flush_due:
                yield from self._take(last=True)
                # The key stays: rows that follow with the same key begin no element.
                self._flushed = tokenizer.state[kernel.KEY] != 0
            elif wait.flush_comes:
                return
        if wait is not None:
            open_ = tokenizer.state[[kernel.ROWS, kernel.ELEMENTS, kernel.DECLARED]].any()
            wait.at_rest = not (open_ or (self._nesting is not None and self._nesting.keeps))
        yield empty_elements()

    def _report_split(self) -> None:
        """Report the rows of an element that was complete already: they stand before those of the next element."""
        tokenizer = self._tokenizer
        rows, count = tokenizer.state[[kernel.ROWS, kernel.ELEMENTS]].tolist()
        split = int(tokenizer.elements[kernel.FIRST_ROW, 0]) if count else rows
        self._flushed = count == 0
        if not split:
            return
        text = statements([*tokenizer.rows[: 3 + self._reading.graphs, :split]], self._dictionary)
        self._keep_from(split, 0)
        if self._reading.on_split is not None:
            self._reading.on_split(DataError(f"{self._reading.source}: {SPLIT}").about(text))

    def _end_document(self) -> None:
        """Later triples belong to other elements, and times of graphs that did not come are not those of later graphs."""
        tokenizer = self._tokenizer
        tokenizer.state[kernel.KEY] = 0
        if tokenizer.state[kernel.DECLARED]:
            self._report_pending()
            tokenizer.declared = np.zeros_like(tokenizer.declared)
            tokenizer.state[kernel.DECLARED] = 0

    def _report_pending(self) -> None:
        """Report statements about graphs that did not follow; they are left out."""
        tokenizer = self._tokenizer
        graphs, place = kernel.left_pending(tokenizer.declared, tokenizer.pending)
        if graphs:
            name = self._dictionary.decode(tokenizer.pending[:1, place])[0]
            others = f", and {graphs - 1} other graphs" if graphs > 1 else ""
            message = f"triples of the default graph about {name}{others} belong to no element, as no triple of that graph follows"
            if self._reading.form == kernel.BY_LINE:
                place = Place(int(tokenizer.state[kernel.LINE]), None, self._reading.source)
                self._malformed(DataError(message, place))
            else:
                self._malformed(DataError(f"{self._reading.source}: {message}"))

    def _held(self) -> Iterable[Ids]:
        """Ids that the dictionary must keep although they were not passed on yet."""
        tokenizer = self._tokenizer
        rows, elements = tokenizer.state[[kernel.ROWS, kernel.ELEMENTS]].tolist()
        return (
            tokenizer.rows[:, :rows],
            tokenizer.elements[kernel.TIME_ID, :elements],
            tokenizer.declared[1 :: kernel.DECLARED_CELLS],
            tokenizer.pending[:3].reshape(-1),
            self._delivered,
            *(() if self._nesting is None else self._nesting.live_ids()),
        )

    def _take(self, last: bool, room: bool = False) -> Iterator[ElementBatch]:
        """Take the complete elements out of the tokenizer. With `room`, make room for more rows."""
        tokenizer = self._tokenizer
        if self._flushed:
            self._report_split()
        rows, count = tokenizer.state[[kernel.ROWS, kernel.ELEMENTS]].tolist()
        complete = count if last or tokenizer.state[kernel.KEY] == 0 else count - 1
        if complete > 0 or last:
            elements = tokenizer.elements[:, :complete].copy()
            cut = int(tokenizer.elements[kernel.FIRST_ROW, complete]) if complete < count else rows
            taken = tokenizer.rows[:, :cut].copy()
            self._keep_from(cut, complete)
            yield from self._deliver(elements, taken, last)
        elif room:
            tokenizer.rows = np.concatenate([tokenizer.rows, np.empty_like(tokenizer.rows)], axis=1)
            tokenizer.elements = np.concatenate([tokenizer.elements, np.empty_like(tokenizer.elements)], axis=1)

    def _deliver(self, elements: Ids, rows: Ids, last: bool) -> Iterator[ElementBatch]:
        """Deliver the complete elements, with nested blank nodes joined to them."""
        if self._nesting is None:
            yield from self._with_times(elements, rows, rows[0, elements[kernel.FIRST_ROW]])
            return
        tokenizer = self._tokenizer
        following = int(tokenizer.rows[0, 0]) if tokenizer.state[kernel.ROWS] > 0 else 0
        yield from self._with_times(*self._nesting.put_together(elements, rows, following, last))

    def _take_before_error(self) -> Iterator[ElementBatch]:
        """The complete elements. The current one is left out, because the malformed text may be part of it."""
        if self._nesting is None:
            yield from self._take(last=False)
            return
        tokenizer = self._tokenizer
        if self._flushed:
            self._report_split()
        rows, count = tokenizer.state[[kernel.ROWS, kernel.ELEMENTS]].tolist()
        runs, taken = tokenizer.elements[:, :count].copy(), tokenizer.rows[:, :rows].copy()
        self._keep_from(rows, count)
        yield from self._with_times(*self._nesting.before_an_error(runs, taken))

    def _keep_from(self, row: int, element: int) -> None:
        """Move the unfinished element to the front."""
        tokenizer = self._tokenizer
        rows, count = tokenizer.state[[kernel.ROWS, kernel.ELEMENTS]].tolist()
        tokenizer.rows[:, : rows - row] = tokenizer.rows[:, row:rows].copy()
        tokenizer.elements[:, : count - element] = tokenizer.elements[:, element:count].copy()
        tokenizer.elements[kernel.FIRST_ROW, : count - element] -= row
        tokenizer.state[[kernel.ROWS, kernel.ELEMENTS]] = rows - row, count - element

    def _with_times(self, elements: Ids, rows: Ids, subjects: Ids) -> Iterator[ElementBatch]:
        """The elements that have a time; the others are malformed. `subjects`: their names in messages."""
        self._delivered = rows
        first = np.append(elements[kernel.FIRST_ROW], rows.shape[1])
        if self._reading.form == kernel.BY_LINE:
            # The elements of a document have its blank nodes.
            rescope(rows, np.array((0, rows.shape[1])), self._scope)
        elif self._reading.per_element:
            rescope(rows, first, self._scope)
            self._scope += len(subjects)
        time = times_of_ids(elements[kernel.TIME_ID], self._dictionary)
        if self._reading.arrival is not None:
            time[elements[kernel.TIME_ID] == 0] = self._reading.arrival
        if self._reading.marks is not None and len(time):
            self._reading.marks.delivered(timed=bool(time[0] != NO_TIME), scoped=self._reading.per_element)
        start = 0
        for wrong in [*np.flatnonzero(time == NO_TIME).tolist(), len(time)]:
            if wrong > start:
                yield self._batch(time[start:wrong], first[start : wrong + 1], rows)
            start = wrong + 1
            if wrong < len(time):
                time_id, line = elements[[kernel.TIME_ID, kernel.START_LINE], wrong].tolist()
                named = 3 + self._reading.graphs
                left_out = statements([*rows[:named, first[wrong] : first[wrong + 1]]], self._dictionary)
                self._untimed(time_id, line, int(subjects[wrong]), left_out)

    def _batch(self, time: Ids, first: Ids, rows: Ids) -> ElementBatch:
        columns, first = rows[:, first[0] : first[-1]], first - first[0]
        stream, counted = np.full(len(time), self._reading.stream, np.int32), None
        if self._tokenizer.state[kernel.ABOUT]:
            columns, counted = _graphs_first(columns, first)
        subject, predicate, object_, graph = columns
        return ElementBatch(
            time, stream, first, subject, predicate, object_, graph if self._reading.graphs else None, counted
        )

    def _untimed(self, time: int, line: int, subject: int, left_out: str) -> None:
        reading = self._reading
        place = Place(line, None, reading.source) if reading.numbered else None
        decode = self._dictionary.decode
        about = f"the element of {decode(np.array([subject]))[0]}"
        if not reading.numbered:
            about = f"{reading.source}: {about}"
        if time == kernel.CONFLICT:
            error = DataError(f"{about} has two different times", place)
        elif time != 0:
            error = DataError(f"{about} has the time {decode(np.array([time]))[0]}; {EXPECTED}", place)
        elif reading.time_predicate is not None:
            error = DataError(f"{about} has no time: no triple with the predicate {reading.time_predicate}", place)
        elif reading.form == kernel.BY_GRAPH:
            ahead = f'<graph> {GENERATED_AT} "…"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
            error = DataError(
                f"{about} has no time: the triple {ahead} must stand before it, once for each time", place
            )
        else:
            # No element has a time, so none could be read.
            raise DataError(f"{about} has no time: give --time-predicate IRI, or '@ :predicate' in the query", place)
        self._malformed(error.about(left_out))
