"""Elements and static data that a program hands over: triples of rdflib terms, or of texts in N-Triples syntax."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import take_elements
from cqels_py.connectors.times import EXPECTED, NO_TIME, times_of_ids
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.dictionary.layout import TAG_BLANK, TAG_IRI, TAG_OVERFLOW, TAG_SHIFT
from cqels_py.dictionary.rdf import from_rdflib
from cqels_py.errors import DataError, UsageError

Term: TypeAlias = Any
"""An rdflib term, or a text in N-Triples syntax."""
Triple: TypeAlias = tuple[Term, Term, Term]

_POSITIONS = ("subject", "predicate", "object")
_EXPECTED = {"subject": "an IRI or a blank node", "predicate": "an IRI"}


def triple_texts(triples: Iterable[Any]) -> list[bytes]:
    """The terms of triples (3 n) in N-Triples syntax, not yet checked. UsageError for what is no triple of terms."""
    if isinstance(triples, str | bytes) or not isinstance(triples, Iterable):
        raise UsageError(f"triples are a list of (subject, predicate, object), or an rdflib Graph, not {triples!r}")
    texts: list[bytes] = []
    for triple in triples:
        if isinstance(triple, str | bytes) or not isinstance(triple, Sequence) or len(triple) != 3:
            raise UsageError(
                f"a triple is (subject, predicate, object), and triples are a list of such: not {triple!r}"
            )
        texts.extend(_utf8(_text(term)) for term in triple)
    return texts


def _text(term: Term) -> str:
    if isinstance(term, str) and not hasattr(term, "n3"):
        return term
    if hasattr(term, "n3"):
        return from_rdflib(term)
    raise UsageError(f"a term is an rdflib term or a text in N-Triples syntax, not {term!r}")


def _utf8(text: str) -> bytes:
    if not text:
        raise DataError('an empty text is not a term: <iri>, "text", "text"@en, "1"^^<datatype> or _:label')
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{text!a} is not a term: it holds half a character (a lone surrogate)") from None


def triple_ids(texts: Sequence[bytes], scopes: Ids, dictionary: Dictionary) -> tuple[Ids, dict[int, DataError]]:
    """Ids (3, n) of n triples, blank nodes belonging to scopes (n); what is wrong with some of them, by number."""
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    data = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    wrong: dict[int, DataError] = {}
    ids = dictionary.encode_bytes(data, offsets, np.repeat(scopes, 3), wrong).reshape(-1, 3)
    errors = {at // 3: error for at, error in reversed(wrong.items())}
    tag = (ids >> TAG_SHIFT) & 15
    allowed = (tag == TAG_IRI) | (tag == TAG_OVERFLOW) | ((tag == TAG_BLANK) & (np.arange(3) == 0))
    for row, column in np.argwhere(~allowed[:, :2]).tolist():
        name = _POSITIONS[column]
        shown = texts[3 * row + column].decode()
        errors.setdefault(row, DataError(f"the {name} of a triple is {_EXPECTED[name]}, not {shown}"))
    return np.ascontiguousarray(ids.T), errors


def static_triples(triples: Iterable[Triple], dictionary: Dictionary, scope: int) -> Ids:
    """Columns (3, n) of ids. DataError names the first term that is none."""
    texts = triple_texts(triples)
    ids, errors = triple_ids(texts, np.full(len(texts) // 3, scope), dictionary)
    if errors:
        raise errors[min(errors)]
    return ids


@dataclass(frozen=True, slots=True)
class PushedElement:
    """One element: the stream's IRI and number, `texts` as of triple_texts; `time` None where `time_predicate` gives it."""

    iri: str
    stream: int
    time: int | None
    time_predicate: str | None
    texts: Sequence[bytes]


def elements_of_pushed(
    pushed: Sequence[PushedElement], dictionary: Dictionary, first_scope: int
) -> tuple[ElementBatch, list[DataError]]:
    """The elements that are right, and what is wrong with the others; each has its own scope, from `first_scope` on."""
    sizes = np.array([len(each.texts) // 3 for each in pushed], np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)])
    scopes = np.repeat(first_scope + np.arange(len(pushed)), sizes)
    ids, errors = triple_ids([text for each in pushed for text in each.texts], scopes, dictionary)
    wrong = {int(np.searchsorted(first, row, side="right")) - 1: errors[row] for row in sorted(errors, reverse=True)}
    time = np.zeros(len(pushed), np.int64)
    for e, each in enumerate(pushed):
        found = _time(each, ids[:, first[e] : first[e + 1]], dictionary) if each.time is None else each.time
        if isinstance(found, DataError):
            wrong.setdefault(e, found)
        else:
            time[e] = found
    stream = np.array([each.stream for each in pushed], np.int32)
    batch = ElementBatch(time, stream, first, *ids)
    if wrong:
        batch = take_elements(batch, np.setdiff1d(np.arange(len(pushed)), list(wrong)))
    reports = [DataError(f"an element pushed to <{pushed[e].iri}>: {wrong[e].message}") for e in sorted(wrong)]
    return batch, reports


def _time(element: PushedElement, triples: Ids, dictionary: Dictionary) -> int | DataError:
    """The time that the element's own triples (3, n) give."""
    predicate = f"<{element.time_predicate}>"
    said = triples[2, triples[1] == dictionary.encode_one(predicate)]
    times: npt.NDArray[np.int64] = np.unique(times_of_ids(said, dictionary))
    if len(times) == 0:
        return DataError(f"it has no time: no triple with the predicate {predicate}")
    if len(times) > 1:
        return DataError(f"it has two different times: {predicate} says both")
    if times[0] == NO_TIME:
        return DataError(f"its time is {dictionary.decode(said[:1])[0]}; {EXPECTED}")
    return int(times[0])
