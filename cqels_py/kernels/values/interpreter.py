"""One kernel for all expressions: a postfix program, interpreted row by row with a small stack.

A program is (m, 2) int64: operation and argument (input number, constant number, or number of arguments). One compiled
function serves every expression of every query, and a batch costs one call.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit
from cqels_py.kernels.values.compare import (
    EQUAL_ERROR,
    EQUAL_SLOW,
    INCOMPARABLE,
    UNDECIDED,
    UNORDERED,
    compare,
    equality,
)
from cqels_py.kernels.values.values import (
    BLANK,
    BOOLEAN,
    DATETIME,
    DECIMAL,
    DOUBLE,
    ERROR,
    FLOAT,
    INTEGER,
    IRI,
    LITERAL,
    SLOW,
    TRUTH_ERROR,
    TRUTH_SLOW,
    UNKNOWN,
    arithmetic,
    cast,
    date_part,
    decode,
    encode,
    has_text_only,
    is_numeric,
    rounding,
    truth,
)
from cqels_py.terms.layout import INTEGER_DATATYPES, UNBOUND, ZONE_Z

VARIABLE, CONSTANT, NOW, BOUND, FUNCTION = 0, 1, 2, 3, 4
OR, AND, NOT, IN, NOT_IN = 10, 11, 12, 13, 14
EQUAL, UNEQUAL, LESS, GREATER, LESS_EQUAL, GREATER_EQUAL = 20, 21, 22, 23, 24, 25
ADD, SUBTRACT, MULTIPLY, DIVIDE = 30, 31, 32, 33
ABS, CEIL, FLOOR, ROUND, MINUS, PLUS = 40, 41, 42, 43, 44, 45
YEAR, MONTH, DAY, HOURS, MINUTES, SECONDS = 50, 51, 52, 53, 54, 55
CAST = 60
IF, COALESCE = 80, 81
IS_IRI, IS_BLANK, IS_LITERAL, IS_NUMERIC, SAME_TERM, DATATYPE = 90, 91, 92, 93, 94, 95

OPERATIONS = {
    "||": OR,
    "&&": AND,
    "!": NOT,
    "IN": IN,
    "NOT-IN": NOT_IN,
    "=": EQUAL,
    "!=": UNEQUAL,
    "<": LESS,
    ">": GREATER,
    "<=": LESS_EQUAL,
    ">=": GREATER_EQUAL,
    "+": ADD,
    "-": SUBTRACT,
    "*": MULTIPLY,
    "/": DIVIDE,
    "ABS": ABS,
    "CEIL": CEIL,
    "FLOOR": FLOOR,
    "ROUND": ROUND,
    "unary-": MINUS,
    "unary+": PLUS,
    "YEAR": YEAR,
    "MONTH": MONTH,
    "DAY": DAY,
    "HOURS": HOURS,
    "MINUTES": MINUTES,
    "SECONDS": SECONDS,
    "IF": IF,
    "COALESCE": COALESCE,
    "ISIRI": IS_IRI,
    "ISURI": IS_IRI,
    "ISBLANK": IS_BLANK,
    "ISLITERAL": IS_LITERAL,
    "ISNUMERIC": IS_NUMERIC,
    "SAMETERM": SAME_TERM,
    "DATATYPE": DATATYPE,
    "http://www.w3.org/2001/XMLSchema#boolean": CAST + BOOLEAN,
    "http://www.w3.org/2001/XMLSchema#integer": CAST + INTEGER,
    "http://www.w3.org/2001/XMLSchema#decimal": CAST + DECIMAL,
    "http://www.w3.org/2001/XMLSchema#float": CAST + FLOAT,
    "http://www.w3.org/2001/XMLSchema#double": CAST + DOUBLE,
    "http://www.w3.org/2001/XMLSchema#dateTime": CAST + DATETIME,
}
"""The operations of the kernel. Any other function is FUNCTION: its value is SLOW."""

SPECIAL_TERMS = (
    '"NaN"^^<http://www.w3.org/2001/XMLSchema#double>',
    '"NaN"^^<http://www.w3.org/2001/XMLSchema#float>',
    *(
        f"<http://www.w3.org/2001/XMLSchema#{name}>"
        for name in ("boolean", "decimal", "float", "double", "dateTime", "date", *INTEGER_DATATYPES)
    ),
)
"""Terms whose ids the kernel needs, in this order: the NaNs, and the datatypes that DATATYPE returns."""
_DATATYPES = 2
_INTEGERS = _DATATYPES + 6

UNRESOLVED = -1
"""In the kernel's output: the row must be evaluated with the terms' texts. No id has this value."""

_HIGHEST_DATATYPE_KIND = 8


@jit
def evaluate_rows(code, constants, special, inputs, now, as_test, out):
    """Evaluate a program over each row of `inputs` (number of inputs, n). Returns the number of UNRESOLVED rows.

    `constants`, `special`: ids. `now` (n): microseconds since the epoch; may be empty where the program has no NOW.
    `out` (n): ids, 0 for errors; or where `as_test` the effective boolean value, 1 or 0 (errors count as false).
    """
    depth = len(code) + 1
    kinds = np.zeros(depth, np.int64)
    numbers = np.zeros(depth, np.int64)
    scales = np.zeros(depth, np.int64)
    reals = np.zeros(depth, np.float64)
    ids = np.zeros(depth, np.int64)
    zero = np.int64(0)
    unresolved = 0
    for row in range(len(out)):
        top = 0
        for step in range(len(code)):
            operation = code[step, 0]
            argument = code[step, 1]
            if operation <= CONSTANT:
                identifier = inputs[argument, row] if operation == VARIABLE else constants[argument]
                kinds[top], numbers[top], scales[top], reals[top] = decode(identifier)
                ids[top] = identifier
                top += 1
                continue
            kind, number, scale, real, identifier = np.int64(BOOLEAN), zero, zero, 0.0, zero
            if operation >= EQUAL and operation <= GREATER_EQUAL:
                top -= 2
                b = top + 1
                order = compare(
                    kinds[top], numbers[top], scales[top], reals[top], kinds[b], numbers[b], scales[b], reals[b]
                )
                if operation <= UNEQUAL:
                    same = equality(order, kinds[top], ids[top], kinds[b], ids[b], special[0], special[1])
                    if same < 0:
                        kind = np.int64(ERROR if same == EQUAL_ERROR else SLOW)
                    else:
                        number = same if operation == EQUAL else 1 - same
                elif order >= INCOMPARABLE:
                    kind = np.int64(SLOW if order == UNDECIDED else ERROR)
                elif order < UNORDERED:
                    if operation == LESS:
                        number = np.int64(order < 0)
                    elif operation == GREATER:
                        number = np.int64(order > 0)
                    elif operation == LESS_EQUAL:
                        number = np.int64(order <= 0)
                    else:
                        number = np.int64(order >= 0)
            elif operation in (AND, OR):
                top -= 2
                deciding = np.int64(operation == OR)
                left = truth(kinds[top], numbers[top], reals[top])
                right = truth(kinds[top + 1], numbers[top + 1], reals[top + 1])
                if left == deciding or right == deciding:
                    number = deciding
                elif left == TRUTH_SLOW or right == TRUTH_SLOW:
                    kind = np.int64(SLOW)
                elif left == TRUTH_ERROR or right == TRUTH_ERROR:
                    kind = np.int64(ERROR)
                else:
                    number = 1 - deciding
            elif operation == NOT:
                top -= 1
                number = truth(kinds[top], numbers[top], reals[top])
                if number < 0:
                    kind = np.int64(SLOW if number == TRUTH_SLOW else ERROR)
                else:
                    number = 1 - number
            elif operation >= ADD and operation <= DIVIDE:
                top -= 2
                b = top + 1
                kind, number, scale, real = arithmetic(
                    operation - ADD,
                    kinds[top],
                    numbers[top],
                    scales[top],
                    reals[top],
                    kinds[b],
                    numbers[b],
                    scales[b],
                    reals[b],
                )
            elif operation >= ABS and operation <= PLUS:
                top -= 1
                kind, number, scale, real = rounding(operation - ABS, kinds[top], numbers[top], scales[top], reals[top])
            elif operation >= YEAR and operation <= SECONDS:
                top -= 1
                kind, number, scale, real = date_part(operation - YEAR, kinds[top], numbers[top], scales[top])
            elif operation >= CAST and operation < IF:
                top -= 1
                kind, number, scale, real = cast(operation - CAST, kinds[top], numbers[top], scales[top], reals[top])
                if kind == DATETIME:
                    identifier = ids[top]
            elif operation == NOW:
                kind, number, scale = np.int64(DATETIME), now[row], np.int64(ZONE_Z)
            elif operation == BOUND:
                number = np.int64(inputs[argument, row] != UNBOUND)
            elif operation in (IN, NOT_IN):
                top -= argument
                found = zero
                for b in range(top + 1, top + argument):
                    order = compare(
                        kinds[top], numbers[top], scales[top], reals[top], kinds[b], numbers[b], scales[b], reals[b]
                    )
                    same = equality(order, kinds[top], ids[top], kinds[b], ids[b], special[0], special[1])
                    if same == 1:
                        found = same
                        break
                    found = min(found, same)
                if found < 0:
                    kind = np.int64(SLOW if found == EQUAL_SLOW else ERROR)
                else:
                    number = found if operation == IN else 1 - found
            elif operation in (IF, COALESCE):
                top -= argument
                chosen = top
                kind = np.int64(-1)
                if operation == IF:
                    condition = truth(kinds[top], numbers[top], reals[top])
                    if condition < 0:
                        kind = np.int64(SLOW if condition == TRUTH_SLOW else ERROR)
                    chosen = top + 2 - condition
                else:
                    while chosen < top + argument - 1 and kinds[chosen] == ERROR:
                        chosen += 1
                    if argument == 0:
                        kind = np.int64(ERROR)
                if kind < 0:
                    kind, number, scale = kinds[chosen], numbers[chosen], scales[chosen]
                    real, identifier = reals[chosen], ids[chosen]
            elif operation >= IS_IRI and operation <= IS_NUMERIC:
                top -= 1
                source = kinds[top]
                if source == ERROR:
                    kind = np.int64(ERROR)
                elif source in (SLOW, UNKNOWN) or (source == LITERAL and operation == IS_NUMERIC):
                    kind = np.int64(SLOW)
                elif operation == IS_IRI:
                    number = np.int64(source == IRI)
                elif operation == IS_BLANK:
                    number = np.int64(source == BLANK)
                elif operation == IS_LITERAL:
                    number = np.int64(source != IRI and source != BLANK)
                else:
                    number = np.int64(is_numeric(source))
            elif operation == SAME_TERM:
                top -= 2
                first, second = ids[top], ids[top + 1]
                if first == 0:
                    first = encode(kinds[top], numbers[top], scales[top], reals[top])
                if second == 0:
                    second = encode(kinds[top + 1], numbers[top + 1], scales[top + 1], reals[top + 1])
                if kinds[top] == ERROR or kinds[top + 1] == ERROR:
                    kind = np.int64(ERROR)
                elif first == 0 or second == 0:
                    kind = np.int64(SLOW)
                else:
                    number = np.int64(first == second)
            elif operation == DATATYPE:
                top -= 1
                source = kinds[top]
                if has_text_only(source):
                    kind = np.int64(SLOW)
                elif source < BOOLEAN or source > _HIGHEST_DATATYPE_KIND:
                    kind = np.int64(ERROR)
                else:
                    kind = np.int64(IRI)
                    if source == INTEGER:
                        identifier = special[_INTEGERS + ((ids[top] >> 56) & 15 if ids[top] != 0 else 0)]
                    else:
                        identifier = special[_DATATYPES + (source - DECIMAL + 1 if source > INTEGER else 0)]
            else:
                top -= argument
                kind = np.int64(SLOW)
            kinds[top], numbers[top], scales[top], reals[top], ids[top] = kind, number, scale, real, identifier
            top += 1
        if as_test:
            result = truth(kinds[0], numbers[0], reals[0])
            if result == TRUTH_ERROR:
                result = zero
            elif result == TRUTH_SLOW:
                result = np.int64(UNRESOLVED)
        elif kinds[0] == ERROR:
            result = np.int64(UNBOUND)
        elif ids[0] != 0:
            result = ids[0]
        else:
            result = encode(kinds[0], numbers[0], scales[0], reals[0])
            if result == 0:
                result = np.int64(UNRESOLVED)
        out[row] = result
        if result == UNRESOLVED:
            unresolved += 1
    return unresolved
