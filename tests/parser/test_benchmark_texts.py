"""Query texts of published benchmarks, as their authors wrote them: each is read, or refused for a reason that stands here.

They are not part of the repository: CQELS_SHARED_DATA names the folder that holds them (default: shared/data beside it).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cqels_py.algebra.nodes import Dialect
from cqels_py.algebra.validate import asks_windows
from cqels_py.errors import QueryError
from cqels_py.parser import parse
from cqels_py.rewrites import rewrite

DATA = Path(os.environ.get("CQELS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
FOLDERS = {
    "lsbench/cqels": Dialect.CQELS_QL,
    "lsbench/rspql": Dialect.RSP_QL,
    "lsbench/csparql": Dialect.C_SPARQL,
    "srbench/queries/cqels": Dialect.CQELS_QL,
    "srbench/queries/csparql": Dialect.C_SPARQL,
    "srbench/queries/siow_stream": Dialect.C_SPARQL,
    "srbench/queries/rspql": Dialect.RSP_QL,
}
REFUSED = {
    # They select variables that are not grouped by.
    "lsbench/rspql/q2.rspql": r"\?post is selected, but is neither in GROUP BY nor in an aggregate",
    "lsbench/rspql/q3.rspql": r"\?post is selected, but is neither in GROUP BY nor in an aggregate",
    # A prefix is missing.
    "srbench/queries/rspql/queries.md Q1": "the prefix ':' of ':win' is not declared",
    "srbench/queries/rspql/queries.md Q4": "the prefix 'srbench:' of 'srbench:observations' is not declared",
    "srbench/queries/rspql/queries.md Q5": "the prefix 'srbench:' of 'srbench:observations' is not declared",
    "srbench/queries/rspql/queries.md Q10": "the prefix 'srbench:' of 'srbench:observations' is not declared",
    # STEP without how long.
    **{f"srbench/queries/siow_stream/q{n}.sparql": "expected a duration such as 10s" for n in (1, 2, 4, 5, 10)},
    # They name a stream, and ask only the default graph.
    **{f"srbench/queries/siow_stream/q{n}.sparql": "no pattern reads a window" for n in (3, 6, 7, 8, 9)},
}


def texts() -> Iterator[tuple[str, str, Dialect]]:
    """Name, text and dialect; a Markdown file holds several."""
    for folder, dialect in FOLDERS.items():
        for path in sorted((DATA / folder).glob("*")):
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".md":
                for number, part in re.findall(r"^##(Q\d+)\..*\n((?:(?!##).*\n?)*)", text, re.MULTILINE):
                    yield f"{folder}/{path.name} {number}", part, dialect
            else:
                yield f"{folder}/{path.name}", text, dialect


TEXTS = list(texts())
pytestmark = pytest.mark.skipif(not TEXTS, reason="the benchmarks' texts are not here (CQELS_SHARED_DATA)")


@pytest.mark.parametrize(("name", "text", "dialect"), [pytest.param(*each, id=each[0]) for each in TEXTS])
def test_a_published_query(name: str, text: str, dialect: Dialect) -> None:
    if name in REFUSED:
        with pytest.raises(QueryError, match=REFUSED[name]) as raised:
            parse(text)
        assert raised.value.place is not None
        return
    query = parse(text)
    assert query.dialect is dialect
    assert asks_windows(rewrite(query).pattern)
    assert parse(text, dialect=dialect) == query


def test_every_refusal_is_of_a_text() -> None:
    assert set(REFUSED) <= {name for name, _, _ in TEXTS}


# The texts that lack no more than a prefix.
@pytest.mark.parametrize("number", ["Q1", "Q4", "Q5"])
def test_drafts_of_rsp_ql_with_their_prefixes(number: str) -> None:
    (text,) = [text for name, text, _ in TEXTS if name.endswith(f"queries.md {number}")]
    query = parse("PREFIX : <http://ex.org/> PREFIX srbench: <http://www.cwi.nl/SRBench/>" + text)
    assert query.dialect is Dialect.RSP_QL
    assert [str(window.stream) for window in query.windows] == ["http://www.cwi.nl/SRBench/observations"]
