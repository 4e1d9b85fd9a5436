"""What an IRI is, for all that takes one as a text, and how relative references become IRIs: RFC 3987, and RFC 3986, section 5.2.

>>> is_iri("urn:a"), is_iri("a"), is_iri("http://ex.org/100%")
(True, False, False)
>>> resolved("coap://host/a/b?c", "../d"), resolved("coap://host/a/b?c", "?")
('coap://host/d', 'coap://host/a/b?')
"""

from __future__ import annotations

import re
from urllib.parse import quote

import numpy as np

from cqels_py.errors import DataError
from cqels_py.kernels.values import iris as kernel
from cqels_py.languages import check_tag

_PARTS = re.compile(r"(?:([^:/?#]+:))?(//[^/?#]*)?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
# Certainly an IRI: most are, and need no call of a kernel.
_PLAIN = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[\w.~/;=,@+:-]*)?(?:#[\w.~/-]*)?", re.ASCII).fullmatch
_SEGMENT = re.compile(r"/[^/]*|[^/]+")
_LEADING_DOTS = re.compile(r"^(?:(?:\.\.?/)+(?:\.\.?$)?|\.\.?$)")
_SHOWN = 80


def is_iri(text: str) -> bool:
    """Is the text, without angle brackets, an IRI with a scheme?"""
    return fault_of(text) is None


def fault_of(text: str) -> str | None:
    """Why a text is no IRI with a scheme, and what to write instead; None if it is one."""
    if _PLAIN(text):
        return None
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return "it contains half a character (a lone surrogate)"
    stop = kernel.iri_stop(np.frombuffer(data or b"\0", np.uint8), 0, len(data))
    if stop == len(data) > 0:
        return None
    if stop == 0:
        return "it does not begin with a scheme; an absolute IRI is like http://example.org/a"
    wrong = data[stop:].decode("utf-8", "replace")[0]
    if wrong == "%":
        return "'%' stands only before two hexadecimal digits; as a character of its own it is written %25"
    encoded = quote(wrong, safe="")
    return f"{wrong!r} cannot stand there" + ("" if encoded == wrong else f"; it is written {encoded}")


def checked(text: str) -> str:
    """The text, without angle brackets, if it is an IRI with a scheme. DataError otherwise."""
    fault = fault_of(text)
    if fault is not None:
        shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
        raise DataError(f"<{shown}> is not an IRI: {fault}")
    return text


def check_names_of(term: str) -> None:
    """DataError for a term in canonical N-Triples form if its IRI, or a literal's datatype or language tag, is none."""
    if term.endswith(">"):
        checked(term[term.rindex("<") + 1 : -1])
    elif term.startswith('"') and not term.endswith('"'):
        check_tag(term[term.rindex("@") + 1 :])


def resolved(base: str, reference: str) -> str:
    """The IRI that a reference stands for, relative to a base with a scheme. An absolute one is as it is written; DataError if
    there is none."""
    scheme, authority, path, query, fragment = _parts(reference)
    if scheme is not None:
        return checked(reference)
    scheme, above, folder, asked, _ = _parts(base)
    is_new = bool(path) or authority is not None
    if authority is None:
        authority = above
        if not path:
            path, query = folder, asked if query is None else query
        elif not path.startswith("/"):
            path = ("/" if authority is not None and not folder else folder[: folder.rfind("/") + 1]) + path
    begin, end = f"{scheme or ''}{authority or ''}", f"{query or ''}{fragment or ''}"
    # Also the segments that are removed have to be well-formed.
    checked(begin + path + end)
    path = _without_dots(path) if is_new else path
    if authority is None and path.startswith("//"):
        raise DataError(
            f"<{reference}> relative to <{base}> is not an IRI: its path would begin with //, as a host does"
        )
    return begin + path + end


def _parts(reference: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    """Scheme, authority, path, query and fragment, with their delimiters; None: not there."""
    match = _PARTS.fullmatch(reference)
    assert match is not None
    return match[1], match[2], match[3], match[4], match[5]


def _without_dots(path: str) -> str:
    """Without the segments "." and ".." (RFC 3986, 5.2.4)."""
    if "." not in path:
        return path
    found: list[str] = []
    # What stands before the first slash, if it is only dots, goes with the slash.
    segments = _SEGMENT.findall(_LEADING_DOTS.sub("", path))
    for segment in segments:
        if segment == "/..":
            del found[-1:]
        elif segment != "/.":
            found.append(segment)
    if segments and segments[-1] in ("/.", "/.."):
        found.append("/")
    return "".join(found)
