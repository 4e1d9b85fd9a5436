"""JSON objects, one a line, to columns of terms.

A member `a` is the variable ?a, a member `b` of an object `a` is ?a_b. Numbers without a fraction or exponent are xsd:integer,
others xsd:double; null, and a member that is not there, are unbound.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, Place
from cqels_py.formats.depth import TooDeep, check_depth, is_too_deep
from cqels_py.formats.lines import Malformed
from cqels_py.mappings.rows import Rows, variable_of
from cqels_py.mappings.terms import ids_of_column

_TYPES: dict[type, pa.DataType] = {str: pa.large_string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_KINDS: dict[type, str] = {dict: "an object", list: "a list"}
_INTEGER_END = '"^^<http://www.w3.org/2001/XMLSchema#integer>'
_SPACE = " \t\r"
_UNREADABLE = (ValueError, RecursionError, StopIteration)


def json_rows(
    blocks: Iterable[tuple[bytes, int]],
    variables: Sequence[str],
    dictionary: Dictionary,
    source: str,
    malformed: Malformed,
) -> Iterator[Rows | None]:
    """The rows of blocks of whole lines, each with the number of its first line. Empty lines are passed over.

    None where a block is empty: nothing comes for now.
    """
    for text, first in blocks:
        if not text:
            yield None
            continue
        lines = text.split(b"\n")
        objects, numbers = _objects(lines, first, source, malformed)
        if objects:
            yield from _Block(objects, numbers, lines, first, source, malformed).rows(variables, dictionary)


def _objects(
    lines: Sequence[bytes], first: int, source: str, malformed: Malformed
) -> tuple[list[dict[str, Any]], list[int]]:
    """The objects, and the numbers of their lines."""
    # The scanner of one value: where it ended says whether the line holds nothing else.
    scan = json.JSONDecoder(parse_constant=_no_number).scan_once  # type: ignore[attr-defined]
    objects: list[dict[str, Any]] = []
    numbers: list[int] = []
    some_too_deep = is_too_deep(b"\n".join(lines), "ndjson")
    for number, raw in enumerate(lines, first):
        line = raw.decode().strip(_SPACE)
        if not line:
            continue
        try:
            if some_too_deep:
                check_depth(raw, "ndjson", source, number)
            found, end = scan(line, 0)
        except TooDeep as error:
            malformed(error.about(raw.decode()))
            continue
        except _UNREADABLE as error:
            malformed(_unreadable(error, number, source).about(raw.decode()))
            continue
        if type(found) is dict and end == len(line):
            objects.append(found)
            numbers.append(number)
            continue
        message = 'expected one JSON object a line, such as {"sensor": "s1", "value": 21.5}'
        malformed(DataError(message, Place(number, None, source)).about(raw.decode()))
    return objects, numbers


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON value")


def _unreadable(error: Exception, number: int, source: str) -> DataError:
    if isinstance(error, StopIteration):
        return DataError("this is no JSON", Place(number, None, source))
    if isinstance(error, json.JSONDecodeError):
        return DataError(f"this is no JSON: {error.msg}", Place(number, error.colno, source))
    message = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return DataError(f"this is no JSON: {message}", Place(number, None, source))


class _Block:
    """The objects of a block of lines, as columns."""

    def __init__(
        self,
        objects: list[dict[str, Any]],
        numbers: list[int],
        lines: Sequence[bytes],
        first: int,
        source: str,
        malformed: Malformed,
    ) -> None:
        self._objects = objects
        self._numbers = numbers
        self._lines = lines
        self._first = first
        self._source = source
        self._malformed = malformed
        self._wrong: dict[int, str] = {}

    def rows(self, variables: Sequence[str], dictionary: Dictionary) -> Iterator[Rows]:
        """All objects whose members have terms, in one part."""
        paths = _paths(self._objects, frozenset(variables))
        columns = {name: self._ids(name, self._values(name, paths.get(name, [])), dictionary) for name in variables}
        for row in sorted(self._wrong):
            number = self._numbers[row]
            self._malformed(DataError(self._wrong[row], Place(number, None, self._source)).about(self._text(number)))
        lines = np.array(self._numbers, np.int64)
        if self._wrong:
            right = np.delete(np.arange(len(lines)), list(self._wrong))
            columns, lines = {name: ids[right] for name, ids in columns.items()}, lines[right]
        yield Rows(columns, lines, self._text)

    def _text(self, number: int) -> str:
        return self._lines[number - self._first].decode()

    def _values(self, variable: str, paths: Sequence[tuple[str, ...]]) -> list[Any]:
        """The values of a variable; objects that have it twice are wrong."""
        found: list[Any] = [None] * len(self._objects)
        for path in paths:
            values = [each.get(path[0]) for each in self._objects]
            for member in path[1:]:
                values = [each.get(member) if type(each) is dict else None for each in values]
            if found and len(paths) == 1:
                return values
            for row, value in enumerate(values):
                if value is None:
                    continue
                if found[row] is not None:
                    self._wrong.setdefault(row, f"two members are ?{variable}, one of them {'.'.join(path)}")
                found[row] = value
        return found

    def _ids(self, variable: str, values: list[Any], dictionary: Dictionary) -> Ids:
        kinds = set(map(type, values)) - {type(None)}
        if len(kinds) == 1 and (ids := _of_one_type(values, next(iter(kinds)), variable, dictionary)) is not None:
            return ids
        out = np.zeros(len(values), np.int64)
        for kind in kinds:
            places = [row for row, value in enumerate(values) if type(value) is kind]
            ids = _of_one_type([values[row] for row in places], kind, variable, dictionary)
            out[places] = self._one_by_one(variable, places, values, dictionary) if ids is None else ids
        return out

    def _one_by_one(self, variable: str, places: Sequence[int], values: list[Any], dictionary: Dictionary) -> list[int]:
        """Values that no column of Arrow takes: integers beyond 64 bits, texts that are not Unicode, lists and objects."""
        found = []
        for row in places:
            value, term = values[row], None
            if type(value) is int:
                term = f'"{value}{_INTEGER_END}'
            elif type(value) is str and _is_unicode(value):
                found.append(int(ids_of_column(pa.array([value], pa.large_string()), variable, dictionary)[0]))
                continue
            elif type(value) is str:
                self._wrong.setdefault(
                    row, f"the value of ?{variable} has half of a surrogate pair, which is no character"
                )
            else:
                kind = _KINDS[type(value)]
                self._wrong.setdefault(
                    row, f"the value of ?{variable} is {kind}: map its members (?{variable}_name), or its parts"
                )
            found.append(0 if term is None else dictionary.encode_one(term))
        return found


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_one_type(values: list[Any], kind: type, variable: str, dictionary: Dictionary) -> Ids | None:
    """The terms of values of one type, and of None; None where some have no place in a column."""
    if kind not in _TYPES:
        return None
    try:
        column = pa.array(values, _TYPES[kind])
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):
        return None
    return ids_of_column(column, variable, dictionary)


def _paths(objects: Sequence[dict[str, Any]], variables: frozenset[str]) -> dict[str, list[tuple[str, ...]]]:
    """The paths of members of these objects that are among the variables."""
    found: dict[str, list[tuple[str, ...]]] = {}
    waiting: list[tuple[tuple[str, ...], str, Sequence[Any]]] = [((), "", objects)]
    while waiting:
        path, before, values = waiting.pop()
        inner = [value for value in values if type(value) is dict]
        for member in dict.fromkeys(chain.from_iterable(inner)):
            name, place = before + variable_of(member), (*path, member)
            if name in variables:
                found.setdefault(name, []).append(place)
            if any(variable.startswith(f"{name}_") for variable in variables):
                waiting.append((place, f"{name}_", [value.get(member) for value in inner]))
    return found
