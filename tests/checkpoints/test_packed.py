"""Elements as bytes: they come back with the same ids, in another dictionary too."""

from __future__ import annotations

import numpy as np
import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.checkpoints.packed import Packing, element_of_lines, pack_terms, unpack_elements, unpack_terms
from cqels_py.dictionary import Dictionary

XSD = "http://www.w3.org/2001/XMLSchema#"
TEXTS = [
    "<http://ex.org/a>", '"text"', '"two\\nlines"@en', '"5"', f'"5"^^<{XSD}integer>', f'"05"^^<{XSD}integer>', "_:x", "_:b0",
    f'"2.50"^^<{XSD}decimal>', f'"2024-05-01T12:00:00.5Z"^^<{XSD}dateTime>', '""', '"ü∂"', f'"true"^^<{XSD}boolean>', None,
]  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, len(TEXTS), 400])
def test_terms(count: int) -> None:
    before, after = Dictionary(), Dictionary()
    texts = [TEXTS[place % len(TEXTS)] for place in range(count)]
    ids = before.encode(texts, scopes=np.arange(count) % 3)
    found = unpack_terms(memoryview(b"".join(pack_terms(ids, before))), after)
    assert found.tolist() == ids.tolist()
    assert after.decode(found) == before.decode(ids)


@pytest.mark.parametrize("size", [0, 1, 3, 200])
@pytest.mark.parametrize("more", [False, True])
def test_elements(size: int, *, more: bool) -> None:
    rng = np.random.default_rng(size)
    before, after = Dictionary(), Dictionary()
    known = before.encode(TEXTS[:-1])
    sizes = rng.integers(1, 4, size)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    ids = rng.choice(known, (4, int(first[-1])))
    batch = ElementBatch(
        rng.integers(-(10**15), 10**15, size), rng.integers(0, 9, size).astype(np.int32), first, *ids[:3],
        graph=ids[3] if more else None, counted=sizes - 1 if more else None,
    )  # fmt: skip
    found = unpack_elements(memoryview(b"".join(Packing(before).elements(batch))), after)
    for name in ("time", "stream", "first", "subject", "predicate", "object", "graph", "counted"):
        one, other = getattr(batch, name), getattr(found, name)
        if one is None:
            assert other is None
        else:
            assert other.dtype == one.dtype
            assert other.tolist() == one.tolist()


def test_single_elements_are_packed_as_others_are() -> None:
    rng = np.random.default_rng(5)
    before, after = Dictionary(), Dictionary()
    packing = Packing(before)
    for number in range(300):
        # Now and then terms are released, or texts are longer than all that is remembered.
        texts = [*TEXTS[:-1], f'"{number}"', f"<http://ex.org/{number % 7}>", f'"{number}{"x" * 400_000}"'][
            : None if number % 50 == 3 else -1
        ]
        known = before.encode(texts, scopes=np.full(len(texts), number))
        triples = int(rng.integers(1, 12))
        ids = rng.choice(known, (3, triples))
        batch = ElementBatch(
            np.array([number - 7]), np.array([number % 3], np.int32), np.array([0, triples]), ids[0], ids[1], ids[2]
        )
        blocks = [bytes(block) for block in packing.elements(batch)]
        columns = np.concatenate([ids[0], ids[1], ids[2]])
        assert b"".join(blocks).endswith(b"".join(map(bytes, pack_terms(columns, before))))
        found = unpack_elements(memoryview(b"".join(blocks)), after)
        assert (found.time.item(), found.stream.item(), found.first.tolist()) == (number - 7, number % 3, [0, triples])
        assert np.array_equal(np.stack([found.subject, found.predicate, found.object]), ids)
        if number % 20 == 19:
            before.collect([])


@pytest.mark.parametrize("triples", [1, 2, 5])
def test_elements_that_are_packed_as_lines(triples: int) -> None:
    rng = np.random.default_rng(triples)
    texts = [text for text in TEXTS if text is not None and not text.startswith("_:")]
    for number in range(20):
        terms = rng.choice(texts, 3 * triples).tolist()
        dictionary = Dictionary()
        packed = b"".join(element_of_lines(number - 7, number % 3, "\n".join(terms).encode()))
        found = unpack_elements(memoryview(packed), dictionary)
        assert (found.time.item(), found.stream.item(), found.first.tolist()) == (number - 7, number % 3, [0, triples])
        for place, column in enumerate((found.subject, found.predicate, found.object)):
            assert column.tolist() == dictionary.encode(terms[place::3]).tolist()
