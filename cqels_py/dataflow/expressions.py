"""Compiled expressions -> evaluators: constants become ids, and rows that need texts get their slow path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.functions.limits import NO_REPORTS, Limits
from cqels_py.functions.program import evaluate_program, is_true
from cqels_py.functions.terms import Term, parse_term, print_term
from cqels_py.kernels.values import interpreter
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.state.stop import Stop
from cqels_py.terms.layout import UNBOUND

MEMO_LIMIT = 100_000
"""Rows remembered for an expression; beyond that it starts anew."""

_SHOWN = 60
_LEAVES = {"variable": interpreter.VARIABLE, "bound": interpreter.BOUND, "now": interpreter.NOW}


def _beginning(term: Term) -> str:
    if len(term.text) <= _SHOWN:
        return print_term(term)
    return f"{print_term(replace(term, text=term.text[:_SHOWN]))} and {len(term.text) - _SHOWN:,} characters more"


class TermStore(Protocol):
    """The part of the dictionary that evaluators need."""

    def encode(self, texts: Sequence[str], *, existing: bool = False) -> Ids: ...

    def decode(self, ids: Ids) -> Sequence[str | None]: ...


def build_evaluator(program: ExpressionProgram, dictionary: TermStore, limits: Limits = NO_REPORTS) -> Evaluator:
    """The evaluator of a program. Its constants are entered in the dictionary, and must stay there."""
    constants: dict[str, int] = {}
    code = [_operation(name, argument, constants) for name, argument in program.instructions]
    return Evaluator(
        np.array(code, np.int64),
        dictionary.encode(list(constants)) if constants else np.empty(0, np.int64),
        dictionary.encode(interpreter.SPECIAL_TERMS),
        TextEvaluation(program, dictionary, limits),
    )


def _operation(name: str, argument: int | str, constants: dict[str, int]) -> tuple[int, int]:
    if name == "constant":
        return interpreter.CONSTANT, constants.setdefault(str(argument), len(constants))
    return _LEAVES.get(name, interpreter.OPERATIONS.get(name, interpreter.FUNCTION)), int(argument)


class EvaluatorBuilder:
    """Builds the evaluators of an operator's expressions; `built`: all of them, to be cleared when terms are released."""

    def __init__(self, dictionary: TermStore, limits: Limits) -> None:
        self._dictionary = dictionary
        self._limits = limits
        self.built: list[Evaluator] = []

    def build(self, program: ExpressionProgram) -> Evaluator:
        evaluator = build_evaluator(program, self._dictionary, self._limits)
        self.built.append(evaluator)
        return evaluator


class TextEvaluation:
    """Evaluates rows by way of their terms' texts, each different row once.

    It remembers values by the ids of a row: `clear` it when the dictionary releases terms.
    """

    def __init__(self, program: ExpressionProgram, dictionary: TermStore, limits: Limits = NO_REPORTS) -> None:
        self._program = program
        self._report = limits.report
        self._exceeded: list[str] = []
        self._limits = Limits(limits.max_text, self._exceeded.append, report_iri=self._no_iri)
        self._reported_iri = False
        self._dictionary = dictionary
        self._values: dict[tuple[int, ...], int] = {}
        self._tests: dict[tuple[int, ...], int] = {}
        self.stop = Stop()

    def clear(self) -> None:
        self._values.clear()
        self._tests.clear()

    def __call__(self, rows: Ids, now: Ids | None, as_test: bool) -> Ids:
        """See operators.r2r.expressions.SlowPath."""
        memo = self._tests if as_test else self._values
        timed = not self._program.deterministic and now is not None
        keys = list(zip(*(now[None].tolist() if timed and now is not None else []), *rows.tolist(), strict=True))
        keys = keys or [()] * rows.shape[1]
        new = [key for key in dict.fromkeys(keys) if key not in memo]
        if new:
            if len(memo) + len(new) > MEMO_LIMIT:
                memo.clear()
                new = list(dict.fromkeys(keys))
            memo.update(zip(new, self._evaluate(new, timed, as_test), strict=True))
        return np.fromiter((memo[key] for key in keys), np.int64, len(keys))

    def _evaluate(self, keys: list[tuple[int, ...]], timed: bool, as_test: bool) -> list[int]:
        first = int(timed)
        ids = sorted({identifier for key in keys for identifier in key[first:]} - {UNBOUND})
        texts = self._dictionary.decode(np.array(ids, np.int64))
        terms = {i: parse_term(text) for i, text in zip(ids, texts, strict=True) if text is not None}
        results = [self._value([terms.get(i) for i in key[first:]], key[0] if timed else None) for key in keys]
        if as_test:
            return [int(is_true(term)) for term in results]
        return self._encode([None if term is None else print_term(term) for term in results])

    def _value(self, row: Sequence[Term | None], now: int | None) -> Term | None:
        self.stop.look()
        value = evaluate_program(self._program.instructions, row, now, self._limits)
        if self._exceeded:
            for reason in self._exceeded:
                self._report(f"{reason}: it is an error value in {self._program.text}{self._bindings(row)}")
            self._exceeded.clear()
        return value

    def _no_iri(self, reason: str) -> None:
        """Only the first is reported: there may be one a row."""
        if not self._reported_iri:
            self._reported_iri = True
            self._exceeded.append(f"{reason} (the first of these is reported)")

    def _bindings(self, row: Sequence[Term | None]) -> str:
        """The row in a message: where each variable's value begins."""
        values = zip(self._program.inputs, row, strict=True)
        bound = [f"?{name} is {_beginning(term)}" for name, term in values if term is not None]
        return f", where {', '.join(bound)}" if bound else ""

    def _encode(self, texts: list[str | None]) -> list[int]:
        found = [text for text in texts if text is not None]
        ids = iter(self._dictionary.encode(found, existing=True).tolist() if found else [])
        return [UNBOUND if text is None else next(ids) for text in texts]
