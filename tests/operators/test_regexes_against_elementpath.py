"""Both engines' patterns against elementpath's, drawn from XPath's grammar."""

from __future__ import annotations

import re

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from cqels_py.functions.regexes import Pattern
from tests.oracle.naive_expressions import compiled_pattern
from tests.oracle.naive_values import ExpressionError as NoPattern

ALPHABET = "abAB01_€-. \t\n\u00a0éÉΩ٣\u0301\u2028[^]$("
TEXTS = st.text(ALPHABET, max_size=8)
ESCAPED = ("\\-", "\\.", "\\n", "\\t", "\\[", "\\]", "\\^", "\\$", "\\\\", "\\(")
CLASSES = (
    "\\s",
    "\\S",
    "\\d",
    "\\D",
    "\\w",
    "\\W",
    "\\i",
    "\\I",
    "\\c",
    "\\C",
    "\\p{Lu}",
    "\\P{L}",
    "\\p{Nd}",
    "\\p{Zs}",
)
CLASSES += (
    "\\P{Ll}",
    "\\p{IsGreek}",
    "\\P{IsBasicLatin}",
    "\\p{IsLatin-1Supplement}",
    "\\p{Sc}",
    "\\p{Mn}",
    "\\p{C}",
    "\\P{P}",
)
PLAIN = st.sampled_from("abAB01_€éΩ")
RANGES = st.sampled_from(["a-b", "A-Z", "0-9", "a-é", " -~"])
# elementpath is wrong about complements among others in one class: to it [^a\\S] are more than the spaces.
POSITIVE = [each for each in ESCAPED + CLASSES if not each[1].isupper()]
MEMBERS = st.lists(PLAIN | RANGES | st.sampled_from(POSITIVE), min_size=1, max_size=4).map("".join)


@st.composite
def character_class(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 4)) == 0:
        return f"[{draw(MEMBERS)}-{draw(character_class())}]"
    return f"[{draw(MEMBERS | MEMBERS.map('^{}'.format) | st.sampled_from(CLASSES))}]"


ATOMS = PLAIN | st.sampled_from([*ESCAPED, *CLASSES, "."]) | character_class()
QUANTIFIERS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}?", "{1,}"])


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> str:
    branches = []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
        parts = draw(st.lists(st.tuples(ATOMS, QUANTIFIERS).map("".join), min_size=1, max_size=3))
        if depth and draw(st.booleans()):
            group = draw(st.sampled_from(["(", "(?:"])) + draw(patterns(depth=depth - 1)) + ")"
            parts.insert(draw(st.integers(0, len(parts))), group + draw(QUANTIFIERS))
        branches.append("".join(parts))
    return draw(st.sampled_from(["", "", "^"])) + "|".join(branches) + draw(st.sampled_from(["", "", "$"]))


FLAGS = st.sampled_from(["", "", "s", "m", "x", "sm"])


# Shrinking takes minutes, as does compiling large classes again and again.
@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(patterns(), FLAGS, st.lists(TEXTS, min_size=1, max_size=5))
def test_both_engines_find_the_matches_of_elementpath(pattern: str, flags: str, texts: list[str]) -> None:
    try:
        expected = compiled_pattern(pattern, flags)
    except NoPattern:
        assume(False)
    found = Pattern(pattern, flags)
    assert found._search is not None
    for text in texts:
        wanted = expected.search(text)
        # Both ways: as a short text by Python's engine, and by re2.
        assert (found._by_python.search(text) is not None) is (wanted is not None)
        if found._ends_a_line(text):
            continue
        found._short = -1
        assert found.found_in(text) is (wanted is not None)
        if expected.match("") is None:
            spans = [(match.start(), match.end()) for match in found.matches(text)]
            assert spans == [match.span() for match in expected.finditer(text)]


@pytest.mark.parametrize("text", ["a\n", "\n", "a\n\n", "ab\na\n", "\n\na\n"])
@pytest.mark.parametrize(
    "pattern", ["^", "$", "^$", "a$", "^a", "a\n^", "a\n$", "\n^a", "^a$", "(^|b)$", "\n$", "^\n", "$\n", "a$\n$"]
)
def test_the_end_of_a_text_that_ends_a_line_is_neither_end_nor_beginning_of_one(pattern: str, text: str) -> None:
    # elementpath lets $ match there; F&O 5.6.1.1 does not, and Python's lookarounds can say so.
    before, after = r"(?:\A|(?<=\n)(?!\Z))", r"(?:(?=\n)|(?<!\n)\Z)"
    expected = re.compile(pattern.replace("^", before).replace("$", after))
    found = Pattern(pattern, "m")
    found._short = -1
    assert found.found_in(text) is (expected.search(text) is not None)
    if not found.found_in(""):
        assert [(m.start(), m.end()) for m in found.matches(text)] == [m.span() for m in expected.finditer(text)]
