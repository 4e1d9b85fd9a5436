"""Warnings at registration reach programs."""

from __future__ import annotations

import logging

import pytest

import cqels_py as cqels

TEXT = """
PREFIX : <http://ex.org/>
REGISTER QUERY Meters AS
SELECT ?a ?vlaue
FROM STREAM :s [RANGE 10s STEP 1s]
WHERE { ?a :value ?value . ?b :other ?c }
"""


def test_warnings_are_an_attribute_and_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "cqels_py"):
        query = cqels.Engine().register(TEXT)
    assert [warning.partition(":")[0] for warning in query.warnings] == [
        "nothing in the query binds ?vlaue",
        "cross product",
    ]
    assert [record.getMessage() for record in caplog.records] == [f"Meters: {warning}" for warning in query.warnings]


def test_who_has_reports_elsewhere_reads_the_attribute(caplog: pytest.LogCaptureFixture) -> None:
    query = cqels.Engine(report=lambda error: None).register(TEXT)
    assert len(query.warnings) == 2
    assert not caplog.records


def test_a_query_without_any(caplog: pytest.LogCaptureFixture) -> None:
    query = cqels.Engine().register("SELECT * { STREAM <http://ex.org/s> [RANGE 1s] { ?a ?b ?c } }")
    assert query.warnings == () and not caplog.records
