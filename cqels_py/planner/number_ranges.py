"""Conclusions from comparisons of variables with numbers and with each other about their places among the integers.

The place of an integer n is 2 n, that of a number between n and n + 1 is 2 n + 1: two numbers of which one is an integer compare as
their places do. Known are differences, place(a) - place(b) <= d, and their consequences (all shortest paths).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import floor

ORIGIN = ""
"""Stands for the place 0 among the variables."""
_ENDLESS = 1 << 62


@dataclass(frozen=True, slots=True)
class Order:
    """`left` op `right`, two variables of which one has integers only; the operator is <, <=, = or !=."""

    left: str
    operator: str
    right: str

    def other(self, variable: str) -> str:
        """The other variable of the two."""
        return self.right if variable == self.left else self.left


def place_of(number: Decimal) -> int:
    """The place of a number.

    >>> place_of(Decimal(3)), place_of(Decimal("3.5")), place_of(Decimal("-0.5"))
    (6, 7, -1)
    """
    below = floor(number)
    return 2 * below + (number != below)


class Ranges:
    """The consequences of comparisons. `integers`: variables that have integers only."""

    def __init__(self, variables: Iterable[str], integers: Collection[str]) -> None:
        self.variables = [ORIGIN, *dict.fromkeys(variables)]
        self._integers = frozenset(integers)
        self._most = {(a, b): (0 if a == b else _ENDLESS) for a in self.variables for b in self.variables}

    def compare(self, variable: str, operator: str, number: Decimal) -> None:
        """The variable is compared with a constant; the operator is <, <=, =, >= or >."""
        place = place_of(number)
        between = place % 2
        if operator in ("<", "<=", "="):
            self._note(variable, ORIGIN, place if between or operator != "<" else place - 1)
        if operator in (">", ">=", "="):
            self._note(ORIGIN, variable, -place if between or operator != ">" else -place - 1)

    def order(self, order: Order) -> None:
        """Two variables are compared."""
        both = {order.left, order.right} <= self._integers
        match order.operator:
            case "<":
                self._note(order.left, order.right, -2 if both else -1)
            case "<=":
                self._note(order.left, order.right, 0)
            case "=":
                self._note(order.left, order.right, 0)
                self._note(order.right, order.left, 0)

    def _note(self, one: str, other: str, most: int) -> None:
        self._most[one, other] = min(self._most[one, other], most)

    def conclude(self) -> bool:
        """Draw all consequences; False if there are no such numbers."""
        for _ in range(2):
            for between in self.variables:
                for one in self.variables:
                    for other in self.variables:
                        through = self._most[one, between] + self._most[between, other]
                        if self._most[one, between] < _ENDLESS and self._most[between, other] < _ENDLESS:
                            self._note(one, other, through)
            self._round()
        return all(self._most[each, each] >= 0 for each in self.variables)

    def _round(self) -> None:
        """Integers have even places."""
        for name in self._integers & set(self.variables):
            for one, other in ((name, ORIGIN), (ORIGIN, name)):
                if self._most[one, other] < _ENDLESS:
                    self._most[one, other] -= self._most[one, other] % 2

    def high(self, variable: str) -> int | None:
        """The greatest place of a variable; None: there is none."""
        most = self._most.get((variable, ORIGIN), _ENDLESS)
        return None if most >= _ENDLESS else most

    def low(self, variable: str) -> int | None:
        """The least place of a variable; None: there is none."""
        most = self._most.get((ORIGIN, variable), _ENDLESS)
        return None if most >= _ENDLESS else -most

    def has_integers(self, variable: str) -> bool:
        """Are its values integers only?"""
        return variable in self._integers

    def less(self, one: str, other: str) -> bool:
        """Is one always less than the other?"""
        return self._most[one, other] < 0

    def is_redundant(self, order: Order) -> bool:
        """Does it follow from other comparisons (Definition 8)? Then its variables need not be compared."""
        a, b = order.left, order.right
        low_a, high_a, low_b, high_b = self.low(a), self.high(a), self.low(b), self.high(b)
        below = high_a is not None and low_b is not None and high_a < low_b
        above = high_b is not None and low_a is not None and high_b < low_a
        match order.operator:
            case "<":
                return below or self._between(a, b)
            case "<=":
                return (high_a is not None and low_b is not None and high_a <= low_b) or self._between(a, b)
            case "!=":
                return below or above or self._between(a, b) or self._between(b, a)
            case _:
                return low_a is not None and low_a == high_a == low_b == high_b

    def _between(self, a: str, b: str) -> bool:
        return any(self.less(a, e) and self.less(e, b) for e in self.variables if e not in (a, b, ORIGIN))
