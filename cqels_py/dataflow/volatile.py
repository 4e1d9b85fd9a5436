"""The volatile functions UUID, STRUUID, RAND and BNODE: columns of values that are new in each row."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.functions.numbers import DOUBLE, Number, number_term
from cqels_py.functions.terms import print_term
from cqels_py.terms.layout import UNBOUND

_BYTES, _DIGITS = 16, 32
_GROUPS = (8, 4, 4, 4, 12)
_MOST_ROWS = 1 << 40


class VolatileValues:
    """New values of one query. Its blank nodes differ from row to row, and from those of any source.

    `seed`: decides about all values, with the number of their row and the name of their column; without it they are random.
    """

    STATE = ("_scope", "_seed")

    def __init__(self, dictionary: Dictionary, seed: str) -> None:
        self._dictionary = dictionary
        self._seed = seed or os.urandom(_BYTES).hex()
        self._scope = self._first = dictionary.next_document() * _MOST_ROWS
        self._scopes: Ids | None = None

    def begin(self, rows: int) -> None:
        """The next columns are of these rows: within one of them the same label is the same blank node."""
        self._first = self._scope
        self._scopes = -(self._scope + np.arange(rows, dtype=np.int64))
        self._scope += rows

    def uuids(self, name: str, rows: int, before: str, after: str) -> Ids:
        """Version 4 of RFC 9562: random but for the version and the variant."""
        bits = np.ascontiguousarray(self._random(name, rows)[:, :2]).view(np.uint8).reshape(rows, _BYTES)
        bits[:, 6] = bits[:, 6] & 0x0F | 0x40
        bits[:, 8] = bits[:, 8] & 0x3F | 0x80
        digits = np.frombuffer(bits.tobytes().hex().encode(), np.uint8).reshape(rows, _DIGITS)
        shape = (before + "-".join("0" * size for size in _GROUPS) + after).encode()
        texts = np.tile(np.frombuffer(shape, np.uint8), (rows, 1))
        start, first = len(before), 0
        for size in _GROUPS:
            texts[:, start : start + size] = digits[:, first : first + size]
            start, first = start + size + 1, first + size
        return self._encode(texts, np.zeros(rows, np.int64))

    def numbers(self, name: str, rows: int) -> Ids:
        """From 0, and less than 1."""
        values: list[float] = ((self._random(name, rows)[:, 0] >> np.uint64(11)) * 2.0**-53).tolist()
        return self._dictionary.encode([print_term(number_term(Number(DOUBLE, value))) for value in values])

    def labelled_nodes(self, labels: Ids) -> Ids:
        """A blank node for each label, which its id stands for; none where there is no label."""
        digits = np.frombuffer(labels.astype(">i8").tobytes().hex().encode(), "S16")
        return np.where(labels == UNBOUND, UNBOUND, self.nodes(np.char.add(b"b", digits)))

    def nodes(self, labels: npt.NDArray[np.bytes_]) -> Ids:
        """A blank node for each row and its label; the labels are of the same length."""
        assert self._scopes is not None
        texts = np.ascontiguousarray(np.char.add(b"_:", labels)).view(np.uint8).reshape(len(labels), -1)
        return self._encode(texts, self._scopes)

    def _random(self, name: str, rows: int) -> npt.NDArray[np.uint64]:
        """Random bits (rows, 4) of the column with this name: those of a row do not depend on the rows before it."""
        key = np.frombuffer(hashlib.sha256(f"{self._seed} {name}".encode()).digest()[:_BYTES], np.uint64)
        return np.random.Philox(key=key, counter=self._first).random_raw(4 * rows).reshape(rows, 4)

    def _encode(self, texts: npt.NDArray[np.uint8], scopes: Ids) -> Ids:
        rows, length = texts.shape
        offsets = np.arange(rows + 1, dtype=np.int64) * length
        return self._dictionary.encode_bytes(texts.reshape(-1), offsets, scopes)


@dataclass(frozen=True, slots=True)
class VolatileFunction:
    """One column of new values, of UUID, STRUUID, RAND or BNODE; `name`: its variable.

    `labelled`: its one input says which nodes of a row are the same.
    """

    values: VolatileValues
    function: str
    name: str
    labelled: bool

    def evaluate(self, columns: Sequence[Ids] | Ids, now: Ids | None) -> Ids:
        assert now is not None
        values, rows = self.values, len(now)
        match self.function:
            case "UUID":
                return values.uuids(self.name, rows, "<urn:uuid:", ">")
            case "STRUUID":
                return values.uuids(self.name, rows, '"', '"')
            case "RAND":
                return values.numbers(self.name, rows)
            case "BNODE" if self.labelled:
                return values.labelled_nodes(columns[0])
            case _:
                return values.nodes(np.full(rows, self.name.strip("_:").encode()))

    def live_ids(self) -> Iterable[Ids]:
        return ()
