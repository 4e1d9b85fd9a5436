"""SPARQL 1.1 functions on strings (section 17.4.3), IRIs and languages, and hash functions."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable, Sequence
from urllib.parse import quote

from cqels_py.errors import DataError
from cqels_py.functions import regexes
from cqels_py.functions.limits import MAX_TEXT, too_long
from cqels_py.functions.numbers import INTEGER, Number
from cqels_py.functions.regexes import compile_pattern, expander
from cqels_py.functions.terms import (
    RDF_LANG_STRING,
    XSD_INTEGER,
    XSD_STRING,
    ExpressionError,
    NotAnIri,
    Term,
    TermKind,
    boolean,
    iri,
    literal,
    tagged,
)
from cqels_py.functions.values import value_of
from cqels_py.iris import checked, resolved
from cqels_py.languages import is_tag

_NOT_ENCODED = (string.ascii_letters + string.digits + "-_.~").encode()
_AT_ONCE = 1 << 16

Arguments = Sequence[Term]


def text_of(term: Term) -> str:
    """The text of a string literal, with or without a language tag."""
    if not term.is_string:
        raise ExpressionError("a string was expected")
    return term.text


def _simple_text(term: Term) -> str:
    if not term.is_simple:
        raise ExpressionError("a string without a language tag was expected")
    return term.text


def _compatible(first: Term, second: Term) -> tuple[str, str]:
    """The texts of two strings. The second has no language tag, or that of the first (section 17.4.3.1.1)."""
    texts = text_of(first), text_of(second)
    if second.language and second.language.lower() != first.language.lower():
        raise ExpressionError("strings of different languages")
    return texts


def to_text(term: Term) -> Term:
    """STR."""
    if term.kind is TermKind.BLANK:
        raise ExpressionError("a blank node has no text")
    return literal(term.text)


def language(term: Term) -> Term:
    if not term.is_literal:
        raise ExpressionError("LANG of a term that is not a literal")
    return literal(term.language)


def language_matches(tag: Term, wanted: Term) -> Term:
    """LANGMATCHES: basic filtering of RFC 4647."""
    text, pattern = _simple_text(tag).lower(), _simple_text(wanted).lower()
    if pattern == "*":
        return boolean(bool(text))
    return boolean(text == pattern or text.startswith(pattern + "-"))


def datatype(term: Term) -> Term:
    if not term.is_literal:
        raise ExpressionError("DATATYPE of a term that is not a literal")
    return iri(term.datatype)


def to_iri(term: Term, base: Term | None = None) -> Term:
    """IRI; `base`: the query's base. Without a base, a relative IRI is an error."""
    if term.kind is TermKind.IRI:
        return term
    text = _simple_text(term)
    try:
        return iri(checked(text) if base is None else resolved(base.text, text))
    except DataError as error:
        raise NotAnIri(f"{error.message}; ENCODE_FOR_URI makes a part of an IRI of any text") from None


def with_datatype(text: Term, kind: Term) -> Term:
    """STRDT."""
    if kind.kind is not TermKind.IRI or kind.text == RDF_LANG_STRING:
        raise ExpressionError("STRDT needs the IRI of a datatype")
    return literal(_simple_text(text), kind.text)


def with_language(text: Term, tag: Term) -> Term:
    """STRLANG."""
    if not is_tag(_simple_text(tag)):
        raise ExpressionError(f"{tag.text!r} is not a language tag")
    return tagged(_simple_text(text), tag.text.lower())


def length(term: Term) -> Term:
    return literal(str(len(text_of(term))), XSD_INTEGER)


def _integer(term: Term) -> int:
    """The value of an xsd:integer, or of a type derived from it."""
    number = value_of(term)
    if not isinstance(number, Number) or number.kind != INTEGER:
        raise ExpressionError("an xsd:integer was expected")
    return int(number.value)


def substring(source: Term, start: Term, count: Term | None = None) -> Term:
    """SUBSTR: positions count from 1; positions outside of the text are ignored."""
    text, first = text_of(source), _integer(start)
    end = first + _integer(count) if count else len(text) + 1
    return tagged(text[max(first, 1) - 1 : max(end, 1) - 1], source.language)


def upper(term: Term) -> Term:
    return tagged(text_of(term).upper(), term.language)


def lower(term: Term) -> Term:
    return tagged(text_of(term).lower(), term.language)


def starts(text: Term, prefix: Term) -> Term:
    first, second = _compatible(text, prefix)
    return boolean(first.startswith(second))


def ends(text: Term, suffix: Term) -> Term:
    first, second = _compatible(text, suffix)
    return boolean(first.endswith(second))


def contains(text: Term, part: Term) -> Term:
    first, second = _compatible(text, part)
    return boolean(second in first)


def before(text: Term, part: Term) -> Term:
    """STRBEFORE: a simple empty string if the part does not occur."""
    first, second = _compatible(text, part)
    head, found, _ = first.partition(second) if second else ("", True, "")
    return tagged(head, text.language) if found else literal("")


def after(text: Term, part: Term) -> Term:
    first, second = _compatible(text, part)
    _, found, tail = first.partition(second) if second else ("", True, first)
    return tagged(tail, text.language) if found else literal("")


def encode_for_uri(term: Term, *, max_text: int = MAX_TEXT) -> Term:
    text = text_of(term)
    data = text.encode()
    if len(data) + 2 * len(data.translate(None, _NOT_ENCODED)) > max_text:
        raise too_long("ENCODE_FOR_URI", max_text)
    # `quote` makes an object for each character on the way.
    return literal("".join(quote(text[at : at + _AT_ONCE], safe="-_.~") for at in range(0, len(text), _AT_ONCE)))


def concatenated(*terms: Term, max_text: int = MAX_TEXT) -> Term:
    """CONCAT: with a language tag only if all arguments have the same one."""
    texts = [text_of(term) for term in terms]
    if sum(map(len, texts)) > max_text:
        raise too_long("CONCAT", max_text)
    tags = {term.language for term in terms}
    return tagged("".join(texts), tags.pop() if len(tags) == 1 else "")


def matches(text: Term, pattern: Term, flags: Term | None = None) -> Term:
    """REGEX."""
    compiled = compile_pattern(_simple_text(pattern), _simple_text(flags) if flags else "")
    return boolean(compiled.found_in(text_of(text)))


def replaced(
    text: Term, pattern: Term, replacement: Term, flags: Term | None = None, *, max_text: int = MAX_TEXT
) -> Term:
    """REPLACE: an error if the pattern matches the empty string (XPath's FORX0003)."""
    options = _simple_text(flags) if flags else ""
    compiled = compile_pattern(_simple_text(pattern), options)
    source, template = text_of(text), _simple_text(replacement)
    if compiled.found_in(""):
        raise ExpressionError("REPLACE with a pattern that matches the empty string")
    part = (lambda _: template) if "q" in options else expander(template, compiled.groups)
    return tagged(regexes.replaced(source, compiled, part, max_text), text.language)


def hashed(algorithm: str) -> Callable[[Term], Term]:
    """MD5, SHA1, SHA256, SHA384 or SHA512 of the UTF-8 text, in lower-case hexadecimal digits."""

    def function(term: Term) -> Term:
        digest = hashlib.new(algorithm, _simple_text(term).encode(), usedforsecurity=False)
        return literal(digest.hexdigest(), XSD_STRING)

    return function
