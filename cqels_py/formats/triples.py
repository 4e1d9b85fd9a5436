"""Elements and static data given by a program: triples of texts in N-Triples syntax, rdflib terms, and other values of Python."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import take_elements
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.times import EXPECTED, NO_TIME, times_of_ids
from cqels_py.kernels.primitives.dtypes import INT64
from cqels_py.terms.layout import TAG_BLANK, TAG_IRI, TAG_OVERFLOW, TAG_SHIFT
from cqels_py.terms.values import node_text, text_of

Term: TypeAlias = Any
"""A value that `terms.values` takes: an rdflib term, a text in N-Triples syntax, a number and others.

An IRI needs no angle brackets where no literal can be."""
Triple: TypeAlias = tuple[Term, Term, Term]

_POSITIONS = ("subject", "predicate", "object")
_EXPECTED = {"subject": "an IRI or a blank node", "predicate": "an IRI"}
_PART = rb"[A-Za-z0-9._~:/?@&+,;=-]*"
_IRI = rb"<https?://[A-Za-z0-9._~-]+(?::[0-9]+)?(?:/%b)?(?:#%b)?>" % (_PART, _PART)
_LITERAL = rb'"[A-Za-z0-9 .:+-]*"(?:\^\^<http://www\.w3\.org/2001/XMLSchema#[A-Za-z]+>)?'
_TRIPLE = rb"%b\n%b\n(?:%b|%b)" % (_IRI, _IRI, _IRI, _LITERAL)
_PLAIN = re.compile(rb"%b(?:\n%b)*" % (_TRIPLE, _TRIPLE)).fullmatch
_NO_TRIPLE = "a triple is (subject, predicate, object), and triples are a list of such: not {!r}"


def triple_texts(triples: Iterable[Any]) -> list[bytes]:
    """The terms of triples (3 n) in N-Triples syntax, not validated yet. UsageError if these are not triples of terms."""
    if type(triples) is not list and (isinstance(triples, str | bytes) or not isinstance(triples, Iterable)):
        raise UsageError(f"triples are a list of (subject, predicate, object), or an rdflib Graph, not {triples!r}")
    texts: list[bytes] = []
    for triple in triples:
        if type(triple) is not tuple and (isinstance(triple, str | bytes) or not isinstance(triple, Sequence)):
            raise UsageError(_NO_TRIPLE.format(triple))
        if len(triple) != 3:
            raise UsageError(_NO_TRIPLE.format(triple))
        try:
            subject, predicate, object_ = triple
            if not (type(subject) is type(predicate) is type(object_) is str and subject and predicate and object_):
                subject, predicate, object_ = map(_text, triple)
            if subject[0] not in "<_" or predicate[0] != "<":
                subject, predicate = node_text(subject), node_text(predicate)
            texts += (subject.encode(), predicate.encode(), object_.encode())
        except UnicodeEncodeError as error:
            text = error.object
            raise DataError(f"{text!a} is not a term: it contains half a character (a lone surrogate)") from None
    return texts


def term_lines(triples: list[Any]) -> bytes | None:
    """The terms of triples as of `triple_texts`, a line each. None where that takes a closer look: they are no texts, or wrong."""
    terms: list[str] = []
    for triple in triples:
        if type(triple) is not tuple or len(triple) != 3:
            return None
        subject, predicate, object_ = triple
        if not (type(subject) is type(predicate) is type(object_) is str and subject and predicate and object_):
            return None
        if subject[0] not in "<_" or predicate[0] != "<":
            return None
        terms += triple
    try:
        lines = "\n".join(terms).encode()
    except UnicodeEncodeError:
        return None
    # Not by `joined_lines`: each further call is a noticeable part of the time of a push.
    return lines if lines.count(b"\n") == len(terms) - 1 else None


def joined_lines(lines: bytes, count: int) -> bytes | None:
    """The lines, if there are so many: none of the texts, which have been joined, has several."""
    return lines if lines.count(b"\n") == count - 1 else None


def _text(term: Term) -> str:
    """The non-empty text of a term."""
    text = text_of(term)
    if not text:
        raise DataError('an empty text is not a term: <iri>, "text", "text"@en, "1"^^<datatype> or _:label')
    return text


def are_plain(texts: Sequence[bytes]) -> bool:
    """Are the terms of triples (3 n) certainly valid, and at their positions? False where that takes a closer look."""
    line = b"\n".join(texts)
    # A text of several lines is none of several terms.
    return _PLAIN(line) is not None and line.count(b"\n") == len(texts) - 1


def graph_text(graph: Any) -> bytes:
    """The name of an element's graph in N-Triples syntax, not validated yet: from an rdflib term, a text, or a bare IRI."""
    if not isinstance(graph, str) or not graph:
        raise UsageError(f"graph must name the element's graph with an IRI or a blank node, not {graph!r}")
    text = _text(graph)
    try:
        return (text if text[0] in '<_"' else f"<{text}>").encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{text!a} is not the name of a graph: it contains half a character (a lone surrogate)"
        ) from None


