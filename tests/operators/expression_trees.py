"""Small expression trees for tests: as programs, and as SPARQL text for another engine.

A tree is (function, tree, …), a variable "?x", or a constant: an N-Triples text or a Turtle shorthand (5, 2.5, true).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from cqels_py.dataflow.expressions import TextEvaluation, build_evaluator
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.plan.expressions import ExpressionProgram, Instruction
from tests.operators.plain_dictionary import XSD, PlainDictionary, typed

Tree: TypeAlias = str | tuple["Tree", ...]
INFIX = ("||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/")


def full(text: str) -> str:
    """A constant as N-Triples."""
    for pattern, name in (
        (r"[+-]?[0-9]+", "integer"),
        (r"[+-]?[0-9]*\.[0-9]+", "decimal"),
        (r"[+-]?[0-9.]+[eE][+-]?[0-9]+", "double"),
        (r"true|false", "boolean"),
    ):
        if re.fullmatch(pattern, text):
            return typed(text, name)
    return re.sub(r"\^\^xsd:(\w+)$", rf"^^<{XSD}\1>", text)


def program(tree: Tree) -> ExpressionProgram:
    instructions: list[Instruction] = []
    inputs: dict[str, int] = {}

    def add(node: Tree) -> None:
        if isinstance(node, tuple):
            name, *arguments = node
            assert isinstance(name, str)
            if name == "NOW":
                instructions.append(("now", 0))
            elif name == "BOUND":
                instructions.append(("bound", inputs.setdefault(str(arguments[0]), len(inputs))))
            else:
                for argument in arguments:
                    add(argument)
                instructions.append((re.sub("^xsd:", XSD, name), len(arguments)))
        elif node.startswith("?"):
            instructions.append(("variable", inputs.setdefault(node, len(inputs))))
        else:
            instructions.append(("constant", full(node)))

    add(tree)
    timed = any(name == "now" for name, _ in instructions)
    return ExpressionProgram(tuple(instructions), tuple(inputs), str(tree), not timed)


def sparql(tree: Tree) -> str:
    if isinstance(tree, str):
        return tree if tree.startswith("?") else full(tree)
    name, *arguments = tree
    texts = [sparql(argument) for argument in arguments]
    if name in INFIX:
        return f"({f' {name} '.join(texts)})"
    if name in ("IN", "NOT-IN"):
        return f"({texts[0]} {str(name).replace('-', ' ')} ({', '.join(texts[1:])}))"
    return (
        f"({str(name).removeprefix('unary')} {texts[0]})"
        if name in ("!", "unary-", "unary+")
        else (f"{name!s}({', '.join(texts)})")
    )


class Rows:
    """Solution mappings as columns, for a tree."""

    def __init__(self, tree: Tree, rows: Sequence[Mapping[str, str | None]], now: int | None = None) -> None:
        self.dictionary = PlainDictionary()
        self.program = program(tree)
        self.inputs = np.zeros((len(self.program.inputs), len(rows)), np.int64)
        for i, name in enumerate(self.program.inputs):
            for j, row in enumerate(rows):
                text = row.get(name)
                if text is not None:
                    self.inputs[i, j] = self.dictionary.encode([full(text)])[0]
        self.now = np.full(len(rows), now or 0, np.int64)

    def evaluator(self) -> Evaluator:
        return build_evaluator(self.program, self.dictionary)

    def _slow(self, as_test: bool) -> list[int]:
        evaluation = TextEvaluation(self.program, self.dictionary)
        return [int(i) for i in evaluation(self.inputs, self.now, as_test)]

    def slow_ids(self) -> list[int]:
        return self._slow(False)

    def fast_ids(self) -> list[int]:
        return [int(i) for i in self.evaluator().evaluate(self.inputs, self.now)]

    def tests(self) -> list[bool]:
        return [bool(test) for test in self.evaluator().test(self.inputs, self.now)]

    def slow_tests(self) -> list[bool]:
        return [test == 1 for test in self._slow(True)]

    def slow_terms(self) -> list[str | None]:
        return [self.dictionary.decode(np.array([i]))[0] if i else None for i in self.slow_ids()]


def value(tree: Tree, now: int = 0) -> str | None:
    """The value of an expression without variables as an N-Triples text, with the datatype shortened to xsd:…"""
    rows = Rows(tree, [{}], now)
    (text,) = rows.slow_terms()
    (fast,) = rows.fast_ids()
    (slow,) = rows.slow_ids()
    assert fast == slow, f"the kernel gives {fast}, the slow path {text}"
    return None if text is None else re.sub(rf"\^\^<{XSD}(\w+)>$", r"^^xsd:\1", text)
