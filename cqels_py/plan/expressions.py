"""Expressions of the physical plan: postfix programs over columns of term ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Instruction: TypeAlias = tuple[str, int | str]
"""One of:

("variable", i)   the value of input i
("constant", t)   a term, as its N-Triples text
("bound", i)      BOUND of input i
("now", 0)        the tick's time
(function, n)     an operator, builtin or cast, by its name in the algebra, of the n topmost values
"""


@dataclass(frozen=True, slots=True)
class ExpressionProgram:
    """An expression, compiled.

    `inputs`: names of the variables, in the order of the columns that the evaluator expects. `text`: SPARQL, for
    explain. `deterministic`: the value depends on the inputs alone, and not on the tick (NOW).
    """

    instructions: tuple[Instruction, ...]
    inputs: tuple[str, ...]
    text: str
    deterministic: bool = True

    def __str__(self) -> str:
        return self.text
