"""A FILTER behind MATCH LATEST, EARLIEST or CONSUME that compares events: it drops matches, and no others take their place."""

from __future__ import annotations

from cqels_py.algebra.nodes import BGP, ContinuousQuery, Event, Expression, Extend, Filter, Match, Pattern, Project
from cqels_py.algebra.printer import expression_text
from cqels_py.algebra.traverse import bottom_up
from cqels_py.algebra.validate import walk
from cqels_py.algebra.variables import Variables, event_variables, expression_variables, variables_of_event


def late_comparisons(query: ContinuousQuery) -> tuple[str, ...]:
    """A message for each FILTER over variables of several events of a MATCH that has chosen among its matches before.

    A MATCH in a subquery is not meant: the subquery says that the condition is for the matches chosen.
    """
    found = []
    for each, _ in walk(query.pattern):
        if isinstance(each, Filter):
            inner = bottom_up(each.pattern, _without_subqueries)
            read = _read(each.condition, inner)
            matches = [node for node, _ in walk(inner) if isinstance(node, Match) and _words(node)]
            found += [_message(each, match) for match in matches if _compares(read, match)]
    return tuple(dict.fromkeys(found))


def _without_subqueries(pattern: Pattern) -> Pattern:
    return BGP(()) if isinstance(pattern, Project) else pattern


def _words(match: Match) -> str:
    return " … ".join(filter(None, ("" if match.policy == "ALL" else match.policy, "CONSUME" if match.consume else "")))


def _compares(read: Variables, match: Match) -> bool:
    """Are there variables of the match among these, and no event that has all of them?"""
    mine = read & event_variables(match.pattern)
    events = [variables_of_event(node) for node, _ in walk(match.pattern) if isinstance(node, Event)]
    return bool(mine) and not any(mine <= variables for variables in events)


def _read(condition: Expression, pattern: Pattern) -> Variables:
    """The variables of a condition, with those that BIND has made its variables of."""
    read = expression_variables(condition)
    # The outermost BIND comes first, and each reads what those inside of it have made.
    for node, _ in walk(pattern):
        if isinstance(node, Extend) and node.variable in read:
            read |= expression_variables(node.expression)
    return read


def _message(filtered: Filter, match: Match) -> str:
    words = _words(match)
    return (
        f"FILTER({expression_text(filtered.condition)}) compares events behind MATCH {words}, which has chosen its matches by then: "
        f"where one fails, no other takes its place. Without {words} all matches are compared; if only the chosen ones are meant, "
        "write { SELECT * WHERE { MATCH … } } FILTER(…)"
    )
