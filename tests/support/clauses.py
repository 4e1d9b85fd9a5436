"""Clauses of generated queries with OPTIONAL, MINUS and EXISTS, where variables may be unbound or belong to outer
patterns.

Each takes the query under construction (`tests.support.generators`) and returns a piece of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.generators import DrawnQuery

Clause = Callable[["DrawnQuery"], str]


@contextmanager
def _maybes_known(query: DrawnQuery) -> Iterator[None]:
    """Triple patterns generated inside may use variables that may be unbound."""
    before = dict(query.kinds)
    query.kinds |= {name: kind for name, kind in query.maybe.items() if kind != "bound"}
    yield
    maybe = query.maybe.keys() - before.keys()
    query.kinds = {name: kind for name, kind in query.kinds.items() if name not in maybe}


def _block(query: DrawnQuery, needed: bool = False) -> str:
    return query.block(query.triple(query.shared_node()), needed=needed)


def _condition(query: DrawnQuery, percent: int = 60) -> str:
    return query.filter() if query.chance(percent) else ""


def nested_optional(query: DrawnQuery) -> str:
    """OPTIONAL in OPTIONAL, or one after the other; the second may use variables that the first may bind."""
    with query.hidden(keep_as_maybe=True):
        outer = query.block(query.triple(query.shared_node()))
        inner = query.optional()
        condition = _condition(query, 40)
    if query.chance(50):
        return f"OPTIONAL {{ {outer} {inner} {condition} }}"
    with _maybes_known(query), query.hidden(keep_as_maybe=True):
        after = _block(query, needed=True)
    return f"OPTIONAL {{ {outer} {condition} }} {inner} OPTIONAL {{ {after} }}"


def loose_join(query: DrawnQuery) -> str:
    """A block over variables that may be unbound."""
    before = "" if query.maybe else query.optional()
    with _maybes_known(query):
        return f"{before} {_block(query, needed=True)}"


def loose_minus(query: DrawnQuery) -> str:
    """MINUS where variables may be unbound on either side."""
    before = query.optional() if query.chance(50) else ""
    with _maybes_known(query), query.hidden():
        removed = _block(query)
        optional = query.optional() if query.chance(60) else ""
        if query.chance(30):
            removed = f"OPTIONAL {{ {removed} }}"
    return f"{before} MINUS {{ {removed} {optional} }}"


def correlated(query: DrawnQuery) -> str:
    """EXISTS with any pattern, whose filters and expressions use outer variables."""
    before = query.optional() if query.chance(25) else ""
    return f"{before} FILTER {exists(query)}"


def exists(query: DrawnQuery) -> str:
    word = query.pick(["NOT EXISTS", "EXISTS"])
    with _maybes_known(query), query.hidden():
        inner = query.pick(_INSIDE)(query)
    return f"{word} {{ {inner} }}"


def exists_value(query: DrawnQuery) -> str:
    """EXISTS inside of larger expressions."""
    form = query.pick(_EXPRESSIONS)
    # A generated window must be used: a window without a block reads no stream.
    other = "" if "{other}" not in form else exists(query) if query.chance(20) else query.condition()
    text = form.format(test=exists(query), other=other)
    if not form.startswith("BIND"):
        return text
    query.made += 1
    name = f"?b{query.made}"
    query.maybe[name] = "bound"
    return text.replace("?value", name)


_EXPRESSIONS = (
    "FILTER ({other} || {test})",
    "FILTER (!({test}) && ({other} || !({test})))",
    "FILTER (IF({test}, {other}, true))",
    "BIND ({test} AS ?value)",
    "BIND (IF({test}, 1, {other}) AS ?value)",
)


def _filtered(query: DrawnQuery) -> str:
    return f"{_block(query)} {query.filter()}"


def _unrelated(query: DrawnQuery) -> str:
    """Only the filter connects it with the outer pattern."""
    return f"{query.block(query.triple(query.fresh('node')), needed=False)} {query.filter()}"


def _union(query: DrawnQuery) -> str:
    return f"{{ {_block(query)} }} UNION {{ {_filtered(query)} }} {_condition(query)}"


def _optional(query: DrawnQuery) -> str:
    with query.hidden(keep_as_maybe=True):
        optional = f"OPTIONAL {{ {_filtered(query)} }}"
    return f"{_block(query)} {optional} {_condition(query)}"


def _minus(query: DrawnQuery) -> str:
    block = _block(query)
    with query.hidden():
        removed = _filtered(query)
    return f"{block} MINUS {{ {removed} }} {_condition(query)}"


def _nested(query: DrawnQuery) -> str:
    return f"{_block(query)} FILTER {exists(query)} {_condition(query)}"


def _bind(query: DrawnQuery) -> str:
    block, bound = _block(query), query.bind()
    name = bound.rsplit("AS ", 1)[1].rstrip(")")
    return f"{block} {bound} FILTER ({name} != 2 || {query.condition()})"


def _subquery(query: DrawnQuery) -> str:
    subject = query.shared_node()
    if not subject.startswith("?"):
        return _filtered(query)
    with query.hidden():
        body = query.block(query.triple(subject), needed=False) + " " + _condition(query, 50)
    counted = query.fresh("int")
    having = "HAVING (COUNT(*) > 1)" if query.chance(40) else ""
    grouped = f"{{ SELECT {subject} (COUNT(*) AS {counted}) WHERE {{ {body} }} GROUP BY {subject} {having} }}"
    return f"{grouped} {_condition(query)}"


def _selected(query: DrawnQuery) -> str:
    subject = query.shared_node()
    if not subject.startswith("?"):
        return _filtered(query)
    with query.hidden():
        body = query.block(query.triple(subject), needed=False) + " " + _condition(query, 50)
    words = query.pick(["SELECT", "SELECT DISTINCT", "SELECT REDUCED"])
    if query.chance(30):
        slices = ["LIMIT 1", "LIMIT 0", "OFFSET 1", "LIMIT 2 OFFSET 1"]
        sliced = query.pick(slices[:2] if "REDUCED" in words else slices)
        return f"{words} {subject} WHERE {{ {body} }} {sliced}"
    return f"{{ {words} {subject} WHERE {{ {body} }} }} {_condition(query)}"


def _sliced(query: DrawnQuery) -> str:
    """The first rows of each outer solution."""
    subject = query.shared_node()
    if not subject.startswith("?") or "slice" not in query.features:
        return _filtered(query)
    with query.hidden():
        body = query.block(query.triple(subject), needed=False)
        columns = [subject, *[name for name in query.visible() if name != subject and name in body][:1]]
        order = query.pick(["", f"ORDER BY DESC({columns[-1]})"])
    with query.hidden():
        selected = f"{query.pick(['SELECT', 'SELECT DISTINCT'])} {' '.join(columns)} WHERE {{ {body} }}"
        sliced = f"{{ {selected} {order} LIMIT {query.pick([1, 2])} {query.pick(['', 'OFFSET 1'])} }}"
        return f"{sliced} {_block(query)} {_condition(query)}"


def _values(query: DrawnQuery) -> str:
    return f"{_block(query)} {query.inline_values()} {_condition(query)}"


_INSIDE: tuple[Clause, ...] = (
    _filtered, _unrelated, _union, _optional, _minus, _nested, _bind, _subquery, _selected, _sliced, _values,
)  # fmt: skip

CLAUSES: Mapping[str, Clause] = {
    "nested_optional": nested_optional,
    "loose_join": loose_join,
    "loose_minus": loose_minus,
    "correlated": correlated,
    "exists_value": exists_value,
}
"""The clauses by the feature that adds them."""
