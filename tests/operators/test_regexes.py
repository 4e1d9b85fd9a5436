"""Regular expressions by the letter of XML Schema and XPath, and the limits within which they are matched."""

from __future__ import annotations

import unicodedata

import pytest
import re2

from cqels_py.functions import characters, regexes
from cqels_py.functions.regexes import Pattern, expander, replaced
from cqels_py.functions.terms import ExpressionError, LimitExceeded

LETTERS = "aZ_0-·é€\u00a0\u3000\u2028\t\n\r\v\f\u0301\u0660\U0001d7d8\u200d;:ΩяΑ\u0085"


def found(pattern: str, flags: str = "", among: str = LETTERS) -> str:
    """The characters that match, by both engines."""
    compiled = Pattern(f"^{pattern}$", flags)
    by_python = "".join(c for c in among if compiled.found_in(c))
    compiled._short = -1
    assert "".join(c for c in among if compiled.found_in(c)) == by_python
    return by_python


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"\s", "\t\n\r"),
        (r"[^\S]", "\t\n\r"),
        (r"\d", "0\u0660\U0001d7d8"),
        (r"\w", "aZ0é€\u0301\u0660\U0001d7d8ΩяΑ"),
        (r"[\W]", "_-·\u00a0\u3000\u2028\t\n\r\v\f\u200d;:\u0085"),
        (r"[^\w\s]", "_-·\u00a0\u3000\u2028\v\f\u200d;:\u0085"),
        (r"[\D-[\W]]", "aZé€\u0301ΩяΑ"),
        (r"\i", "aZ_é€\u0660\U0001d7d8\u200d:ΩяΑ"),
        (r"\c", "aZ_0-·é€\u0301\u0660\U0001d7d8\u200d:ΩяΑ"),
        (r"[\I-[\C]]", "0-·\u0301"),
        (r"\p{IsGreek}", "ΩΑ"),
        (r"[\p{IsGreekandCoptic}\p{IsCyrillic}]", "ΩяΑ"),
        (r"\P{IsBasicLatin}", "·é€\u00a0\u3000\u2028\u0301\u0660\U0001d7d8\u200dΩяΑ\u0085"),
        (r"[\P{L}-[\p{Z}\p{C}\p{P}]]", "0€\u0301\u0660\U0001d7d8"),
        (r"[^a-zΑ-я]", "Z_0-·é€\u00a0\u3000\u2028\t\n\r\v\f\u0301\u0660\U0001d7d8\u200d;:\u0085"),
    ],
)
def test_classes(pattern: str, expected: str) -> None:
    assert found(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "among", "expected"),
    [
        (r"\p{Lu}", "xXéÉ", "XÉ"),
        (r"[\p{Lu}a]", "aAxX", "aAX"),
        (r"\P{Lu}", "xX", "x"),
        (r"\p{IsBasicLatin}", "kK\u212a", "kK"),
        ("k", "kK\u212aj", "kK\u212a"),
        ("[a-c]", "aBCd", "aBC"),
        ("[^q]", "qQr", "r"),
        ("[A-Z-[IO]]", "aAiIoOzZ", "aAzZ"),
        ("σ", "σςΣs", "σςΣ"),
        ("ß", "ßẞs", "ßẞ"),
        (r"\i", "x0", "x"),
    ],
)
def test_the_flag_i_concerns_characters_and_ranges_alone(pattern: str, among: str, expected: str) -> None:
    assert found(pattern, "i", among) == expected
    assert found(f" {pattern} ", "ix", among) == expected


def test_back_references_under_the_flag_i_are_to_any_case() -> None:
    assert Pattern(r"^(a)-\1$", "i").found_in("a-A")
    assert not Pattern(r"^(a)-\1$", "").found_in("a-A")


@pytest.mark.parametrize("pattern", [r"\p{IsKlingon}", r"\p{Isgreek}", r"\p{Xx}", r"\p{}", r"\pL", r"[\p{Is}]"])
def test_unknown_categories_and_blocks_are_errors(pattern: str) -> None:
    with pytest.raises(ExpressionError, match="regular expression"):
        Pattern(pattern, "")


def test_categories_are_those_of_unicodedata() -> None:
    for name in ("Lu", "N", "Cn", "Co", "C", "Zs"):
        inside = {code for first, last in characters.category(name) for code in range(first, last + 1)}
        assert inside == {code for code in range(0x110000) if unicodedata.category(chr(code)).startswith(name)}


def test_repeats_above_a_thousand_and_back_references_are_matched_up_to_a_length() -> None:
    long = Pattern("^x{1001,}$", "")
    assert not long.found_in("x" * 1000)
    assert long.found_in("x" * 1001)
    doubled = Pattern(r"(\w+) \1$", "")
    assert doubled.found_in("so so")
    assert not doubled.found_in("so no")
    for pattern, text in ((long, "x" * 100_001), (doubled, "so so " * 20_000)):
        with pytest.raises(LimitExceeded, match=r"in texts of up to [0-9,]+ characters; 'x*(so )*'… has 1"):
            pattern.found_in(text)
    with pytest.raises(LimitExceeded, match="back-references"):
        replaced("so so " * 20_000, doubled, expander("$1", 1), 1 << 20)


@pytest.mark.parametrize(
    "pattern", [r"^(a+)+\1$", r"^((a*)*)*b\1$", r"^(a|aa)+\1b$", r"^(a?){30}a{30}\1c$", r"^(a+){1001}$"]
)
def test_where_ways_multiply_with_each_character_texts_must_be_short(pattern: str) -> None:
    with pytest.raises(LimitExceeded):
        Pattern(pattern, "").found_in("a" * 64)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(x+x+)+y", "^(a|a)*$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*(.*)*c"])
def test_what_makes_others_backtrack_takes_time_by_the_length_of_the_text(pattern: str) -> None:
    assert not Pattern(pattern, "").found_in(("x" if "x" in pattern else "a") * 100_000 + "!")


def test_patterns_have_a_greatest_size() -> None:
    for pattern in ("a" * 10_001, r"\w{500}\w{500}", "(" * 9000 + ")" * 1000):
        with pytest.raises(ExpressionError, match=r"characters|large|not closed"):
            Pattern(pattern, "")
    with pytest.raises(LimitExceeded, match="is too large"):
        Pattern(r"[\w-[a]]{1000}", "")
    assert Pattern("a" * 10_000, "").found_in("a" * 10_000)


def test_replacements() -> None:
    pattern = Pattern("(a)(b)?", "")
    assert replaced("ab-a", pattern, expander(r"[$2$1$0\$\\$12]", 2), 100) == r"[baab$\a2]-[aa$\a2]"
    with pytest.raises(LimitExceeded, match="more than 10 bytes"):
        replaced("a" * 8, pattern, expander("$1$1", 2), 10)
    for template in ("$", "a\\", "$x", "\\n"):
        with pytest.raises(ExpressionError, match="must be written"):
            expander(template, 2)


def test_compiled_patterns_are_remembered() -> None:
    assert regexes.compile_pattern("a+", "i") is regexes.compile_pattern("a+", "i")
    assert isinstance(regexes.compile_pattern("a+", "i")._test, type(re2.compile("a")))
