"""Algebra expressions → postfix programs; functions that cannot be evaluated exactly are refused by name."""

from __future__ import annotations

import re

from cqels_py.algebra.function_names import instead_of
from cqels_py.algebra.nodes import Call, Constant, Exists, Expression, VariableRef
from cqels_py.algebra.printer import expression_text
from cqels_py.errors import UnsupportedQuery
from cqels_py.plan.expressions import ExpressionProgram, Instruction
from cqels_py.terms.rdf import from_rdflib

_XSD = "http://www.w3.org/2001/XMLSchema#"
_CASTS = (
    *("boolean", "integer", "decimal", "float", "double", "string"),
    *("dateTime", "date", "duration", "dayTimeDuration", "yearMonthDuration"),
)
VOLATILE = ("RAND", "UUID", "STRUUID", "BNODE")
"""Volatile functions: each evaluation gives another value. See planner.volatile."""

ARITIES: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"), (2, 2)),
    **dict.fromkeys(("!", "unary-", "unary+", "BOUND"), (1, 1)),
    **dict.fromkeys(("IN", "NOT-IN"), (1, None)),
    **dict.fromkeys(("COALESCE", "CONCAT"), (0, None)),
    "IF": (3, 3),
    "NOW": (0, 0),
    **dict.fromkeys(("STR", "LANG", "DATATYPE", "STRLEN", "UCASE", "LCASE"), (1, 1)),
    **dict.fromkeys(("IRI", "URI"), (1, 2)),
    **dict.fromkeys(("ENCODE_FOR_URI", "MD5", "SHA1", "SHA256", "SHA384", "SHA512"), (1, 1)),
    **dict.fromkeys(("ABS", "CEIL", "FLOOR", "ROUND", "ISIRI", "ISURI", "ISBLANK"), (1, 1)),
    **dict.fromkeys(("ISLITERAL", "ISNUMERIC", "TIMEZONE", "TZ"), (1, 1)),
    **dict.fromkeys(("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"), (1, 1)),
    **dict.fromkeys(("LANGMATCHES", "STRDT", "STRLANG", "SAMETERM", "CONTAINS"), (2, 2)),
    **dict.fromkeys(("STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER"), (2, 2)),
    "SUBSTR": (2, 3),
    "REGEX": (2, 3),
    "REPLACE": (3, 4),
    **{_XSD + name: (1, 1) for name in _CASTS},
}
"""Every function that can be evaluated, with the least and the greatest number of arguments (None: any)."""


def compile_expression(expression: Expression) -> ExpressionProgram:
    """The program of an expression without EXISTS; UnsupportedQuery names a function that cannot be evaluated (RAND, …)."""
    compiler = _Compiler()
    compiler.add(expression)
    return ExpressionProgram(
        tuple(compiler.instructions),
        tuple(compiler.inputs),
        expression_text(expression),
        all(name != "now" for name, _ in compiler.instructions),
    )


class _Compiler:
    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.inputs: dict[str, int] = {}

    def _input(self, name: str) -> int:
        return self.inputs.setdefault(name, len(self.inputs))

    def add(self, expression: Expression) -> None:
        match expression:
            case VariableRef(variable):
                self.instructions.append(("variable", self._input(str(variable))))
            case Constant(term):
                self.instructions.append(("constant", str(from_rdflib(term))))
            case Call(function, arguments):
                self._add_call(function, arguments)
            case Exists():
                raise AssertionError("EXISTS has been replaced by a variable: with_exists_values")

    def _add_call(self, function: str, arguments: tuple[Expression, ...]) -> None:
        name = function if ":" in function or function.startswith("unary") else function.upper()
        _check_call(name, len(arguments))
        if name == "NOW":
            self.instructions.append(("now", 0))
        elif name == "BOUND":
            (argument,) = arguments
            if not isinstance(argument, VariableRef):
                raise UnsupportedQuery("BOUND takes a variable")
            self.instructions.append(("bound", self._input(str(argument.variable))))
        else:
            for argument in arguments:
                self.add(argument)
            self.instructions.append((name, len(arguments)))


def _check_call(name: str, count: int) -> None:
    if name in VOLATILE:
        raise UnsupportedQuery(
            f"{name} gives another value each time it is evaluated, so its value cannot be kept, compared or retracted. It may"
            " stand in a BIND at the end of an RSTREAM query, or in an expression that it selects, where no "
            "GROUP BY, filter or join reads the value; DISTINCT, ORDER BY and LIMIT then belong in a sub-select below it"
        )
    if name not in ARITIES:
        is_cast = name.startswith(_XSD)
        hint = f"the casts are xsd:{', xsd:'.join(_CASTS)}" if is_cast else instead_of(re.split("[#/]", name)[-1])
        raise UnsupportedQuery(f"unknown function {name}: {hint}").calling(name)
    least, most = ARITIES[name]
    if count < least or (most is not None and count > most):
        expected = f"{least}" if least == most else f"{least} to {most}" if most else f"at least {least}"
        raise UnsupportedQuery(f"{name} takes {expected} arguments, not {count}")
