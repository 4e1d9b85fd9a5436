"""W3C's tests of query evaluation: each one's data through a window, and beside it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from rdflib import URIRef

from cqels_py.engine.compile import compile_query
from cqels_py.errors import UnsupportedQuery
from tests.conformance import manifest, skips
from tests.conformance.files import iri_of, path_of, read_graph
from tests.conformance.manifest import Case
from tests.conformance.results import read_answer
from tests.conformance.running import CHECKS, Asked, Graphs, check_order, order_keys
from tests.conformance.windows import continuous
from tests.support import harness

CASES = [case for case in manifest.of_kinds(manifest.EVALUATION) if not skips.reason(case.name, skips.SKIPPED)]

pytestmark = pytest.mark.skipif(not CASES, reason="W3C's files are not here: run scripts/fetch_conformance")


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_evaluation(case: Case, check: str) -> None:
    asked = _asked(case)
    if skips.reason(case.name, skips.REFUSED):
        with pytest.raises(UnsupportedQuery):
            # Checks are made of changelogs.
            compile_query(asked.continuous_text, changelog=True)
    else:
        CHECKS[check](asked)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if "ORDER" in case.text.upper()])
def test_order(case: Case) -> None:
    asked = _asked(case)
    if why := skips.reason(case.name, skips.ORDER_OPEN):
        pytest.skip(why)
    if not asked.expected.ordered:
        pytest.skip("the expected answer is in no order")
    if not order_keys(harness.parse(asked.continuous_text)):
        pytest.skip("ordered by what is not selected")
    check_order(asked)


@cache
def _asked(case: Case) -> Asked:
    """The test with its files. A query's own FROM and FROM NAMED are its whole dataset."""
    assert case.result is not None
    query = harness.parse(continuous(case.text, case.base))
    expected = read_answer(case.result)
    if query.static_from or query.static_named:
        named, merged = (_graphs(path_of(iri) for iri in iris) for iris in (query.static_named, query.static_from))
        return Asked(case.text, [], expected, named, merged, base=case.base)
    data = [triple for path in case.default for triple in read_graph(path)]
    return Asked(case.text, data, expected, _graphs(case.named), base=case.base)


def _graphs(paths: Iterable[Path]) -> Graphs:
    return {URIRef(iri_of(path)): read_graph(path) for path in paths}
