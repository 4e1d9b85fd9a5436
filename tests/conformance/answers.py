"""Answers and how they are compared: bags of solutions up to the labels of blank nodes, graphs likewise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rdflib import BNode, Literal
from rdflib.term import Node

from tests.oracle.naive_values import ExpressionError, canonical, number

Row: TypeAlias = Mapping[str, Node]
Renaming: TypeAlias = dict[BNode, BNode]


@dataclass(frozen=True)
class Answer:
    """Solutions by variable name, or `boolean`, or the triples of a graph as rows with the names s, p, o.

    `plain`: terms are known by their text only, as in CSV, where an unbound value is the empty text. `ordered`: the
    order of the rows matters. `by_value`: numbers have another lexical form, as the short ones of TSV.
    """

    rows: Sequence[Row] = ()
    boolean: bool | None = None
    plain: bool = False
    ordered: bool = False
    by_value: bool = False
    variables: tuple[str, ...] = field(default=())


def differences(
    expected: Answer, actual: Answer, computed: frozenset[str] = frozenset(), reduced: bool = False
) -> str | None:
    """The error of the actual answer; None if it is right.

    `reduced`: a row may occur less often than expected, as REDUCED allows. Numbers of `computed` variables are compared
    by datatype and value, because their lexical form is the engine's choice; all other terms must be identical.
    """
    if expected.boolean != actual.boolean:
        return f"expected {expected.boolean}, got {actual.boolean}"
    rows, computed = _comparable(expected, actual, computed)
    wanted = _reduced(expected.rows, rows) if reduced else expected.rows
    if _same(wanted, rows, computed):
        return None
    return "\n".join(["expected", *_shown(expected.rows), "got", *_shown(rows)])


def out_of_order(expected: Answer, actual: Answer, keys: Sequence[str], computed: frozenset[str]) -> str | None:
    """The error in the order of the actual rows by these variables; None if it is right."""
    rows, computed = _comparable(expected, actual, computed)
    wanted, got = ([[_key(row, key, computed) for key in keys] for row in each] for each in (expected.rows, rows))
    return None if wanted == got else "\n".join(["expected order", *_shown(expected.rows), "got", *_shown(rows)])


def _comparable(expected: Answer, actual: Answer, computed: frozenset[str]) -> tuple[Sequence[Row], frozenset[str]]:
    """The actual rows in the form of the expected ones, and the variables to compare by value."""
    rows = [_plain(row, expected.variables) for row in actual.rows] if expected.plain else actual.rows
    if expected.by_value:
        computed |= {name for row in expected.rows for name in row}
    return rows, computed


def _reduced(expected: Sequence[Row], actual: Sequence[Row]) -> list[Row]:
    """The expected rows, each at most as often as the actual ones have it, but once at least. They have no blank nodes."""
    counts = Counter(frozenset(row.items()) for row in actual)
    wanted = Counter(frozenset(row.items()) for row in expected)
    return [dict(row) for row, count in wanted.items() for _ in range(max(1, min(count, counts[row])))]


def _plain(row: Row, variables: Iterable[str]) -> Row:
    def plain(term: Node | None) -> Node:
        return term if isinstance(term, BNode) else Literal("" if term is None else str(term))

    return {name: plain(row.get(name)) for name in variables}


def _shown(rows: Iterable[Row]) -> list[str]:
    return [
        "  " + (" ".join(f"?{name}={term.n3()}" for name, term in sorted(row.items())) or "(nothing bound)")
        for row in rows
    ] or ["  no solutions"]


def _same(expected: Sequence[Row], actual: Sequence[Row], computed: frozenset[str]) -> bool:
    wanted, got = _by_shape(expected, computed), _by_shape(actual, computed)
    if {shape: len(rows) for shape, rows in wanted.items()} != {shape: len(rows) for shape, rows in got.items()}:
        return False
    blanks = [(wanted[shape], got[shape]) for shape in wanted if _blanks(wanted[shape][0])]
    # Few rows of one shape leave few choices: they come first.
    blanks.sort(key=lambda pair: len(pair[0]))
    open_rows = [(row, others) for rows, others in blanks for row in rows]
    return _match(open_rows, Counter(), {}, {})


def _by_shape(rows: Iterable[Row], computed: frozenset[str]) -> dict[Hashable, list[Row]]:
    """Rows that are the same up to labels of blank nodes."""
    found: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        found[frozenset((name, _key(row, name, computed)) for name in row)].append(row)
    return found


def _key(row: Row, name: str, computed: frozenset[str]) -> Hashable:
    term = row.get(name)
    if term is None or isinstance(term, BNode):
        return type(term).__name__
    term = canonical(term)
    if isinstance(term, Literal) and term.language:
        return (str(term), term.language.lower())
    if name in computed:
        try:
            found = number(term)
        except ExpressionError:
            return term
        return (found.kind, format(float(found.value) + 0.0, ".12g"))
    return term


def _blanks(row: Row) -> list[tuple[str, BNode]]:
    return [(name, term) for name, term in sorted(row.items()) if isinstance(term, BNode)]


def _match(
    rows: Sequence[tuple[Row, Sequence[Row]]], used: Counter[int], there: Renaming, back: Renaming, at: int = 0
) -> bool:
    """Can the rows from `at` on each have another row of their own, under one renaming?"""
    if at == len(rows):
        return True
    row, others = rows[at]
    for other in others:
        if used[id(other)]:
            continue
        pairs = [(one, two) for (_, one), (_, two) in zip(_blanks(row), _blanks(other), strict=True)]
        more, more_back = dict(there), dict(back)
        if all(more.setdefault(one, two) == two and more_back.setdefault(two, one) == one for one, two in pairs):
            used[id(other)] += 1
            if _match(rows, used, more, more_back, at + 1):
                return True
            used[id(other)] -= 1
    return False
