"""`STATE [STEP d] { … }`: the clause is read, and its group becomes a relation of the facts that the rules derive."""

from __future__ import annotations

from dataclasses import dataclass

from cqels_py.algebra.nodes import BGP, Extend, Filter, Join, Pattern, State, TriplePattern
from cqels_py.algebra.variables import has_exists
from cqels_py.parser.rules import atom_of
from cqels_py.parser.source import Source
from cqels_py.parser.times import read_duration
from cqels_py.parser.tokens import Cursor

ONLY = "STATE takes triple patterns, FILTER and BIND: write the rest beside it"


@dataclass(frozen=True, slots=True)
class StateBlock:
    """A STATE clause: where it begins in the source, and its STEP in microseconds."""

    start: int
    step: int | None


def read_step(cursor: Cursor) -> int | None:
    """`[STEP d]` at the cursor, in microseconds, if there is one. Raises QuerySyntaxError and UnsupportedQuery."""
    if not cursor.take_mark("["):
        return None
    cursor.expect_word("STEP", "STATE [, as in STATE [STEP 1s] { … }")
    step = read_duration(cursor)
    if cursor.here.is_word("START"):
        raise cursor.source.refusal(
            "START in STATE is not supported: the instants of STEP are its multiples since 1970", cursor.here.start
        )
    cursor.expect_mark("]", "at the end of [STEP …]")
    return step


def state_of(block: StateBlock, pattern: Pattern, source: Source) -> Pattern:
    """The algebra of a clause, from its group. Raises UnsupportedQuery."""
    if isinstance(pattern, Filter) and not has_exists(pattern.condition):
        return Filter(state_of(block, pattern.pattern, source), pattern.condition)
    if isinstance(pattern, Extend) and not has_exists(pattern.expression):
        return Extend(state_of(block, pattern.pattern, source), pattern.variable, pattern.expression)
    triples = _triples(pattern, block, source)
    if not triples:
        raise source.refusal("STATE { } asks nothing: write a triple pattern, as in STATE { ?x a :Hot }", block.start)
    for triple in triples:
        atom_of(triple, source, block.start)
    return State(triples, block.step, block.start)


def _triples(pattern: Pattern, block: StateBlock, source: Source) -> tuple[TriplePattern, ...]:
    match pattern:
        case BGP(triples):
            return triples
        case Join(left, right):
            return (*_triples(left, block, source), *_triples(right, block, source))
        case _:
            raise source.refusal(ONLY, block.start)
