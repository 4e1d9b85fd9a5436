"""Terms ↔ 64-bit ids. Ids are the same on every machine; the dictionary keeps the texts of hashed terms."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain, pairwise

import numpy as np
import numpy.typing as npt

from cqels_py.errors import DataError, TermCollision, UsageError
from cqels_py.iris import check_names_of
from cqels_py.kernels.primitives.dtypes import INT64, UINT8
from cqels_py.kernels.text.triples import encode_triples
from cqels_py.kernels.values import dictionary as kernel
from cqels_py.kernels.values.positions import PREDICATE, SUBJECT, misplaced
from cqels_py.kernels.values.syntax import LESS
from cqels_py.terms.canonical import canonical, malformed
from cqels_py.terms.layout import TAG_IRI, TAG_LITERAL, TAG_OVERFLOW, TAG_SHIFT, XSD

Ids = npt.NDArray[np.int64]

_FIRST_ENTRIES = 1024
_FIRST_ARENA = 1 << 16
_HASH_BITS = 60
_STRING = f"^^<{XSD}string>"


def _offsets(texts: Sequence[bytes]) -> Ids:
    """The start of each of consecutive texts, and the end of the last."""
    return np.fromiter(accumulate(map(len, texts), initial=0), np.int64)


def _lines_length(texts: Sequence[bytes]) -> int:
    """The lengths of texts, each with its line end."""
    return sum(map(len, texts)) + len(texts)


class Dictionary:
    """Encodes terms in N-Triples syntax, keeps the texts of hashed ones, and releases those that nothing refers to.

    One thread writes at a time and holds the `lock`; other threads may meanwhile decode ids that are known to exist: they
    read `texts`, a table and an arena that are replaced together, and keep both alive while they read. If two terms have
    the same hash, the later one gets an overflow id; if `strict`, TermCollision is raised instead, because ids must then
    agree between machines. `hash_bits` below 60 is for tests.
    """

    STATE = ("table", "arena", "meta", "_documents", "_next_overflow", "overflow_terms")

    def __init__(self, *, strict: bool = False, hash_bits: int = _HASH_BITS) -> None:
        self._strict = strict
        self._shift = 64 - hash_bits
        self.table = np.zeros(_FIRST_ENTRIES * kernel.WORDS, np.int64)
        self.arena = np.zeros(_FIRST_ARENA, np.uint8)
        self.meta = np.zeros(2, np.int64)
        self._overflow: dict[str, tuple[int, int]] = {}
        self._documents = 0
        self._next_overflow = 1
        self._pinned: set[int] = set()
        self._holders: list[Callable[[], Iterable[Ids]]] = []
        self.lock = threading.RLock()
        self._publish()

    def after_restore(self) -> None:
        self._publish()

    def _publish(self) -> None:
        """Hand table and arena, one of which has been replaced, to threads without the lock: always two that belong together."""
        self.texts = self.table, self.arena

    def __len__(self) -> int:
        """The number of terms whose texts are kept."""
        return self.meta.item(kernel.ENTRIES)

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.arena.nbytes

    @property
    def shift(self) -> int:
        """The number of hash bits that kernels drop when they intern a term."""
        return self._shift

    @property
    def overflow_terms(self) -> list[list[str | int]]:
        """Terms whose hash another one has: each with its own id, and that of the other."""
        return [[text, *ids] for text, ids in self._overflow.items()]

    @overflow_terms.setter
    def overflow_terms(self, terms: list[tuple[str, int, int]]) -> None:
        self._overflow = {text: (overflow, identifier) for text, overflow, identifier in terms}

    # --- encoding -----------------------------------------------------------------------------------------------

    def next_document(self) -> int:
        """A number for the scope of blank nodes, unique to each source."""
        self._documents += 1
        return self._documents

    @property
    def documents(self) -> int:
        """The last number of a document."""
        return self._documents

    def number_documents_after(self, number: int) -> None:
        """Give the next document the number after this one: for data that are read again, in the order of the first time, so that
        their blank nodes get the same ids."""
        self._documents = number

    def encode(
        self,
        terms: Sequence[str | None],
        *,
        scope: int = 0,
        scopes: npt.NDArray[np.int64] | None = None,
        existing: bool = False,
    ) -> Ids:
        """Ids (n) of terms in N-Triples syntax; None is unbound.

        Blank nodes belong to `scope`, or to scopes[i] each. DataError names an invalid term. `existing`: the terms, in canonical
        form, come from a dictionary or its log, and their IRIs and language tags, which an earlier version may have let in, are not
        judged again.
        """
        data = [b"" if term is None else _utf8(term) for term in terms]
        offsets = _offsets(data)
        if "" in terms:
            raise malformed("an empty text")
        if scopes is None:
            scopes = np.full(len(data), scope, np.int64)
        joined = np.frombuffer(b"".join(data) or b"\0", np.uint8)
        return self.encode_bytes(joined, offsets, scopes, existing=existing)

    def encode_bytes(
        self,
        data: npt.NDArray[np.uint8],
        offsets: Ids,
        scopes: Ids,
        wrong: dict[int, DataError] | None = None,
        *,
        existing: bool = False,
    ) -> Ids:
        """Ids (n) of texts in one buffer: term i is data[offsets[i]:offsets[i + 1]], unbound if empty. Scopes and `existing` as in
        `encode`.

        With `wrong`, invalid terms are entered there by number and get the id 0; otherwise DataError is raised.
        """
        if data.flags.writeable:
            # Kernels are compiled for one kind of array: texts are mostly bytes, which are not writable.
            data = data.view()
            data.flags.writeable = False
        out = np.empty(len(offsets) - 1, np.int64)
        at = 0
        with self.lock:
            while True:
                at, status = kernel.encode(
                    data, offsets, scopes, at, self._shift, self.table, self.arena, self.meta, out
                )
                if status == kernel.DONE:
                    return out
                raw = data[offsets[at] : offsets[at + 1]]
                if existing and status == kernel.NOT_WRITTEN_SO:
                    out[at], at = self._known_again(raw), at + 1
                    continue
                found = self._stopped_at(at, status, raw.tobytes(), int(out[at]), int(scopes[at]), wrong)
                if found is not None:
                    out[at] = found
                    at += 1

    def encode_triples(
        self, texts: Sequence[bytes], first: Ids, scope: int, wrong: dict[int, DataError]
    ) -> tuple[Ids, int]:
        """Columns (3, n) of elements' triples, given as their terms one after another, none of them empty.

        Element e has the triples first[e] to first[e + 1], and its blank nodes belong to `scope` + e. Also returns the
        number of terms that cannot be a subject or predicate but are used as one. Invalid terms are entered in `wrong`
        and get the id 0.
        """
        lines = b"\n".join(texts)
        if lines.count(b"\n") != len(texts) - 1:
            return self._encode_apart(texts, first, scope, wrong)
        data, columns = np.frombuffer(lines, UINT8), np.empty((3, len(texts) // 3), INT64)
        start = at = element = 0
        with self.lock:
            while True:
                begun = at
                at, status = encode_triples(
                    data, start, first, scope, at, element, self._shift, self.table, self.arena, self.meta, columns
                )
                if status == kernel.DONE:
                    return columns, at
                start += _lines_length(texts[begun:at])
                place = at % 3, at // 3
                element = int(np.searchsorted(first, at // 3, side="right")) - 1
                found = self._stopped_at(at, status, texts[at], int(columns[place]), scope + element, wrong)
                if found is not None:
                    columns[place] = found
                    start += _lines_length(texts[at : at + 1])
                    at += 1

    def _encode_apart(
        self, texts: Sequence[bytes], first: Ids, scope: int, wrong: dict[int, DataError]
    ) -> tuple[Ids, int]:
        """Encode term by term: for no terms at all, and for texts of several lines. Result as of `encode_bytes`."""
        offsets = _offsets(texts)
        scopes = np.repeat(scope + np.arange(len(first) - 1), 3 * np.diff(first))
        ids = self.encode_bytes(np.frombuffer(b"".join(texts) or b"\0", np.uint8), offsets, scopes, wrong)
        columns = np.ascontiguousarray(ids.reshape(-1, 3).T)
        return columns, misplaced(columns[SUBJECT], SUBJECT) + misplaced(columns[PREDICATE], PREDICATE)

    def _stopped_at(
        self, at: int, status: int, raw: bytes, identifier: int, scope: int, wrong: dict[int, DataError] | None
    ) -> int | None:
        """The id of the term at which a kernel stopped; None if it ran out of room, which now has been made."""
        if status in (kernel.TABLE_FULL, kernel.ARENA_FULL):
            self.grow(status, len(raw))
            return None
        try:
            return self._encode_slowly(raw, identifier, status, scope)
        except DataError as error:
            if wrong is None:
                raise
            wrong[at] = error
            return 0

    def encode_one(self, term: str) -> int:
        return int(self.encode([term])[0])

    def _encode_slowly(self, raw: bytes, identifier: int, status: int, scope: int) -> int:
        if status == kernel.COLLISION:
            return self.resolve_collision(raw, identifier)
        text = raw.decode("utf-8", "replace")
        plain = canonical(text)
        if plain != text:
            return int(self.encode([plain], scope=scope)[0])
        # The kernel rejected the term, and it has no other spelling.
        check_names_of(plain)
        raise malformed(text)

    def _known_again(self, data: npt.NDArray[np.uint8]) -> int:
        """The id of a term that exists, though its IRI or its language tag is none."""
        tag = TAG_IRI if data[0] == LESS else TAG_LITERAL
        while True:
            identifier, status = kernel.intern(
                data, 0, len(data), kernel.UNCHECKED, tag, self._shift, self.table, self.arena, self.meta
            )
            if status == kernel.DONE:
                return int(identifier)
            if status == kernel.COLLISION:
                return self.resolve_collision(data.tobytes(), int(identifier))
            self.grow(status, len(data))

    def resolve_collision(self, raw: bytes, identifier: int) -> int:
        """The overflow id of the term with canonical syntax `raw`, whose hash `identifier` belongs to another term.

        TermCollision if the dictionary is strict.
        """
        text = raw.decode().removesuffix(_STRING)
        known = self._overflow.get(text)
        if known is not None:
            return known[0]
        if self._strict:
            other = self.decode(np.array([identifier]))[0]
            raise TermCollision(f"{text} and {other} have the same id; results would mix them up")
        overflow = (TAG_OVERFLOW << TAG_SHIFT) | self._next_overflow
        self._next_overflow += 1
        data = np.frombuffer(text.encode(), np.uint8)
        while (status := kernel.enter(overflow, data, self.table, self.arena, self.meta)) != kernel.DONE:
            self.grow(status, len(data))
        self._overflow[text] = (overflow, identifier)
        return overflow

    def grow(self, status: int, room: int) -> None:
        """Make room for the table that a kernel ran out of; `room`: bytes of the current text."""
        if status == kernel.TABLE_FULL:
            table = np.zeros(2 * len(self.table), np.int64)
            kernel.rehash(self.table, table)
            self.table = table
        else:
            extra = max(len(self.arena), room)
            self.arena = np.concatenate([self.arena, np.zeros(extra, np.uint8)])
        self._publish()

    # --- decoding -----------------------------------------------------------------------------------------------

    def decode(self, ids: Ids) -> list[str | None]:
        """The N-Triples texts of ids; None for unbound. UsageError for an id whose term has been released."""
        data, offsets = self.decode_bytes(ids)
        ends = offsets.tolist()
        text = data.tobytes()
        return [text[a:b].decode() if b > a else None for a, b in pairwise(ends)]

    def decode_bytes(self, ids: Ids) -> tuple[npt.NDArray[np.uint8], Ids]:
        """The texts as consecutive UTF-8, and the start of each (n + 1)."""
        ids = np.ascontiguousarray(ids, np.int64)
        if not ids.flags.writeable:
            # Kernels are compiled for one kind of array: those that are read from a file are not writable.
            ids = ids.copy()
        table, arena = self.texts
        room = kernel.room_for_texts(ids, table)
        if room == kernel.UNKNOWN:
            raise released()
        out, offsets = np.empty(room + 1, UINT8), np.empty(len(ids) + 1, INT64)
        kernel.decode(ids, table, arena, out, offsets)
        return out[: offsets[-1]], offsets

    # --- release --------------------------------------------------------------------------------------------------

    def pin(self, ids: Ids) -> None:
        """Keep these terms forever (constants of queries)."""
        with self.lock:
            self._pinned.update(np.asarray(ids, np.int64).ravel().tolist())

    def hold(self, live: Callable[[], Iterable[Ids]]) -> None:
        """From now on, `collect` also keeps the ids that `live` returns at that time. One under way in another thread ends first."""
        with self.lock:
            self._holders.append(live)

    def release_holder(self, live: Callable[[], Iterable[Ids]]) -> None:
        """`hold` no longer."""
        with self.lock:
            self._holders.remove(live)

    @contextmanager
    def holding(self, live: Callable[[], Iterable[Ids]]) -> Iterator[None]:
        """While the context lasts, `collect` also keeps the ids that `live` returns: terms that were read but not
        passed on yet.
        """
        self.hold(live)
        try:
            yield
        finally:
            self.release_holder(live)

    def collect(self, live: Iterable[Ids]) -> int:
        """Release all hashed terms that are in none of the arrays and not pinned; returns how many."""
        with self.lock:
            return self._collect(live)

    def _collect(self, live: Iterable[Ids]) -> int:
        before = len(self)
        table = np.zeros_like(self.table)
        arena = np.zeros_like(self.arena)
        meta = np.zeros(2, np.int64)

        def keep(ids: Ids) -> None:
            kernel.keep(np.ascontiguousarray(ids).reshape(-1), self.table, self.arena, table, arena, meta)

        pinned = np.fromiter(self._pinned, np.int64, len(self._pinned))
        for ids in chain((pinned,), live, *(holder() for holder in self._holders)):
            keep(ids)
        if self._overflow:
            kept = set(table[:: kernel.WORDS].tolist())
            self._overflow = {text: ids for text, ids in self._overflow.items() if ids[0] in kept}
            # As long as the other term has the id, an overflow term is found again by its text.
            keep(np.array([identifier for _, identifier in self._overflow.values()], np.int64))
        entries = _FIRST_ENTRIES
        while int(meta[kernel.ENTRIES]) * 3 > entries:
            entries *= 2
        rehashed = np.zeros(entries * kernel.WORDS, np.int64)
        kernel.rehash(table, rehashed)
        arena = arena[: max(_FIRST_ARENA, 2 * int(meta[kernel.TOP]))].copy()
        self.table, self.arena, self.meta = rehashed, arena, meta
        self._publish()
        return before - len(self)


def released() -> UsageError:
    """The error for results that were kept while the engine continued, and are decoded or written only then."""
    return UsageError(
        "a term of these results has been released, since nothing in the engine refers to it any more: decode a batch, or write "
        "it, in the callback that gets it, and keep the texts"
    )


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise malformed(ascii(text)) from None
