"""Plain Python for kernels.rendering: one term and one time at a time, with the standard library."""

from __future__ import annotations

import json

import numpy as np

from cqels_py.terms.canonical import unescape


def json_object(text: str) -> str:
    if text.startswith("<"):
        return f'{{"type":"uri","value":{_quoted(text[1:-1])}}}'
    if text.startswith("_:"):
        return f'{{"type":"bnode","value":{_quoted(text[2:])}}}'
    lexical, rest = _split(text)
    value = _quoted(unescape(lexical))
    if rest.startswith("@"):
        return f'{{"type":"literal","value":{value},"xml:lang":{_quoted(rest[1:])}}}'
    datatype = f',"datatype":{_quoted(rest[3:-1])}' if rest else ""
    return f'{{"type":"literal","value":{value}{datatype}}}'


def csv_value(text: str) -> str:
    if text.startswith("_:"):
        return text
    value = text[1:-1] if text.startswith("<") else unescape(_split(text)[0])
    if not value or any(c in value for c in ',"\n\r'):
        return '"' + value.replace('"', '""') + '"'
    return value


def tsv_term(text: str) -> str:
    return text.replace("\t", "\\t")


def time_text(micros: int) -> str:
    text = str(np.datetime_as_string(np.datetime64(micros, "us")))
    if text.startswith("-"):
        # numpy counts the sign among the four places of a year.
        year, rest = text[1:].split("-", 1)
        text = f"-{year.zfill(4)}-{rest}"
    return text.rstrip("0").rstrip(".") + "Z"


def _split(literal: str) -> tuple[str, str]:
    """The quoted part without its quotes, with escapes unchanged, and the text after it."""
    end = literal.rindex('"')
    return literal[1:end], literal[end + 1 :]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
