"""A suite: its queries and their ids."""

from __future__ import annotations

import pytest

from cqels_py.errors import UsageError
from cqels_py.suites.suite import SUITES, Suite, find, title
from tests.suites.rides import RIDES


def test_ids_are_numbers_or_names() -> None:
    names = [
        "busiest-areas",
        "earnings",
        "hot-areas",
        "no-cash-between",
        "three-windows",
        "tips-after-arrivals",
        "tips-by-area",
    ]
    assert list(RIDES.queries()) == names
    for name, most in (("srbench", 17), ("lsbench", 12)):
        assert list(find(name).queries()) == [str(number) for number in range(1, most + 1)]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_query_has_a_title(suite: Suite) -> None:
    for text in suite.queries().values():
        assert title(text)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_the_papers_figures_are_of_queries_that_there_are(suite: Suite) -> None:
    assert set(suite.paper) <= set(suite.queries())


def test_errors_of_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match="srbench, lsbench"):
        find("trains")
    with pytest.raises(UsageError, match=r"'nope'.*tips-by-area"):
        RIDES.chosen(["nope"])


def test_chosen_queries_come_in_the_suites_order() -> None:
    assert list(RIDES.chosen(["tips-by-area", "earnings"])) == ["earnings", "tips-by-area"]
    assert RIDES.chosen(()) == RIDES.queries()
