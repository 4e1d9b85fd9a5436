"""How a query was registered, as plain data, by which it is registered anew after a restart."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from cqels_py.algebra.nodes import Output
from cqels_py.engine.clocks import check_clock
from cqels_py.engine.compile import CompiledQuery, compile_query
from cqels_py.engine.registered_rules import RegisteredRules, read_rules, rule_set_of
from cqels_py.engine.services import Answers
from cqels_py.errors import UsageError

if TYPE_CHECKING:
    from cqels_py.engine.query import Query


@dataclass(frozen=True, slots=True)
class Registration:
    """How a query was registered, as plain data. `key`: its name, or its text if it was given none.

    `seed`: of its random values. `documents`: the last number of a document before it; from the next its blank nodes get their
    scopes.
    """

    key: str
    name: str | None
    text: str
    source: str | None
    changelog: bool
    entailment: str | None
    guarantee: bool
    without: tuple[str, ...]
    rules: Mapping[str, Any] | None
    services: Answers = field(default_factory=Answers, compare=False)
    seed: str = field(default="", compare=False)
    documents: int | None = field(default=None, compare=False)
    clock: str | None = None

    @staticmethod
    def of(
        text: str | CompiledQuery,
        name: str | None,
        source: str | None,
        *,
        changelog: bool,
        entailment: str | None,
        guarantee: bool,
        rules: RegisteredRules | None,
        clock: str | None,
    ) -> Registration:
        """The registration with the arguments of `Engine.register`. UsageError for a name or a clock that is none."""
        check_clock(clock)
        if name is not None and (not isinstance(name, str) or not name):
            raise UsageError(f"name is a text by which the query is known, not {name!r}")
        without: tuple[str, ...] = ()
        if isinstance(text, CompiledQuery):
            changelog = changelog or text.asked.output is Output.CHANGELOG
            guarantee, without = guarantee or text.guarantee, tuple(sorted(text.without))
            text = text.text
        given = rules.given if isinstance(rules, RegisteredRules) else None
        seed = new_seed()
        return Registration(
            name or text, name, text, source, changelog, entailment, guarantee, without, given, seed=seed, clock=clock
        )

    def compiled(self) -> CompiledQuery:
        """The query, compiled anew."""
        rules = None if self.rules is None else rule_set_of(read_rules(**self.rules, register=_registers_nothing))
        return compile_query(
            self.text,
            source=self.source,
            changelog=self.changelog,
            without=self.without,
            guarantee=self.guarantee,
            rules=rules,
            ask=self.services.again,
        )

    def plain(self) -> dict[str, Any]:
        """Plain data, from which `from_plain` makes the registration."""
        return {**{each.name: getattr(self, each.name) for each in fields(self)}, "services": self.services.given}

    @staticmethod
    def from_plain(given: Mapping[str, Any]) -> Registration:
        """The registration."""
        return Registration(**{**given, "without": tuple(given["without"]), "services": Answers(given["services"])})

    def differing(self, other: Registration) -> list[str]:
        """The options in which another registration differs."""
        names = ("text", "changelog", "entailment", "guarantee", "without", "rules", "clock")
        return [name for name in names if _plain(getattr(self, name)) != _plain(getattr(other, name))]


def new_seed() -> str:
    """The seed of a query's random values, which nobody can tell before."""
    return os.urandom(16).hex()


def _plain(value: object) -> object:
    """The value as it comes back from JSON."""
    return json.loads(json.dumps(value))


def _registers_nothing(*_: object, **__: object) -> Query:
    raise UsageError("these rules belong to an engine that has ended")
