"""Programs and facts in the syntax of MeTeoR, the reasoner for DatalogMTL: `Flag(X):-Boxminus[0,4]P(X),Q(X)` and
`P(a)@[0,2.5)`. One unit of time is a second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from cqels_py.algebra.temporal_rules import (
    FOREVER,
    Always,
    Atom,
    Formula,
    Interval,
    Rule,
    Since,
    Sometime,
    Term,
    Variable,
    variables_of,
)
from cqels_py.errors import CqelsError, DataError, Place, QuerySyntaxError, UnsupportedQuery

_BACK: dict[str, type[Always | Sometime]] = {
    "Boxminus": Always,
    "Diamondminus": Sometime,
    "ALWAYS": Always,
    "SOMETIME": Sometime,
}
_UNARY = (*_BACK, "Boxplus", "Diamondplus")
_SIGNED = ("ALWAYS", "SOMETIME")
_NUMBER = re.compile(r"[+-]?(?:inf|\d+(?:\.\d+)?)")
_TOKEN = re.compile(
    r"\s*(:-|[\[\](),@]|[+-]?(?:inf\b|\d+(?:\.\d+)?(?![\w.:#/-]))|[^\s\[\](),@]+?(?=:-|[\s\[\](),@]|$))"
)
_JOINED = re.compile(
    r"((?:(?!:-)[^\s\[\](),@])+?)(?:Since|Until)(?=\s*[\[(]\s*[+-]?(?:inf|\d+(?:\.\d+)?)[^\[\]()]*[\])]\s*[^\s,:@\])])"
)
"""An atom without arguments that is followed by Since without a blank, as in `PSince[0,1]Q`."""
_DECIMALS = 6


def read_meteor_rules(text: str, source: str | None = None) -> tuple[Rule, ...]:
    """The rules of a program, one a line; lines without text are skipped.

    QuerySyntaxError and UnsupportedQuery name line and column, and a rule that would work.
    """
    lines = enumerate(text.splitlines(), 1)
    return tuple(_RuleReader(line, number, source).rule() for number, line in lines if line.strip())


def read_meteor_fact(line: str, number: int, source: str | None = None) -> tuple[Atom, Interval]:
    """A fact and when it holds. DataError names line and column."""
    return _FactReader(line, number, source).fact()


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    column: int


class _Reader:
    """The tokens of a line."""

    syntax_error: type[CqelsError] = QuerySyntaxError

    def __init__(self, line: str, number: int, source: str | None) -> None:
        self._line, self._number, self._source = line, number, source
        self._tokens = self._split()
        self._at = 0

    def _split(self) -> list[_Token]:
        tokens, position, end = [], 0, len(self._line.rstrip())
        while position < end:
            found = _JOINED.match(self._line, position) or _TOKEN.match(self._line, position)
            if found is None:
                raise self.wrong(f"unexpected {self._line[position]!r}", position + 1)
            tokens.append(_Token(found[1], found.start(1) + 1))
            position = found.end(1)
        return tokens

    def place(self, column: int) -> Place:
        return Place(self._number, column, self._source)

    def wrong(self, message: str, column: int) -> CqelsError:
        return self.syntax_error(message, self.place(column))

    @property
    def column(self) -> int:
        return self._tokens[self._at].column if self._at < len(self._tokens) else len(self._line) + 1

    def peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def take(self) -> str:
        text = self.peek()
        self._at += 1
        return text

    def expect(self, *texts: str) -> str:
        if self.peek() not in texts:
            wanted = " or ".join(repr(text) for text in texts)
            raise self.wrong(f"expected {wanted}, found {self.peek() or 'the end of the line'!r}", self.column)
        return self.take()

    def name(self, what: str) -> str:
        if not self.peek() or self.peek() in ("[", "]", "(", ")", ",", "@", ":-"):
            raise self.wrong(f"expected {what}, found {self.peek() or 'the end of the line'!r}", self.column)
        return self.take()

    def terms(self) -> list[str]:
        """The terms of an atom, of which there may be none."""
        if self.peek() != "(":
            return []
        self.take()
        found = [self.name("a term")]
        while self.expect(",", ")") == ",":
            found.append(self.name("a term"))
        return found

    def interval(self) -> Interval:
        column = self.column
        closed_lo = self.expect("[", "(") == "["
        lo, hi = self.number(), None
        if self.peek() == ",":
            self.take()
            hi = self.number()
        closed_hi = self.expect("]", ")") == "]"
        return self.bounded(lo, closed_lo, lo if hi is None else hi, closed_hi, column)

    def bounded(self, lo: int, closed_lo: bool, hi: int, closed_hi: bool, column: int) -> Interval:
        if lo > hi:
            raise self.wrong("the interval ends before it begins: write the smaller number first", column)
        if lo == FOREVER or hi == -FOREVER:
            raise self.wrong("this interval is empty: inf can be the upper end only, -inf the lower end only", column)
        first = lo if lo == -FOREVER else 2 * lo + (not closed_lo)
        last = hi if hi == FOREVER else 2 * hi - (not closed_hi)
        if first > last:
            raise self.wrong("this interval is empty: a point is written [3,3]", column)
        return Interval(first, last)

    def number(self) -> int:
        """Microseconds, or FOREVER with a sign."""
        column, text = self.column, self.peek()
        if not _NUMBER.fullmatch(text):
            raise self.wrong(f"expected a number, found {text or 'the end of the line'!r}", column)
        self.take()
        if text.endswith("inf"):
            return -FOREVER if text.startswith("-") else FOREVER
        if len(text.partition(".")[2]) > _DECIMALS:
            raise self.wrong(f"{text} has more than {_DECIMALS} decimals: times are whole microseconds", column)
        micros = int(Decimal(text).scaleb(_DECIMALS))
        if abs(micros) >= FOREVER // 4:
            raise self.wrong(
                f"{text} is too far from 0: up to {FOREVER // 4 // 10**_DECIMALS} s can be computed", column
            )
        return micros


class _FactReader(_Reader):
    syntax_error = DataError

    def fact(self) -> tuple[Atom, Interval]:
        atom = Atom(self.name("a predicate"), tuple(self.terms()))
        self.expect("@")
        if self.peek() in ("[", "("):
            interval = self.interval()
        else:
            column = self.column
            point = self.number()
            interval = self.bounded(point, True, point, True, column)
        if self.peek():
            raise self.wrong(f"unexpected {self.peek()!r} after the interval", self.column)
        return atom, interval


class _RuleReader(_Reader):
    def rule(self) -> Rule:
        place = self.place(self.column)
        spans, head = self._head()
        self.expect(":-")
        body = [self._literal()]
        while self.peek() == ",":
            self.take()
            body.append(self._literal())
        if self.peek():
            raise self.wrong(f"unexpected {self.peek()!r}: literals are separated by commas", self.column)
        rule = Rule(head, spans, tuple(body), place)
        self._check_bound(rule)
        return rule

    def _head(self) -> tuple[tuple[Interval, ...], Atom]:
        spans = []
        while self._is_operator():
            column, operator = self.column, self.take()
            interval = self.interval()
            if operator not in ("Boxplus", "ALWAYS") or interval.lo < 0:
                raise UnsupportedQuery(
                    f"{operator} in a head: a head says how long it holds from now on, as in Boxplus[0,3]P(X):-Q(X)",
                    self.place(column),
                )
            spans.append(interval)
        return tuple(spans), self._atom()

    def _is_operator(self) -> bool:
        following = self._tokens[self._at + 1].text if self._at + 1 < len(self._tokens) else ""
        # `Boxminus[0,1]`, or `Boxminus(0,1]` with a number; a predicate may have any name.
        if self.peek() not in _UNARY or following not in ("[", "("):
            return False
        return following == "[" or bool(_NUMBER.fullmatch(self._tokens[self._at + 2].text))

    def _literal(self) -> Formula:
        left = self._prefixed()
        if self.peek() not in ("Since", "Until"):
            return left
        column = self.column
        if self.take() == "Until":
            raise self._looks_ahead("Until", column)
        return Since(left, self._past(self.interval(), "Since", column), self._prefixed())

    def _prefixed(self) -> Formula:
        if not self._is_operator():
            return self._atom()
        column, operator = self.column, self.take()
        interval = self.interval()
        if operator not in _BACK:
            raise self._looks_ahead(operator, column)
        if operator in _SIGNED:
            interval = Interval(-interval.hi, -interval.lo)
        interval = self._past(interval, operator, column)
        node = _BACK[operator]
        if node is Always and interval.hi == FOREVER:
            raise UnsupportedQuery(
                f"{operator} without end: nothing is known of the time before the first fact, so it never holds; give it"
                " a bound",
                self.place(column),
            )
        return node(interval, self._prefixed())

    def _past(self, interval: Interval, operator: str, column: int) -> Interval:
        if interval.lo < 0:
            raise self._looks_ahead(operator, column)
        return interval

    def _looks_ahead(self, operator: str, column: int) -> CqelsError:
        return UnsupportedQuery(
            f"{operator} looks ahead: bodies look back, and later conclusions are said in the head, as in"
            " Boxplus[0,3]P(X):-Q(X)",
            self.place(column),
        )

    def _atom(self) -> Atom:
        return Atom(self.name("a predicate"), tuple(map(_term, self.terms())))

    def _check_bound(self, rule: Rule) -> None:
        bound = {variable for formula in rule.body for variable in _bound_by(formula)}
        for variable in rule.head.variables:
            if variable not in bound:
                raise UnsupportedQuery(
                    f"{variable.name} is not bound: an atom of the body, and not only one left of Since, has to have it",
                    rule.place,
                )


def _bound_by(formula: Formula) -> tuple[Variable, ...]:
    return variables_of(formula.right if isinstance(formula, Since) else formula)


def _term(text: str) -> Term:
    return Variable(text) if text[0].isupper() else text
