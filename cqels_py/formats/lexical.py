"""Terms in columns: their lexical forms and datatypes, taken apart by Arrow."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.terms.canonical import unescape
from cqels_py.terms.layout import XSD

IRI, BLANK = "iri", "blank"
_TEXT = pa.large_string()
_PARTS = r'(?s)^"(?P<text>.*)"(?:@(?P<language>[A-Za-z0-9-]+)|\^\^<(?P<datatype>[^<>]*)>)?$'
_STAND_IN = "\x00"


@dataclass(frozen=True, slots=True)
class Terms:
    """n terms, null for unbound.

    `lexical`: without quotes, brackets and escapes. `datatypes`: IRIs, "@en" for texts with a language, "iri" or "blank" for nodes.
    """

    lexical: pa.Array
    datatypes: pa.Array

    @property
    def most_fraction_digits(self) -> int:
        """The most digits behind a point in the lexical forms."""
        fractions = pc.struct_field(pc.extract_regex(self.lexical, r"\.(?P<digits>[0-9]*)$"), [0])
        return pc.max(pc.utf8_length(fractions)).as_py() or 0


def terms_of(ids: Ids, dictionary: Dictionary) -> Terms:
    """The terms (n) of ids."""
    data, offsets = dictionary.decode_bytes(ids)
    texts = pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(data))
    unbound, node = pc.equal(pc.binary_length(texts), 0), pc.match_substring_regex(texts, "^[<_]")
    parts = pc.extract_regex(texts, _PARTS)
    text, language, datatype = (pc.struct_field(parts, [place]) for place in range(3))
    lexical = pc.if_else(node, pc.utf8_trim(texts, "<>"), _unescaped(text))
    plain = pc.and_(pc.equal(pc.binary_length(language), 0), pc.equal(pc.binary_length(datatype), 0))
    literal = pc.if_else(plain, _scalar(XSD + "string"), datatype)
    tagged = pc.binary_join_element_wise(_scalar("@"), language, _scalar(""))
    literal = pc.if_else(pc.greater(pc.binary_length(language), 0), tagged, literal)
    of_node = pc.if_else(pc.starts_with(texts, "_"), _scalar(BLANK), _scalar(IRI))
    null = pa.scalar(None, _TEXT)
    return Terms(pc.if_else(unbound, null, lexical), pc.if_else(unbound, null, pc.if_else(node, of_node, literal)))


def _unescaped(texts: pa.Array) -> pa.Array:
    r"""Canonical forms have the escapes \\, \", \n and \r alone."""
    if not pc.any(pc.match_substring(texts, "\\")).as_py():
        return texts
    if pc.any(pc.match_substring(texts, _STAND_IN)).as_py():
        # Texts with a character that Arrow would need for the backslash: hardly ever.
        return pa.array([None if each is None else unescape(each) for each in texts.to_pylist()], _TEXT)
    for escape, character in (("\\\\", _STAND_IN), ('\\"', '"'), ("\\n", "\n"), ("\\r", "\r"), (_STAND_IN, "\\")):
        texts = pc.replace_substring(texts, escape, character)
    return texts


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, _TEXT)
