"""The family of exceptions: codes that programs may rely on, and what is told of a place."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from cqels_py.errors import CqelsError, Place

DEFINES_ERROR = re.compile(r"^class \w+\(\w*(Error|Query|Collision|Extra)\):", re.MULTILINE)
PACKAGE = Path(__file__).parent.parent / "cqels_py"

CODES = {
    "CqelsError": "CQ-ERROR",
    "QueryError": "CQ-QUERY",
    "QuerySyntaxError": "CQ-SYNTAX",
    "UnsupportedQuery": "CQ-UNSUPPORTED",
    "DataError": "CQ-DATA",
    "NotWellFormed": "CQ-XML",
    "TooDeep": "CQ-DEPTH",
    "TermCollision": "CQ-COLLISION",
    "UsageError": "CQ-USAGE",
    "MissingExtra": "CQ-EXTRA",
    "RunError": "CQ-RUN",
    "RefusedResult": "CQ-REFUSED",
    "DamagedFile": "CQ-DAMAGED",
    "OtherRows": "CQ-OTHER-ROWS",
    "SetBack": "CQ-SET-BACK",
    "StorageError": "CQ-STORAGE",
    "Incomplete": "CQ-INCOMPLETE",
    "Unsettled": "CQ-UNSETTLED",
    "ServiceError": "CQ-SERVICE",
    "NotFound": "CQ-NOT-FOUND",
    "Conflict": "CQ-CONFLICT",
    "Gone": "CQ-GONE",
    "TookTooLong": "CQ-TOOK-TOO-LONG",
    "Forbidden": "CQ-FORBIDDEN",
    "Unauthorized": "CQ-UNAUTHORIZED",
    "NotAcceptable": "CQ-NOT-ACCEPTABLE",
    "TooLarge": "CQ-TOO-LARGE",
    "TooSlow": "CQ-TOO-SLOW",
    "UnknownMediaType": "CQ-MEDIA-TYPE",
    "MethodNotAllowed": "CQ-METHOD",
    "Failed": "CQ-FAILED",
    "Starting": "CQ-STARTING",
    "TooMany": "CQ-TOO-MANY",
    "Unreachable": "CQ-UNREACHABLE",
}
"""Codes are a promise: a line here is added, never changed."""


def family(root: type[CqelsError] = CqelsError) -> Iterator[type[CqelsError]]:
    yield root
    for each in root.__subclasses__():
        yield from family(each)


def test_every_class_has_its_own_code_which_never_changes() -> None:
    """Also classes outside of errors.py: all modules that may define one are imported first."""
    for file in sorted(PACKAGE.rglob("*.py")):
        if DEFINES_ERROR.search(file.read_text(encoding="utf-8")):
            import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
    classes = [each for each in family() if each.__module__.startswith("cqels_py.")]
    assert {each.__name__: each.code for each in classes} == CODES
    assert len(set(CODES.values())) == len(classes)
    assert [each for each in classes if "code" not in vars(each)] == []


@pytest.mark.parametrize("kind", list(family()))
def test_an_error_says_where_also_in_another_process(kind: type[CqelsError]) -> None:
    error = kind("a wrong word", Place(2, 5, "hot.rq"))
    read_back = pickle.loads(pickle.dumps(error))
    assert str(error) == str(read_back) == "hot.rq:2:5: a wrong word"
    assert (read_back.message, read_back.place, read_back.code) == (error.message, error.place, kind.code)
    assert str(kind("a wrong word")) == "a wrong word"