def _triple_ids(
    texts: Sequence[bytes], first: Ids, scope: int, dictionary: Dictionary
) -> tuple[Ids, dict[int, DataError]]:
    """Ids (3, n) of n triples, given as their 3 n terms; and errors by triple.

    Element e has the triples first[e] to first[e + 1], and its blank nodes belong to `scope` + e.
    """
    wrong: dict[int, DataError] = {}
    ids, misplaced = dictionary.encode_triples(texts, first, scope, wrong)
    if not (misplaced or wrong):
        return ids, wrong
    errors = {at // 3: error for at, error in reversed(wrong.items())}
    _find_misplaced(texts, ids.T, errors)
    return ids, errors


def _find_misplaced(texts: Sequence[bytes], ids: Ids, errors: dict[int, DataError]) -> None:
    """Enter an error for each misplaced term, unless its triple already has one."""
    tag = (ids >> TAG_SHIFT) & 15
    allowed = (tag == TAG_IRI) | (tag == TAG_OVERFLOW) | ((tag == TAG_BLANK) & (np.arange(3) == 0))
    for row, column in np.argwhere(~allowed[:, :2]).tolist():
        name = _POSITIONS[column]
        shown = texts[3 * row + column].decode()
        errors.setdefault(row, DataError(f"the {name} of a triple is {_EXPECTED[name]}, not {shown}"))


def static_triples(triples: Iterable[Triple], dictionary: Dictionary, scope: int) -> Ids:
    """Columns (3, n) of ids. DataError names the first invalid term."""
    texts = triple_texts(triples)
    ids, errors = _triple_ids(texts, np.array([0, len(texts) // 3]), scope, dictionary)
    if errors:
        raise errors[min(errors)]
    return ids


@dataclass(slots=True)
class PushedElement:
    """One element: the stream's IRI and number, `texts` as of triple_texts; `time` None where `time_predicate` gives
    it.

    `graph`: its name, as of graph_text; None if there is none or it is not needed.
    """

    iri: str
    stream: int
    time: int | None
    time_predicate: str | None
    texts: Sequence[bytes]
    graph: bytes | None = None


def elements_of_pushed(
    pushed: Sequence[PushedElement], dictionary: Dictionary, first_scope: int
) -> tuple[ElementBatch, list[DataError]]:
    """The valid elements, and the errors of the others. Each element has its own scope, starting at `first_scope`."""
    if len(pushed) == 1 and pushed[0].time is not None:
        # A fast path for a single element, as on a live stream.
        alone = pushed[0]
        numbers = np.array((alone.time, 0, len(alone.texts) // 3), INT64)
        ids, errors = _triple_ids(alone.texts, numbers[1:], first_scope, dictionary)
        if not errors and alone.graph is None:
            return ElementBatch(numbers[:1], _alone(alone.stream), numbers[1:], *ids), []
    texts: list[bytes] = []
    bounds = [0]
    times: list[int] = []
    streams: list[int] = []
    timeless: list[int] = []
    for each in pushed:
        texts += each.texts
        bounds.append(len(texts) // 3)
        streams.append(each.stream)
        if each.time is None:
            timeless.append(len(times))
        times.append(each.time or 0)
    # One array for all numbers: slicing it is cheaper than making several.
    numbers = np.array(times + bounds, INT64)
    elements = len(pushed)
    time, first = numbers[:elements], numbers[elements:]
    ids, errors = _triple_ids(texts, first, first_scope, dictionary)
    wrong = {bisect_right(bounds, row) - 1: errors[row] for row in sorted(errors, reverse=True)} if errors else {}
    for e in timeless:
        time[e] = _time(pushed[e], ids[:, bounds[e] : bounds[e + 1]], dictionary, wrong, e)
    graph = _graphs(pushed, first, first_scope, dictionary, wrong)
    batch = ElementBatch(time, np.array(streams, np.int32), first, ids[0], ids[1], ids[2], graph)
    if not wrong:
        return batch, []
    batch = take_elements(batch, np.setdiff1d(np.arange(len(pushed)), list(wrong)))
    return batch, [_left_out(pushed[e], wrong[e]) for e in sorted(wrong)]


def _left_out(element: PushedElement, wrong: DataError) -> DataError:
    graph = [] if element.graph is None else [element.graph]
    lines = [b" ".join([*element.texts[at : at + 3], *graph]) + b" .\n" for at in range(0, len(element.texts), 3)]
    error = DataError(f"an element pushed to <{element.iri}>: {wrong.message}").about(b"".join(lines).decode())
    error.stream = element.iri
    return error


def _graphs(
    pushed: Sequence[PushedElement], first: Ids, scope: int, dictionary: Dictionary, wrong: dict[int, DataError]
) -> Ids | None:
    """The graph of each triple; None if no element has one. Blank nodes are those of the element's triples."""
    named = [e for e, each in enumerate(pushed) if each.graph is not None]
    if not named:
        return None
    ids = np.zeros(len(pushed), np.int64)
    for e in named:
        text = (pushed[e].graph or b"").decode()
        try:
            ids[e] = dictionary.encode([text], scope=scope + e)[0]
        except DataError as error:
            wrong.setdefault(e, DataError(f"the graph: {error.message}"))
        else:
            if not is_node(ids[e : e + 1])[0]:
                wrong.setdefault(e, DataError(f"the graph is {_EXPECTED['subject']}, not {text}"))
    return np.repeat(ids, np.diff(first))


def is_node(ids: Ids) -> npt.NDArray[np.bool_]:
    """Which terms are IRIs or blank nodes."""
    tag = (ids >> TAG_SHIFT) & 15
    found: npt.NDArray[np.bool_] = (tag == TAG_IRI) | (tag == TAG_OVERFLOW) | (tag == TAG_BLANK)
    return found


@cache
def _alone(stream: int) -> npt.NDArray[np.int32]:
    """The stream column of a single element. It is cached, because batches are never changed."""
    return np.array([stream], np.int32)


def _time(
    element: PushedElement, triples: Ids, dictionary: Dictionary, wrong: dict[int, DataError], number: int
) -> int:
    """The time that the element's own triples (3, n) give. If it is wrong: 0, with an error unless there already is one."""
    found = _own_time(element, triples, dictionary)
    if isinstance(found, DataError):
        wrong.setdefault(number, found)
        return 0
    return found


def _own_time(element: PushedElement, triples: Ids, dictionary: Dictionary) -> int | DataError:
    predicate = f"<{element.time_predicate}>"
    said = triples[2, triples[1] == dictionary.encode_one(predicate)]
    times: npt.NDArray[np.int64] = np.unique(times_of_ids(said, dictionary))
    if len(times) == 0:
        return DataError(f"it has no time: no triple with the predicate {predicate}")
    if len(times) > 1:
        return DataError(f"it has two different times: both are values of {predicate}")
    if times[0] == NO_TIME:
        return DataError(f"its time is {dictionary.decode(said[:1])[0]}; {EXPECTED}")
    return int(times[0])
