"""A mapping: the template of an element, and the expressions over the columns of a row that fill it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from cqels_py.algebra.nodes import Extend, Filter, Pattern
from cqels_py.errors import QueryError, UnsupportedQuery, UsageError
from cqels_py.parser import parse_mapping
from cqels_py.parser.source import Source
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.planner.expressions import compile_expression
from cqels_py.planner.leaves import template_triple

TIME = "time"
"""The variable whose value is the time of the element."""


@dataclass(frozen=True, slots=True)
class Bind:
    """BIND: `variable` has the expression's value from here on."""

    variable: str
    expression: ExpressionProgram


@dataclass(frozen=True, slots=True)
class Keep:
    """FILTER: rows for which the condition is not true make no element."""

    condition: ExpressionProgram


Step: TypeAlias = Bind | Keep


@dataclass(frozen=True, slots=True)
class Mapping:
    """How a row, or a JSON object, becomes an element.

    `text`: the CONSTRUCT. `source`: its file, for messages. `template`: triples of variables ("?name"), N-Triples texts and
    blank nodes ("_:label", new for each element). `steps`: in the order in which they are evaluated. `columns`: the variables
    that are read from the row, in order of their appearance.
    """

    text: str
    source: str | None
    template: tuple[tuple[str, str, str], ...]
    steps: tuple[Step, ...]
    columns: tuple[str, ...]

    @classmethod
    def read(cls, path: str | Path) -> Mapping:
        """The mapping in a file. UsageError if it is not there or no UTF-8."""
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the mapping {path} cannot be read: {error}") from None
        return cls.of(text, str(path))

    @classmethod
    def of(cls, text: str, source: str | None = None) -> Mapping:
        """The mapping of a CONSTRUCT's text; `source` names it in messages.

        Raises QuerySyntaxError and UnsupportedQuery, with the place.
        """
        if not isinstance(text, str):
            raise UsageError(f"a mapping is the text of a CONSTRUCT, not {text!r}")
        query = parse_mapping(text, source=source or "<mapping>")
        steps = tuple(_steps(query.pattern, Source(text, source or "<mapping>")))
        triples = tuple(template_triple(triple) for triple in query.template)
        template = tuple((each.subject, each.predicate, each.object) for each in triples)
        return cls(text, source, template, steps, tuple(_columns(steps, template)))


def _steps(pattern: Pattern, source: Source) -> Iterator[Step]:
    """In the order of evaluation: as written, with the filters last."""
    if isinstance(pattern, Extend):
        yield from _steps(pattern.pattern, source)
        yield Bind(str(pattern.variable), _compiled(pattern.expression, source))
    elif isinstance(pattern, Filter):
        yield from _steps(pattern.pattern, source)
        yield Keep(_compiled(pattern.condition, source))


def _compiled(expression: object, source: Source) -> ExpressionProgram:
    try:
        program = compile_expression(expression)  # type: ignore[arg-type]
    except QueryError as error:
        raise UnsupportedQuery(error.message, source.place(0)) from None
    if not program.deterministic:
        raise UnsupportedQuery(
            "NOW() has no value in a mapping: a row has no time before ?time is bound", source.place(0)
        )
    return program


def _columns(steps: Sequence[Step], template: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Variables that are read before they are bound, or never bound."""
    bound: set[str] = set()
    seen: set[str] = set()
    for step in steps:
        program = step.expression if isinstance(step, Bind) else step.condition
        for name in program.inputs:
            if name not in bound and name not in seen:
                seen.add(name)
                yield name
        if isinstance(step, Bind):
            bound.add(step.variable)
    used = [part[1:] for triple in template for part in triple if part.startswith("?")]
    for name in dict.fromkeys([*used, TIME]):
        if name not in bound and name not in seen:
            seen.add(name)
            yield name
