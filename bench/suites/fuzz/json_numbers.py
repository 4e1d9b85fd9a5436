"""Numbers of JSON-LD, of every numeric type and in every way in which JSON writes them, through every entrance.

What a number is to be follows from its text, in exact arithmetic; a double is the term that a program pushes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from cqels_py.terms.values import text_of
from tests.support.json_entrances import TIME, Entrances, number

_EX = "http://ex.org/"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_FLOATS = ("double", "float")
_EXACT = ("decimal", "integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "unsignedInt")
_REFERENCES = ("@id", "@vocab")
TYPES = (None, *_FLOATS, *_EXACT, *_REFERENCES)
_BOUND = 10**21
_LEAST_FLOAT = 10**20
"""Below it, all digits of an xsd:float without a fraction are written."""


@dataclass(frozen=True)
class Drawn:
    """A number as `text`, of a member whose type in the context is `type` (None: it has none)."""

    seed: int
    text: str
    type: str | None

    @property
    def term(self) -> str:
        """The term that it is to be, in N-Triples syntax."""
        exact, type_ = Decimal(self.text), self.type
        plain = f"{exact:f}"
        plain = plain.rstrip("0").removesuffix(".") if "." in plain else plain
        plain = "0" if exact == 0 else plain
        if type_ in _EXACT:
            return f'"{plain}"^^<{_XSD}{type_}>'
        if type_ == "float" and "." not in plain and abs(exact) < _LEAST_FLOAT:
            return f'"{plain}"^^<{_XSD}float>'
        if type_ not in _FLOATS and "." not in plain and abs(exact) < _BOUND:
            return f'"{plain}"^^<{_XSD}integer>'
        double = text_of(float(exact) if exact else 0.0)
        return double.replace("#double", "#float") if type_ == "float" else double


def draw(seed: int) -> Drawn:
    """The number of a seed: small ones, those near the bounds of doubles and of JSON-LD's integers, with and without exponents."""
    chance = random.Random(f"json {seed}")
    near = chance.choice([0, 1, 2**31, 2**53, 2**63, 2**64, 10**17, 10**20, _BOUND])
    texts = (
        lambda: str(chance.choice([1, -1]) * (near + chance.randrange(-3, 4))),
        lambda: f"{chance.randrange(-1000, 1000)}.{chance.randrange(1000):03}",
        lambda: repr(chance.uniform(-1, 1) * 10.0 ** chance.randrange(-20, 25)),
        lambda: f"{chance.randrange(1, 100)}{chance.choice('eE')}{chance.choice(['', '+', '-'])}{chance.randrange(25)}",
        lambda: f"{chance.randrange(-9, 10)}.{'0' * chance.randrange(1, 4)}",
    )
    return Drawn(seed, chance.choice(texts)(), chance.choice(TYPES))


def differences(seeds: range) -> list[str]:
    """The entrances at which a drawn number is another term, a line each."""
    found = []
    with TemporaryDirectory() as folder:
        entrances = Entrances(Path(folder))
        for drawn in map(draw, seeds):
            typed = drawn.type if drawn.type in (None, *_REFERENCES) else _XSD + drawn.type
            member = {"@id": f"{_EX}value", **({} if typed is None else {"@type": typed})}
            context = {"id": "@id", "time": {"@id": TIME}, "value": member}
            read = entrances.triples(context, {"time": 1, "id": f"{_EX}s", "value": number(drawn.text)})
            expected = {(f"<{_EX}s>", f"<{_EX}value>", drawn.term)}
            found += [
                f"=== --seed {drawn.seed}: {drawn.text} as {drawn.type or 'a number'}, {name}: {triples}, not {drawn.term}"
                for name, triples in read.items()
                if triples != expected
            ]
    return found
