"""Details of grouping that rdflib's translation loses, restored.

rdflib replaces each aggregate by a variable `__agg_1__`, `__agg_2__` …, and wraps every other variable of the clauses
above the group in SAMPLE, grouping variables too. Here they get the meaning that they have in the text; a variable that is neither
a grouping variable nor an aggregate is an error, as SPARQL 1.1 has it (18.2.4.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rdflib import Variable
from rdflib.plugins.sparql.parserutils import CompValue

from cqels_py.algebra.nodes import AggregateCall, Expression, VariableRef
from cqels_py.parser.prepare import ALIAS, FreshVariables, UnseenAlias
from cqels_py.parser.source import wrong


@dataclass(frozen=True, slots=True)
class _Plain:
    """A variable above a group that stood there by itself."""

    variable: Variable
    is_key: bool


class Groups:
    """The group being read; `selected` is the variable whose expression is being read, if any."""

    def __init__(self, fresh: FreshVariables) -> None:
        self._fresh = fresh
        self._meanings: dict[Variable, Variable | _Plain] = {}
        self.selected: Variable | None = None

    def enter(
        self, keys: tuple[Variable, ...], calls: list[CompValue], read: Callable[[CompValue], AggregateCall]
    ) -> tuple[tuple[Variable, AggregateCall], ...]:
        """A group's aggregates, the same one once; afterwards `meaning` knows rdflib's variables for them."""
        meanings: dict[Variable, Variable | _Plain] = {}
        results: dict[AggregateCall, Variable] = {}
        for call in calls:
            if call.name == "Aggregate_Sample" and "distinct" not in call:
                meanings[call.res] = _Plain(call.vars, call.vars in keys)
                continue
            aggregate = read(call)
            if aggregate not in results:
                results[aggregate] = call[ALIAS] if ALIAS in call else self._fresh.make("agg")
            meanings[call.res] = results[aggregate]
        self._meanings = meanings
        return tuple((variable, aggregate) for aggregate, variable in results.items())

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Another group may be entered meanwhile."""
        before = self._meanings, self.selected
        self._meanings, self.selected = {}, None
        yield
        self._meanings, self.selected = before

    def meaning(self, variable: Variable, visible: frozenset[Variable]) -> Expression:
        """The meaning of a variable of rdflib's translation, above a pattern with these variables."""
        found = self._meanings.get(variable)
        match found:
            case None:
                return VariableRef(Variable(variable))
            case Variable():
                return VariableRef(found)
            case _Plain(plain, is_key):
                if isinstance(plain, UnseenAlias):
                    return VariableRef(Variable(plain))
                if not is_key:
                    self.check_visible([plain], visible)
                return VariableRef(plain)

    def check_visible(self, variables: Iterable[Variable], visible: frozenset[Variable]) -> None:
        """Above a group only its keys, its aggregates and expressions over these have values."""
        for variable in variables:
            if variable not in visible:
                where = "used in HAVING or ORDER BY" if self.selected is None else "selected"
                raise wrong(
                    f"?{variable} is {where}, but is neither in GROUP BY nor in an aggregate: add it to GROUP BY, or "
                    f"write SAMPLE(?{variable})",
                    f"?{variable}",
                    ("HAVING", "ORDER") if self.selected is None else (),
                )
