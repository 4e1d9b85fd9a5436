"""SUM and AVG over numbers near the bounds of words, of doubles and of ids, against Python's fractions, also below a join."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

import cqels_py as cqels

_EX = "http://ex.org/"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_TYPES = ("integer", "decimal", "double")
_BOUNDS = (1, 2**53, 2**55, 10**16, 10**18, 2**62, 2**63, 2**64)
_DIGITS = 10**18
"""A quotient that does not end has nineteen significant digits: so much larger than its error, at least."""
_NUMBERS = "STREAM <http://ex.org/numbers> [ALL] { ?case <http://ex.org/number> ?n }"
_TIMES = "STREAM <http://ex.org/times> [ALL] { ?case <http://ex.org/time> ?t }"
_QUERIES = {
    "by themselves": f"SELECT ?case (SUM(?n) AS ?sum) (AVG(?n) AS ?mean) WHERE {{ {_NUMBERS} }} GROUP BY ?case",
    "below a join": f"SELECT ?case (SUM(?n) AS ?sum) (AVG(?n) AS ?mean) WHERE {{ {_NUMBERS} {_TIMES} }} GROUP BY ?case",
}


@dataclass(frozen=True)
class Sum:
    """Numbers as (text, datatype), each of which counts `times` times below a join."""

    seed: int
    numbers: tuple[tuple[str, str], ...]
    times: int

    def differs(self, found: str, datatype: str, exact: Fraction, *, mean: bool) -> bool:
        """Is a result another one than `exact`, as a number of the type that the numbers ask for?"""
        types = {each for _, each in self.numbers}
        if "double" in types:
            # Large doubles are added as the binary numbers that they are.
            size = sum(abs(Fraction(text)) for text, _ in self.numbers) * self.times
            return datatype != "double" or abs(Fraction(found) - exact) > size / 2**50
        expected = "decimal" if mean or "decimal" in types else "integer"
        return datatype != expected or abs(Fraction(found) - exact) > (abs(exact) / _DIGITS if mean else 0)


def draw(seed: int) -> Sum:
    """The numbers of a seed: one to six, near a bound, its tenth or its hundredth, with up to three digits behind the point."""
    chance = random.Random(f"sum {seed}")
    bound, types = chance.choice(_BOUNDS), chance.sample(_TYPES, chance.choice([1, 2, 3]))

    def number() -> tuple[str, str]:
        datatype = chance.choice(types)
        size = bound // chance.choice([1, 10, 100]) + chance.randrange(-9, 10)
        digits = "" if datatype == "integer" else chance.choice(["", ".5", ".25", ".1", ".999"])
        return f"{chance.choice(['', '', '-']) if size > 0 else ''}{size}{digits}", datatype

    return Sum(seed, tuple(number() for _ in range(chance.randrange(1, 7))), chance.choice([1, 2, 3, 100]))


def sum_differences(seeds: range) -> list[str]:
    """The sums and means that are others, a line each."""
    cases = {f"{_EX}{seed}": draw(seed) for seed in seeds}
    lines = []
    with cqels.Engine() as engine:
        queries = {name: engine.register(text) for name, text in _QUERIES.items()}
        for at, (name, case) in enumerate(cases.items()):
            for text, datatype in case.numbers:
                engine.push(f"{_EX}numbers", [(name, f"{_EX}number", f'"{text}"^^<{_XSD}{datatype}>')], time=at)
            times = [(name, f"{_EX}time", number) for number in range(case.times)]
            engine.push(f"{_EX}times", times, time=at)
        for place, query in queries.items():
            rows = {str(row.bindings["case"]): row.bindings for row in query.current()}
            for name, case in cases.items():
                total = sum((Fraction(text) for text, _ in case.numbers), Fraction(0))
                factor = case.times if place == "below a join" else 1
                for column, exact in (("sum", total * factor), ("mean", total / len(case.numbers))):
                    found = rows[name].get(column)
                    if found is None or case.differs(
                        str(found), str(found.datatype).removeprefix(_XSD), exact, mean=column == "mean"
                    ):
                        lines.append(
                            f"=== --seed {case.seed}: the {column} of {case.numbers} {place}: {found!r}, not {exact}"
                        )
    return lines
