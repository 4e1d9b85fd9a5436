"""The syntax of RDF 1.2 and SPARQL 1.2, which is refused: its terms are not supported yet."""

from __future__ import annotations

import re

_KINDS = (
    (re.compile(r"<<\(|\)>>"), "a triple term"),
    (re.compile(r"<<|>>|~"), "a reifier"),
    (re.compile(r"\{\||\|\}"), "an annotation"),
    (re.compile(r'(?:"(?:[^"\\]|\\.)*")?@[A-Za-z0-9-]+--[A-Za-z]*'), "a base direction"),
    (re.compile(r"@?version\b", re.IGNORECASE), "an announcement"),
)


def refusal(text: str) -> str | None:
    """The message about a text that begins with a token of RDF 1.2; None if it does not.

    >>> refusal("<<( :s :p :o )>> .")
    "'<<(' is a triple term of RDF 1.2, which is not supported yet"
    >>> refusal(":s :p :o .")
    """
    for pattern, kind in _KINDS:
        found = pattern.match(text)
        if found is not None:
            return f"{found[0]!r} is {kind} of RDF 1.2, which is not supported yet"
    return None
