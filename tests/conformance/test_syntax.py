"""W3C's tests of syntax: each query with a window clause in it is read, or is a syntax error."""

from __future__ import annotations

import pytest

from cqels_py.errors import QuerySyntaxError, UnsupportedQuery
from cqels_py.parser import parse
from tests.conformance import manifest, skips
from tests.conformance.manifest import Case
from tests.conformance.windows import continuous


def _cases(kinds: frozenset[str]) -> list[object]:
    return [
        pytest.param(case, id=case.name)
        for case in manifest.of_kinds(kinds)
        if not skips.reason(case.name, skips.SKIPPED)
    ]


pytestmark = pytest.mark.skipif(not manifest.cases(), reason="W3C's files are not here: run scripts/fetch_conformance")


@pytest.mark.parametrize("case", _cases(manifest.POSITIVE_SYNTAX))
def test_positive(case: Case) -> None:
    text = continuous(case.text, case.base)
    if skips.reason(case.name, skips.REFUSED):
        with pytest.raises(UnsupportedQuery):
            parse(text)
    else:
        parse(text)


@pytest.mark.parametrize("case", _cases(manifest.NEGATIVE_SYNTAX))
def test_negative(case: Case) -> None:
    with pytest.raises(QuerySyntaxError) as found:
        parse(continuous(case.text, case.base))
    # Not for want of a window: that would be this test's fault.
    assert "window" not in found.value.message
