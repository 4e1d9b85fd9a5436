"""`UNTIL REPLACED BY ?s WITHIN 1h`: a head that holds until the rule's next head with the same key, by SINCE and NOT."""

from __future__ import annotations

from collections.abc import Iterator

from cqels_py.algebra.temporal_rules import FOREVER, Atom, Formula, Interval, Not, Rule, Since, Sometime, Variable
from cqels_py.errors import Place


def until_replaced(
    head: Atom, key: tuple[Variable, ...], within: int | None, body: tuple[Formula, ...], number: int
) -> Iterator[Rule]:
    """The rules that stand for one: `head` holds where the body does, and after that as long as nothing new has come for the
    key, less than `within` microseconds. `number`: of this rule among those of its kind.
    """
    place = Place(0, 0)
    end = FOREVER if within is None else 2 * within - 1
    told = Atom(f"@told{number}", head.variables)
    new, quiet = Atom(f"@new{number}", key), Atom(f"@quiet{number}", key)
    yield Rule(told, (), body, place)
    yield Rule(new, (), (told,), place)
    # Only for keys that there have been: NOT alone would hold for every value.
    yield Rule(quiet, (), (Sometime(Interval(0, end), new), Not((new,))), place)
    yield Rule(head, (), (told,), place)
    yield Rule(head, (), (Since(quiet, Interval(1, end), told), quiet), place)
