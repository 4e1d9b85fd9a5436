"""Generated expressions, by the kind of their value. `Scope` lists the variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from bench.suites.fuzz.vocabulary import EXACT, NODES, POOLS, REAL

_REPLACEMENTS = ('"-"', '"[$0]"', '""')
_FLAGS = ("", ', "i"')
_LANGUAGES = ('"en"', '"fr"', '""')
_RANGES = ('"en"', '"*"', '"EN"')


class Expressions:
    """Generates expressions over variables by kind; `maybe`: those that may be unbound, with their kinds."""

    def __init__(self, random: Random, kinds: dict[str, str], maybe: dict[str, str], *, now: bool = False) -> None:
        self._random = random
        self._kinds = kinds
        self._maybe = maybe
        self._now = now

    def known(self, *kinds: str) -> list[str]:
        return [name for name, kind in {**self._maybe, **self._kinds}.items() if kind in kinds]

    def _pick(self, choices: Iterable[str]) -> str:
        return self._random.choice(list(choices))

    def _form(self, *forms: Callable[[], str]) -> str:
        return self._random.choice(forms)()

    # --- numbers ---

    def number(self, depth: int = 2) -> str:
        return self.exact(depth) if self._random.random() < 0.6 else self.real(depth)

    def exact(self, depth: int = 2) -> str:
        return self._number(EXACT, self.exact, depth)

    def real(self, depth: int = 2) -> str:
        return self._number(REAL, self.real, depth)

    def _number(self, kinds: tuple[str, ...], same: Callable[[int], str], depth: int) -> str:
        known = self.known(*kinds)
        if depth == 0 or self._random.random() < 0.4:
            return self._pick(known) if known and self._random.random() < 0.8 else self._pick(POOLS[self._pick(kinds)])
        less = depth - 1
        return self._form(
            lambda: f"({same(less)} {self._pick('+-*')} {same(less)})",
            lambda: (
                f"({same(less)} / {self._pick(['2', '4', '5', '0', same(0)][: 4 if 'dec' in kinds else 3])})"
                if "dec" in kinds
                else f"({same(less)} / {self._pick(['2', '4', '0'])})"
            ),
            lambda: f"{self._pick(['ABS', 'CEIL', 'FLOOR', 'ROUND'])}({same(less)})",
            lambda: f"(-{same(0)})" if known else same(0),
            lambda: f"STRLEN({self.string(less)})",
            lambda: f"IF({self.condition(less)}, {same(less)}, {same(less)})",
            lambda: f"COALESCE({same(less)}, {same(0)})",
            lambda: f"{self._pick(['YEAR', 'MONTH', 'DAY', 'HOURS', 'MINUTES', 'SECONDS'])}({self.instant()})",
            lambda: f"xsd:integer({same(less)})",
        )

    # --- texts ---

    def string(self, depth: int = 2) -> str:
        known = self.known("str", "label")
        if depth == 0 or self._random.random() < 0.4:
            return self._pick(known) if known and self._random.random() < 0.8 else self._pick(POOLS["str"])
        less = depth - 1
        return self._form(
            lambda: f"CONCAT({self.string(less)}, {self.string(less)})",
            lambda: f"{self._pick(['UCASE', 'LCASE', 'ENCODE_FOR_URI', 'STR'])}({self.string(less)})",
            lambda: f"SUBSTR({self.string(less)}, {self._pick('012')}{self._pick(['', ', 1', ', 2'])})",
            lambda: f"{self._pick(['STRBEFORE', 'STRAFTER'])}({self.string(less)}, {self._pick(POOLS['label'])})",
            lambda: f"REPLACE({self.string(less)}, {self._pattern()}, {self._pick(_REPLACEMENTS)})",
            lambda: f"STR({self.node()})",
            lambda: f"STR({self._pick([*self.known('int', 'lang', 'bool'), '1'])})",
            lambda: f"LANG({self.tagged()})",
            lambda: f"IF({self.condition(less)}, {self.string(less)}, {self.string(less)})",
            lambda: f"COALESCE({self.string(less)}, {self.string(0)})",
            lambda: f"{self._pick(['MD5', 'SHA1', 'SHA256'])}({self.string(0)})",
            lambda: f"TZ({self.instant()})",
        )

    def _pattern(self) -> str:
        return self._pick(['"x"', '"[xy]"', '"^x"', '"y$"', '"x|y"', '"[^x]"', '"é"', '"x+y?"', '"."'])

    def tagged(self) -> str:
        return self._pick([*self.known("lang"), self._pick(POOLS["lang"])])

    def node(self) -> str:
        return self._pick([*self.known("node"), self._pick(NODES)])

    def instant(self) -> str:
        if self._now and self._random.random() < 0.5:
            return "NOW()"
        return self._pick([*self.known("when"), self._pick(POOLS["when"])])

    def anything(self) -> str:
        return self._pick([*self._kinds, *self._maybe, self._pick(POOLS["mix"])])

    def ordered(self) -> str:
        """A literal of a type whose values have an order, also for pyoxigraph; two of them may be of different types."""
        kinds = ("int", "dec", "dbl", "num", "str", "label", "when")
        return self._pick([*self.known(*kinds), self._pick(POOLS[self._pick(kinds)])])

    # --- truth ---

    def condition(self, depth: int = 2) -> str:
        if depth > 0 and self._random.random() < 0.25:
            less = depth - 1
            return self._form(
                lambda: f"({self.condition(less)} && {self.condition(less)})",
                lambda: f"({self.condition(less)} || {self.condition(less)})",
                lambda: f"(!{self.condition(less)})",
                lambda: f"IF({self.condition(less)}, {self.condition(0)}, {self.condition(0)})",
                lambda: f"COALESCE({self.condition(less)}, false)",
            )
        less = max(depth - 1, 0)
        return self._form(
            lambda: f"({self.number(less)} {self._comparison()} {self.number(less)})",
            lambda: f"({self.number(less)} {self._comparison()} {self.number(less)})",
            lambda: f"({self.string(less)} {self._comparison()} {self.string(less)})",
            lambda: f"({self.instant()} {self._comparison()} {self.instant()})",
            lambda: f"({self.node()} {self._pick(['=', '!='])} {self.node()})",
            lambda: (
                f"{self._pick(['STRSTARTS', 'STRENDS', 'CONTAINS'])}({self.string(less)}, {self._pick(POOLS['label'])})"
            ),
            lambda: f"REGEX({self.string(less)}, {self._pattern()}{self._pick(_FLAGS)})",
            lambda: f"({self.number(0)} {self._pick(['IN', 'NOT IN'])} (1, 1.5, {self.number(0)}))",
            lambda: f"({self.node()} {self._pick(['IN', 'NOT IN'])} (:a, {self.node()}))",
            lambda: f"BOUND({self._pick([*self._maybe, *self._kinds])})" if self._maybe or self._kinds else "true",
            lambda: f"{self._pick(['isIRI', 'isBlank', 'isLiteral', 'isNumeric'])}({self.anything()})",
            lambda: f"sameTerm({self.anything()}, {self.anything()})",
            lambda: f"({self.anything()} {self._pick(['=', '!='])} {self.anything()})",
            lambda: f"({self.ordered()} {self._comparison()} {self.ordered()})",
            lambda: f"(LANG({self.tagged()}) = {self._pick(_LANGUAGES)})",
            lambda: f"langMatches(LANG({self.tagged()}), {self._pick(_RANGES)})",
            lambda: f"(DATATYPE({self._pick([*self.known('int', 'dec', 'str', 'when', 'bool'), '1'])}) = xsd:integer)",
            lambda: self._pick([*self.known("bool", "int", "str"), "true"]),
        )

    def _comparison(self) -> str:
        return self._pick(["=", "!=", "<", ">", "<=", ">="])
