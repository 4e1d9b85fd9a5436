"""Terms to ids and back, exact to the lexical form; release; collisions; blank nodes and their scopes."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator

import mmh3
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, TermCollision, UsageError
from cqels_py.terms.canonical import canonical, escape
from cqels_py.terms.layout import TAG_BLANK, TAG_IRI, TAG_LITERAL, TAG_OVERFLOW, TAG_SHIFT
from tests.operators.plain_dictionary import INTEGERS, inline_id, typed

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

LIMITS = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedLong": (0, 1 << 64),
    "positiveInteger": (1, 1 << 64),
    "nonPositiveInteger": (-(1 << 64), 0),
    "negativeInteger": (-(1 << 64), -1),
}
"""Outside of the range, it is an ill-typed literal and not a number."""

UNLIKE_ANY_INSTANT = re.compile(r"T2[45]|:60|-00:00$|\+14:15$")
"""Hours, minutes and zones that are none, and the zone that would come back as +00:00."""

NUMBERS = st.one_of(
    st.integers(-(1 << 60), 1 << 60).map(str),
    st.from_regex(r"[-+]?[0-9]{0,18}(\.[0-9]{0,16})?", fullmatch=True),
    st.sampled_from(["-0", "+5", "05", ".5", "5.", "-0.0", "0.0", "1E5", "INF", "NaN", "36028797018963968", ""]),
)
ZONES = st.sampled_from(["", "Z", "+00:00", "-00:00", "+05:30", "-14:00", "+14:00", "+14:15", "+01:07"])
DATES = st.from_regex(
    r"(0000|0001|1969|1970|2000|2013|1900|4200)-(02|04|12|13|00)-(00|01|28|29|30|31|32)", fullmatch=True
)
TIMES = st.from_regex(r"T(00|23|24|25):(00|59|60):(00|59|60)(\.[0-9]{0,7})?", fullmatch=True)
LEXICAL = {
    **dict.fromkeys((*INTEGERS, "decimal", "double", "float"), NUMBERS),
    "boolean": st.sampled_from(["true", "false", "0", "1", "True", "", "tru"]),
    "dateTime": st.builds("".join, st.tuples(DATES, TIMES, ZONES)),
    "date": st.builds("".join, st.tuples(DATES, ZONES)),
}
TYPED = st.sampled_from(sorted(LEXICAL)).flatmap(lambda name: st.tuples(LEXICAL[name], st.just(name)))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
TERMS = st.one_of(
    TYPED.map(lambda pair: typed(*pair)),
    TEXT.map(lambda text: f'"{escape(text)}"'),
    TEXT.map(lambda text: f'"{escape(text)}"@en-gb'),
    TEXT.map(lambda text: f'"{escape(text)}"^^<http://e.org/t>'),
    st.from_regex(r"([a-zäß/?=&.0-9]|%[0-9A-F]{2}){0,30}(#[a-zäß]{0,5})?", fullmatch=True).map(
        lambda path: f"<http://e.org/{path}>"
    ),
)


def tag(identifier: int) -> int:
    return identifier >> 60 & 15


def hashed(number: int) -> str:
    return f"<http://e.org/{number}>"


# --- inline and hashed ids ----------------------------------------------------------------------------------------


@given(TYPED)
@example(("2000-02-29T23:59:59.999Z", "dateTime"))
@example(("1900-02-29", "date"))
@example(("-36028797018963968", "integer"))
@example(("2147483648", "int"))
@example(("2147483647", "int"))
def test_ids_are_those_of_the_layout(pair: tuple[str, str]) -> None:
    found = Dictionary().encode_one(typed(*pair))
    expected = None if UNLIKE_ANY_INSTANT.search(pair[0]) else inline_id(*pair)
    low, high = LIMITS.get(pair[1], (None, None))
    if expected is None or (low is not None and high is not None and not low <= int(pair[0]) <= high):
        assert tag(found) == TAG_LITERAL
    else:
        assert found == expected


@given(st.lists(TERMS, max_size=20))
def test_the_exact_lexical_form_comes_back(terms: list[str]) -> None:
    dictionary = Dictionary()
    ids = dictionary.encode(terms)
    assert dictionary.decode(ids) == terms
    assert dictionary.encode(terms).tolist() == ids.tolist()
    assert len(set(ids.tolist())) == len(set(terms))


@given(TERMS)
def test_hashed_ids_are_the_same_on_every_machine(term: str) -> None:
    found = Dictionary().encode_one(term)
    if tag(found) in (TAG_IRI, TAG_LITERAL):
        bits = mmh3.hash64(term.encode(), seed=0, x64arch=True, signed=False)[0] >> 4
        assert found & (1 << 60) - 1 == bits


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (r'"caf\u00E9"', '"café"'),
        (r'"\U0001F600"', '"😀"'),
        ('"tab\there"', '"tab\there"'),
        (r'"tab\there"', '"tab\there"'),
        (r'"line\nend \"quoted\" back\\slash"', r'"line\nend \"quoted\" back\\slash"'),
        ('"colour"@EN-gb', '"colour"@en-gb'),
        ('"a"^^<http://www.w3.org/2001/XMLSchema#string>', '"a"'),
        (r"<http://e.org/\u00E9>", "<http://e.org/é>"),
        ('"new\nline"', r'"new\nline"'),
        (r'"\u0035"^^<http://www.w3.org/2001/XMLSchema#integer>', '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ],
)
def test_one_term_has_one_id_however_it_is_written(written: str, kept: str) -> None:
    dictionary = Dictionary()
    found = dictionary.encode_one(written)
    assert dictionary.decode(np.array([found])) == [kept]
    assert found == dictionary.encode_one(kept)
    assert canonical(written) == kept


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "<", "<http://e.org/a", "<http://e.org/a b>", '<http://e.org/"a">', "http://e.org/a", "<a> "),
        *('"', '"a', '"a"@', '"a"@1', '"a"@en-', '"a"^^', '"a"^^a', '"a"^^<a', '"a" ', '"a"b', '"\\x"'),
        *(
            r'"\u12"',
            r'"\uD800"',
            r'"\U00110000"',
            "_:",
            "_",
            "_:a b",
            "_:.a",
            "_:a.",
            '"a\ud800"',
            r"<http://e.org/\n>",
        ),
    ],
)
def test_invalid_terms_are_refused_and_shown(text: str) -> None:
    with pytest.raises(DataError, match=r"is not a term in N-Triples syntax|escape|is not a character"):
        Dictionary().encode([text])


@pytest.fixture
def switching_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_other_threads_never_see_a_table_with_the_arena_of_another_time(switching_often: None) -> None:
    dictionary = Dictionary()
    kept = [f"<http://example.org/kept/{number}>" for number in range(300)]
    ids = dictionary.encode(kept)
    ended, wrong = threading.Event(), list[object]()

    def read() -> None:
        while not ended.is_set() and not wrong:
            try:
                if dictionary.decode(ids) != kept:
                    wrong.append("other texts")
            except Exception as error:
                wrong.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for turn in range(1_000):
        # Kept in another order, the texts get other places.
        dictionary.collect([np.roll(ids, turn)])
    ended.set()
    reader.join()
    assert not wrong


def test_unbound_is_none() -> None:
    dictionary = Dictionary()
    assert dictionary.encode([None, hashed(1), None])[[0, 2]].tolist() == [0, 0]
    assert dictionary.decode(np.zeros(1, np.int64)) == [None]


def test_encode_bytes_collects_invalid_terms() -> None:
    texts = [b"<http://e.org/a>", b"nothing", b"", b'"x"']
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    wrong: dict[int, DataError] = {}
    dictionary = Dictionary()
    data = np.frombuffer(b"".join(texts), np.uint8)
    ids = dictionary.encode_bytes(data, offsets, np.zeros(4, np.int64), wrong)
    assert dictionary.decode(ids) == ["<http://e.org/a>", None, None, '"x"']
    assert list(wrong) == [1]
    assert "nothing" in wrong[1].message


def test_encode_triples_lays_out_columns_and_counts_misplaced_terms() -> None:
    elements = [
        [("<http://e.org/a>", "<http://e.org/p>", '"x"'), ("_:b", "<http://e.org/p>", "_:b")],
        [],
        [('"x"', "_:b", "nothing"), ("_:b", '"1"^^<http://e.org/t>', '"01"^^<http://www.w3.org/2001/XMLSchema#integer>')],
        [("nothing", "<http://e.org/p>", '"' + 70_000 * "y" + '"')],
    ]  # fmt: skip
    texts = [term for element in elements for triple in element for term in triple]
    data = [text.encode() for text in texts]
    first = np.cumsum([0, *map(len, elements)])
    dictionary, wrong = Dictionary(), dict[int, DataError]()
    columns, misplaced = dictionary.encode_triples(data, first, 7, wrong)
    scopes = np.repeat(np.arange(7, 11), [3 * len(element) for element in elements])
    known = np.array([text != "nothing" for text in texts])
    right = [text if fine else None for text, fine in zip(texts, known, strict=True)]
    assert columns.T.reshape(-1).tolist() == dictionary.encode(right, scopes=scopes).tolist()
    assert list(wrong) == [i for i, text in enumerate(texts) if text == "nothing"]
    # A literal and no term at all as subjects, a blank node and a literal as predicates.
    assert misplaced == 4


TRICKY = [
    "<http://e.org/a>", "<http://e.org/a", "http://e.org/a>", '"x"', '"x', 'x"', '"x"@en', '"x"@EN', '"1"^^', "_:b", "_:b.", "_:",
    "<http://e.org/a>\n<http://e.org/b>", '"x\ny"', "\n", '"x"\n', '"x\\', '"x\\n"', '"\r"', '"01"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"' + 200 * "x", '"' + 200 * "x" + '"', '"\u00e9\u20ac"', " ",
]  # fmt: skip
"""Texts of which several next to each other may look like other ones."""


@given(st.lists(st.lists(st.tuples(*3 * [st.sampled_from(TRICKY)]), max_size=3), max_size=3))
def test_encode_triples_agrees_with_encode_bytes(elements: list[list[tuple[str, str, str]]]) -> None:
    texts = [term.encode() for element in elements for triple in element for term in triple]
    first = np.cumsum([0, *map(len, elements)])
    dictionary, wrong, expected_wrong = Dictionary(), dict[int, DataError](), dict[int, DataError]()
    columns, misplaced = dictionary.encode_triples(texts, first, 7, wrong)
    scopes = np.repeat(7 + np.arange(len(elements)), [3 * len(element) for element in elements])
    offsets = np.cumsum([0, *map(len, texts)])
    expected = dictionary.encode_bytes(
        np.frombuffer(b"".join(texts) or b"\0", np.uint8), offsets, scopes, expected_wrong
    )
    assert columns.T.reshape(-1).tolist() == expected.tolist()
    assert {at: str(error) for at, error in wrong.items()} == {at: str(e) for at, e in expected_wrong.items()}
    tags = expected.reshape(-1, 3) >> TAG_SHIFT & 15
    allowed = np.isin(tags, (TAG_IRI, TAG_OVERFLOW)) | ((tags == TAG_BLANK) & (np.arange(3) == 0))
    assert misplaced == np.count_nonzero(~allowed[:, :2])


def test_terms_that_stop_the_kernel_do_not_make_it_begin_anew() -> None:
    """Where the next one begins is counted on from the last one, however many are to be rewritten."""

    class Text(bytes):
        measured = 0

        def __len__(self) -> int:
            Text.measured += 1
            return super().__len__()

    texts = [Text(f"{term}@EN".encode() if i % 3 == 2 else b"<http://e.org/a>") for i, term in enumerate(300 * ['"x"'])]
    Dictionary().encode_triples(texts, np.array([0, 100]), 7, {})
    assert Text.measured <= 2 * len(texts)


# --- blank nodes -----------------------------------------------------------------------------------------------------


def test_a_blank_node_is_one_within_its_scope_only() -> None:
    dictionary = Dictionary()
    ids = dictionary.encode(["_:a", "_:a", "_:b", "_:a"], scopes=np.array([1, 1, 1, 2]))
    assert ids[0] == ids[1]
    assert len(set(ids.tolist())) == 3
    assert [tag(i) for i in ids.tolist()] == [TAG_BLANK] * 4
    assert len(dictionary) == 0
    labels = dictionary.decode(ids)
    assert labels[0] == labels[1]
    assert len(set(labels)) == 3


def test_documents_are_numbered() -> None:
    dictionary = Dictionary()
    assert dictionary.next_document() != dictionary.next_document()


# --- growth, release, pins -------------------------------------------------------------------------------------------


def test_it_grows_with_its_terms() -> None:
    dictionary = Dictionary()
    terms = [hashed(i) for i in range(5000)] + [f'"{"long" * 50_000}"']
    ids = dictionary.encode(terms)
    assert len(dictionary) == 5001
    assert dictionary.decode(ids) == terms


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_terms_without_references_are_released(live: set[int], pinned: set[int], later: set[int]) -> None:
    dictionary = Dictionary()
    ids = dictionary.encode([hashed(i) for i in range(41)])
    dictionary.pin(ids[sorted(pinned)])
    assert dictionary.collect([ids[sorted(live)]]) == 41 - len(live | pinned)
    assert len(dictionary) == len(live | pinned)
    for i in range(41):
        if i in live | pinned:
            assert dictionary.decode(ids[i : i + 1]) == [hashed(i)]
        else:
            with pytest.raises(UsageError, match=r"released.*callback"):
                dictionary.decode(ids[i : i + 1])
    again = [hashed(i) for i in sorted(later)]
    assert dictionary.decode(dictionary.encode(again)) == again


def test_terms_read_but_not_passed_on_are_kept() -> None:
    dictionary = Dictionary()
    ids = dictionary.encode([hashed(1), hashed(2)])
    with dictionary.holding(lambda: [ids[:1]]):
        dictionary.collect([])
        assert dictionary.decode(ids[:1]) == [hashed(1)]
    dictionary.collect([])
    assert len(dictionary) == 0


def test_memory_stays_the_same_over_ever_new_terms() -> None:
    dictionary = Dictionary()
    sizes = set()
    for turn in range(5):
        ids = dictionary.encode([hashed(10_000 * turn + i) for i in range(10_000)])
        dictionary.collect([ids[-10:]])
        sizes.add(dictionary.nbytes)
    assert len(sizes) == 1


# --- collisions -----------------------------------------------------------------------------------------------------


def test_terms_with_equal_hashes_are_distinguished() -> None:
    dictionary = Dictionary(hash_bits=6)
    terms = [hashed(i) for i in range(300)] + [f'"{i}"' for i in range(300)]
    ids = dictionary.encode(terms)
    assert len(set(ids.tolist())) == 600
    assert {tag(i) for i in ids.tolist()} == {TAG_IRI, TAG_LITERAL, TAG_OVERFLOW}
    assert dictionary.decode(ids) == terms
    assert dictionary.encode(terms[::-1]).tolist() == ids.tolist()[::-1]


def test_overflow_ids_are_released_and_found_again() -> None:
    dictionary = Dictionary(hash_bits=6)
    terms = [hashed(i) for i in range(200)]
    ids = dictionary.encode(terms)
    kept = ids[100:]
    dictionary.collect([kept])
    assert dictionary.decode(kept) == terms[100:]
    assert dictionary.encode(terms[100:]).tolist() == kept.tolist()
    new = dictionary.encode(terms)
    assert len(set(new.tolist())) == 200
    assert dictionary.decode(new) == terms


def test_a_collision_stops_a_strict_dictionary_and_names_both_terms() -> None:
    dictionary = Dictionary(strict=True, hash_bits=6)
    with pytest.raises(TermCollision, match=r"<http://e.org/\d+> and <http://e.org/\d+> have the same id"):
        dictionary.encode([hashed(i) for i in range(300)])
