"""The dataset of a one-shot query: which of the graphs that the service has the query names, and requests that are refused.

The query is only divided into tokens here: it may be found to name more graphs than it does, never fewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cqels_py.errors import DataError, UsageError
from cqels_py.iris import resolved
from cqels_py.parser.tokens import MOST_BRACKETS
from cqels_py.service.failures import Forbidden

_TOKEN = re.compile(
    r'''"""(?:[^\\]|\\.)*?(?:"""|\Z) | \'\'\'(?:[^\\]|\\.)*?(?:\'\'\'|\Z) | "(?:[^"\\\n\r]|\\.)*"? | '(?:[^'\\\n\r]|\\.)*'?
    | (?P<iri><[^<>"{}|^`\\\x00-\x20]*>) | \#[^\n\r]*
    | (?P<variable>[?$]\w+) | (?P<name>[\w.-]*+:[\w.:%\\-]*+) | (?P<words>[\w.-]+)
    | (?P<bracket>[\[\](){}])''',
    re.VERBOSE | re.DOTALL,
)
# Words with no space between them are one match, so that the search for the colon of a name does not begin again at each character.
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class AskedDataset:
    """The graphs that a query names. `default`, `named`: the graphs of FROM and FROM NAMED, or None without them.

    `iris`: all in brackets. `any_graph`: may it ask for graphs that it does not name so?
    """

    default: list[str] | None = None
    named: list[str] | None = None
    iris: set[str] = field(default_factory=set)
    any_graph: bool = False


def dataset_of(text: str, base: str) -> AskedDataset:
    """The graphs that a query names, by its text. Forbidden for one with SERVICE, UsageError for FROM with a prefix."""
    found, depth = AskedDataset(), 0
    before: list[str] = ["", ""]
    for kind, token in _tokens(text):
        word = token.upper() if kind == "word" else ""
        if word == "SERVICE":
            raise Forbidden("one-shot queries ask no other server: register a query with SERVICE, or leave it out")
        after_from = before[-1] == "FROM" or before == ["FROM", "NAMED"]
        if kind == "bracket":
            depth = depth + 1 if token in "([{" else max(depth - 1, 0)
            if depth > MOST_BRACKETS:
                raise UsageError(f"the query is nested too deeply: it has more than {MOST_BRACKETS} open brackets")
            continue
        if kind == "iri":
            try:
                iri = resolved(base, token[1:-1])
            except DataError as error:
                if after_from or before[-1] in ("BASE", "GRAPH"):
                    raise UsageError(error.message) from None
                # Two comparisons look so: ?a<?b&&?c>?d.
                continue
            if before[-1] == "BASE":
                base = iri
            elif after_from:
                _add(found, iri, named=before[-1] == "NAMED")
            elif before[0] == "PREFIX":
                # Whatever begins so may be named.
                found.any_graph |= iri.startswith(graph_iri(base, "/"))
            found.iris.add(iri)
        elif kind == "name" and after_from:
            raise UsageError(f"write the graph {token} of FROM as an IRI in brackets")
        found.any_graph |= kind == "variable" and before[-1] == "GRAPH"
        before = [before[-1], word]
        if kind == "name" and before[0] == "PREFIX":
            before = ["PREFIX", "PREFIX"]
    return found


def graph_iri(base: str, iri: str) -> str:
    """An IRI that may be relative to another one. UsageError for a text that is none."""
    try:
        return resolved(base, iri)
    except DataError as error:
        raise UsageError(error.message) from None


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "words":
            yield from (("word", word) for word in _WORD.findall(match[0]))
        elif match.lastgroup is not None:
            yield match.lastgroup, match[0]


def _add(found: AskedDataset, iri: str, *, named: bool) -> None:
    found.default, found.named = found.default or [], found.named or []
    (found.named if named else found.default).append(iri)
