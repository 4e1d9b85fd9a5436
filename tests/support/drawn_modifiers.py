"""Order, slices, aggregates over any term, and NOW() in generated queries.

Each function takes the query under construction (`tests.support.generators`) and returns a piece of its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.support.generators import DrawnQuery

MODIFIERS = frozenset({"slice", "samples", "now"})
"""Features whose answers may differ in another store: SPARQL leaves them open, or they depend on the tick."""


def any_slice(query: DrawnQuery, columns: Sequence[str], hidden: Sequence[str]) -> str:
    """ORDER BY, LIMIT and OFFSET, each or none, by columns and by variables that are not selected."""
    variables = query.draw(st.permutations([*columns, *hidden]))
    keys = [_key(query, name) for name in variables[: query.draw(st.integers(0, 2))]]
    parts = [f"ORDER BY {' '.join(keys)}"] if keys else []
    parts += [f"LIMIT {query.draw(st.integers(0, 4))}"] if query.chance(60) else []
    parts += [f"OFFSET {query.draw(st.integers(1, 3))}"] if query.chance(40) else []
    return " ".join(parts)


def _key(query: DrawnQuery, name: str) -> str:
    if query.kinds.get(name) in ("node", "str") and query.chance(30):
        return f"DESC(STRLEN(STR({name})))"
    return f"{query.pick(['', 'ASC', 'DESC', 'DESC'])}({name})".replace("()", "")


def sampled(query: DrawnQuery) -> str:
    """An aggregate that accepts any term."""
    forms = ["COUNT(DISTINCT *)", "COUNT(DISTINCT *)"]
    for name in [query.pick(query.visible())] * 2 if query.visible() else []:
        separator = query.pick(["", "; SEPARATOR=''", "; SEPARATOR='\", '"])
        forms += [f"SAMPLE({name})", f"SAMPLE(DISTINCT {name})", f"MIN({name})", f"MAX(STR({name}))"]
        forms += [f"GROUP_CONCAT({name}{separator})", f"GROUP_CONCAT(DISTINCT {name}{separator})"]
        forms += [f"GROUP_CONCAT(STR({name}){separator})", f"STRLEN(GROUP_CONCAT({name}{separator}))"]
    for name in query.known("int", "dec")[:1]:
        forms += [f"GROUP_CONCAT(1 / {name})", f"SAMPLE(1 / {name})", f"COUNT(DISTINCT 1 / {name})", f"SUM(1 / {name})"]
    return query.pick(forms)


def timed(query: DrawnQuery) -> str:
    """NOW() in a filter, an expression, or a pattern of its own."""
    return query.pick([_filter, _bind, _inside, _optional, _without])(query)


def _condition(query: DrawnQuery) -> str:
    forms = ["SECONDS(NOW()) >= 2.5", "SECONDS(NOW()) < 4", "STRENDS(STR(NOW()), '00Z')"]
    forms += [f"SECONDS(NOW()) > {name}" for name in query.known("int", "dec", "num")[:1]] * 2
    forms += [f"NOW() > {name}" for name in query.known("when")[:1]] * 2
    return query.pick(forms)


def _filter(query: DrawnQuery) -> str:
    return f"FILTER ({_condition(query)})"


def _bind(query: DrawnQuery) -> str:
    forms = ["NOW()", "STR(NOW())", "SECONDS(NOW())", f"IF({_condition(query)}, 1, 2)"]
    forms += [f"SECONDS(NOW()) + {name}" for name in query.known("int", "dec")[:1]]
    query.made += 1
    name = f"?b{query.made}"
    query.maybe[name] = "bound"
    return f"BIND ({query.pick(forms)} AS {name})"


def _inside(query: DrawnQuery) -> str:
    return query.block(f"{query.triple(query.shared_node())} FILTER (SECONDS(NOW()) < 50)")


def _optional(query: DrawnQuery) -> str:
    with query.hidden(keep_as_maybe=True):
        body = query.block(query.triple(query.shared_node()))
        return f"OPTIONAL {{ {body} {_filter(query)} }}"


def _without(query: DrawnQuery) -> str:
    with query.hidden():
        body = query.block(query.triple(query.shared_node()), needed=False)
        word = query.pick(["MINUS", "FILTER NOT EXISTS"])
        return f"{word} {{ {body} FILTER ({query.pick(['SECONDS(NOW()) > 2', 'MINUTES(NOW()) = 0'])}) }}"
