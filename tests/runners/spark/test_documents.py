"""Blank nodes of data frames: scoped to their element, or to the given document, whichever task reads the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from cqels_py.errors import UsageError
from cqels_py.runners.spark.options import QueryOptions
from cqels_py.spark import prepare
from tests.runners.spark.simulation import ROWS, Cluster, scratch

A, B = "http://ex.org/a", "http://ex.org/b"
QUERY = f"""SELECT ?n ?v ?w {{
    STREAM <{A}> [ALL] {{ ?n <http://ex.org/v> ?v }}
    STREAM <{B}> [ALL] {{ ?n <http://ex.org/w> ?w }}
}}"""


def rows(*found: tuple[int, int, str, str]) -> pa.RecordBatch:
    """(stream, time, letter of the predicate, value), about one label."""
    return pa.RecordBatch.from_pylist(
        [
            {"stream": s, "time": t, "graph": "", "subject": "_:n", "predicate": f"<http://ex.org/{p}>", "object": v}
            for s, t, p, v in found
        ],
        ROWS,
    )


BATCHES = [[rows((0, 1, "v", '"1"')), rows((1, 1, "w", '"2"'))], [rows((1, 2, "w", '"3"'))], [rows((0, 3, "v", '"4"'))]]


def answers(
    document: str | Mapping[str, str] | None, partitions: int, batches: Sequence[Sequence[pa.RecordBatch]] = BATCHES
) -> list[tuple[str, str, str]]:
    with scratch() as state:
        job, _ = prepare(QUERY, state=state, partitions=partitions, document=document)
        cluster = Cluster(job)
        found = [
            row
            for number, tasks in enumerate(batches)
            for row in cluster.run(number, tasks, final=number + 1 == len(batches))
        ]
    return sorted((row["n"], row["v"], row["w"]) for row in found)


JOINED = [('"1"', '"2"'), ('"1"', '"3"'), ('"4"', '"2"'), ('"4"', '"3"')]


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_document_has_one_node_for_a_label(partitions: int) -> None:
    found = answers("sensors", partitions)
    assert [row[1:] for row in found] == JOINED
    # The same everywhere: in other tasks, in one micro-batch, in another run.
    together = [[pa.Table.from_batches([each for tasks in BATCHES for each in tasks]).combine_chunks().to_batches()[0]]]
    assert answers("sensors", partitions, together) == found
    assert answers({A: "sensors", B: "sensors"}, partitions) == found
    assert {row[0] for row in answers("others", partitions)} != {row[0] for row in found}


def test_other_documents_have_other_nodes() -> None:
    assert answers(None, 1) == answers({A: "sensors"}, 1) == answers({A: "sensors", B: "others"}, 1) == []


def test_an_invalid_document_is_refused() -> None:
    for wrong, message in (
        ({"http://ex.org/c": "d"}, "does not read"),
        ("", "document must be a text"),
        (5, "document is a mapping"),
    ):
        with pytest.raises(UsageError, match=message):
            QueryOptions(partitions=1, document=wrong).scopes((A, B))  # type: ignore[arg-type]


def test_a_state_belongs_to_its_document() -> None:
    with scratch() as state:
        prepare(QUERY, state=state, partitions=1, document="sensors")
        with pytest.raises(UsageError, match="another document"):
            prepare(QUERY, state=state, partitions=1)
