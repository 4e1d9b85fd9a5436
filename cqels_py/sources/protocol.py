"""The protocol of sources of elements: a new kind of source is a class with these methods, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.connections.reach import Reach
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.contexts import Contexts
from cqels_py.formats.input_wait import PAUSE, InputWait
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.ntriples import ELEMENT_BITS, Reading
from cqels_py.formats.omissions import Omissions, logged_omissions
from cqels_py.formats.scopes import ELEMENT, SOURCE
from cqels_py.formats.triples import PushedElement, Triple, elements_of_pushed, triple_texts
from cqels_py.kernels.text.tokenizer import BY_GRAPH
from cqels_py.mappings.context import RowMap
from cqels_py.sources.partitions import Returned


class Source(Protocol):
    """The elements of one stream, in the order in which the source has them.

    One that can begin at an `Opening.position` has `resumes = True`; if it finds out while it reads whether it has positions,
    `beginning` is the one before all elements. One that may have elements although a poll found none, as it has just connected
    again, has a property `behind` that says so.
    """

    @property
    def idle(self) -> bool:
        """Has the source had no elements for some time, though it has not ended? Then elements of other sources do not wait for it.

        An idle source is polled in turn with the others, so its `poll` should wait only briefly. Elements that it has later may be
        late. Files are never idle.
        """
        ...

    def poll(self) -> ElementBatch | None:
        """The next elements, as many as are there; waits while there are none. None: the source has ended.

        A source that does not want to wait any longer returns an empty batch, and is polled again.
        """
        ...

    def position(self) -> object:
        """Where the elements that were polled end, as a plain value (int, text, tuple); None: the source cannot be read again.

        One that begins there reports no malformed input that this one has reported, and all other.
        """
        ...

    def commit(self, position: object) -> None:
        """All elements up to this position have been taken in, and sinks have committed the results so far, or a log has them.

        They will not be asked for again. Positions are those that `position` returned after a poll, in order.
        """
        ...

    def close(self) -> None:
        """Release files and connections; the source is not polled again."""
        ...


@runtime_checkable
class Partitioned(Protocol):
    """The further methods of a source that keeps elements of a partition back until others have reached their time."""

    @property
    def caught_up(self) -> bool:
        """After a poll that found nothing: has all been returned that the other side had, but for elements that are kept back?"""
        ...

    def advance(self, time: int) -> None:
        """A partition that has nothing now has no element before `time` (microseconds): others do not wait for it."""
        ...

    def holds_before(self, time: int) -> bool:
        """Are elements of before `time` kept back?"""
        ...

    @property
    def returned(self) -> Returned | None:
        """The elements of the last poll by partition; None if there is only one."""
        ...

    def live_ids(self) -> Iterable[Ids]:
        """Ids of the terms of elements that are kept back."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How the source of a stream is to be read.

    `stream`: its IRI; `number`: that of its elements. Terms are encoded by the `dictionary`. `time_predicate`: the property with
    the time of an element; None: the source gives times. `on_error`: "skip" gives malformed input to `report` and continues, "stop"
    raises it as DataError. `blank_nodes`: the scope of labels. `graphs`: the names of elements' graphs are needed. `contexts`:
    those that JSON-LD may name by IRI. `omissions`: is told values that have no place in RDF, and elements without triples. `base`:
    the IRI of a document's place, for relative ones in JSON-LD. `on_questionable_time` is called with integer times that may be
    meant in another unit. `map`: how rows and JSON objects that are no RDF become elements. `wait`: how long to wait for input that
    comes while it is read; `on_split` gets triples of an element that was complete after that time. `position`: where to begin, as
    another source of the stream told it (None: where the source would begin by itself); sources that cannot be read again ignore
    it. `continues`: the run has a checkpoint, so that a source which knows where it was committed has to go on there when it is
    opened again, or to refuse. `reach`: which addresses may be connected to; None: all.
    """

    stream: str
    number: int
    dictionary: Dictionary
    time_predicate: str | None = None
    on_error: str = "stop"
    report: Callable[[DataError], None] | None = None
    blank_nodes: str = SOURCE
    graphs: bool = False
    contexts: Contexts = field(default_factory=dict)
    omissions: Omissions = field(default_factory=logged_omissions)
    base: str | None = None
    on_questionable_time: Callable[[int], object] | None = None
    map: RowMap | None = None
    wait: InputWait | None = None
    on_split: Callable[[DataError], None] | None = None
    position: object = None
    continues: bool = False
    reach: Reach | None = None

    @property
    def pause(self) -> float:
        """Seconds after which a poll that found nothing returns an empty batch: so long other sources wait for it."""
        return PAUSE if self.wait is None else self.wait.pause

    @property
    def json_ld(self) -> JsonLd:
        """How documents of JSON-LD are read."""
        return JsonLd(self.contexts, self.omissions, self.base)

    def reading(
        self,
        source: str,
        form: int = BY_GRAPH,
        *,
        per_element: bool | None = None,
        scope: int | None = None,
        arrival: int | None = None,
    ) -> Reading:
        """How the statements of a text or a table become elements.

        `source`: its name in messages. `per_element`: instead of `blank_nodes`. The others: see `Reading`.
        """
        return Reading(
            form,
            self.number,
            None if self.time_predicate is None else f"<{self.time_predicate.strip('<>')}>",
            source,
            per_element=self.blank_nodes == ELEMENT if per_element is None else per_element,
            graphs=self.graphs,
            on_questionable_time=self.on_questionable_time,
            wait=self.wait,
            on_split=self.on_split,
            arrival=arrival,
            scope=scope,
            omissions=self.omissions,
        )

    def elements(self, elements: Iterable[tuple[int | None, Iterable[Triple]]]) -> ElementBatch:
        """A batch of elements, each a time in microseconds (None where `time_predicate` gives it) and triples.

        The triples are rdflib terms or N-Triples texts; labels of blank nodes belong to their element. An element with a term that
        is none is left out: raised or reported as `on_error` says. UsageError for a stream with a map, which is for rows.
        """
        if self.map is not None:
            raise UsageError(f"the source of <{self.stream}> has no rows or JSON objects to map: leave the map out")
        pushed = [
            PushedElement(self.stream, self.number, time, self.time_predicate, triple_texts(triples))
            for time, triples in elements
        ]
        batch, errors = elements_of_pushed(pushed, self.dictionary, self.dictionary.next_document() << ELEMENT_BITS)
        for error in errors:
            if self.on_error == "stop" or self.report is None:
                raise error
            self.report(error)
        return batch


@runtime_checkable
class Connector(Protocol):
    """An object that can be opened as the source of a stream."""

    def open(self, opening: Opening) -> Source:
        """The source, from its first element on."""
        ...
