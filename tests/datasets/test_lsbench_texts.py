"""LSBench's queries as published by others: where they mean the same as ours, they have the same answers.

The texts are not part of the repository: CQELS_SHARED_DATA names the folder that holds them (default: shared/data
beside it). tests/parser/test_benchmark_texts.py reads them all. Windows are made equal, so that the rest of the queries
is compared.
"""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cqels_py as cqels
from cqels_py.datasets import lsbench
from cqels_py.errors import QuerySyntaxError
from cqels_py.parser import parse

FOLDER = Path(os.environ.get("CQELS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data")) / "lsbench"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmark's texts are not here (CQELS_SHARED_DATA)")

USERS = 300
POSTS, PHOTOS = f"<{lsbench.POSTS}>", f"<{lsbench.PHOTOS}>"
WINDOWS = {
    lsbench.POSTS: "15s STEP 1s",
    lsbench.PHOTOS: "1m STEP 1s",
    lsbench.POST_LIKES: "5s STEP 1s",
    lsbench.PHOTO_LIKES: "5s STEP 1s",
}

SAME = {
    **{f"cqels/q{n}.cqels": f"{n:02}" for n in range(2, 7)},
    **{f"csparql/q{n}.csparql": f"{n:02}" for n in range(2, 7)},
    "rspql/q1.rspql": "01",
    "rspql/q10.rspql": "10",
}
"""A text, and the query of ours that it asks."""
REPAIRS = {
    "rspql/q1.rspql": {"ON <s1>": f"ON {POSTS}", "sib:tag": "sib:hashtag", "'tag'": "'tijuri'"},
    "rspql/q10.rspql": {"ON <s1>": f"ON {POSTS}", "sib:tag": "sib:hashtag"},
}
"""The drafts in RSP-QL do not name streams, and use sib:tag where the data has sib:hashtag or sib:usertag."""
CALLED = {"rspql/q10.rspql": ["posts"]}
"""Variables that ours call otherwise."""
OTHERS = {
    "cqels/q1.cqels": "asks for all that a user does, not for a hashtag",
    "csparql/q1.csparql": "asks for all that a user does, not for a hashtag",
    "rspql/q2.rspql": "selects what it does not group by",
    "rspql/q3.rspql": "selects what it does not group by",
    "rspql/q4.rspql": "asks for posts of any users; selects ?post, which is bound nowhere",
    "rspql/q5.rspql": "asks the stream for sioc:account_of, which is static",
    "rspql/q6.rspql": "asks the stream for foaf:knows, which is static; channels are interests there",
    "rspql/q7.rspql": "asks the stream for foaf:knows, which is static, and not for positions",
    "rspql/q8.rspql": "asks who likes a photo in which they are tagged themselves; selects what is bound nowhere",
    "rspql/q9.rspql": "asks the stream for foaf:knows, which is static",
    "rspql/q11.rspql": "asks for the average of IRIs",
}
"""Texts that ask something else, or nothing that the data could answer."""

Changes = Counter[tuple[int, tuple[str, ...]]]


def test_every_text_is_accounted_for() -> None:
    there = {f"{path.parent.name}/{path.name}" for path in FOLDER.glob("*/q*") if path.parent.name != "etalis"}
    assert there == SAME.keys() | OTHERS.keys()


@pytest.mark.parametrize("text", SAME)
def test_it_gives_the_answers_of_our_query(text: str) -> None:
    number = SAME[text]
    ours, theirs = query(number), repaired(text)
    # In this dialect streams have no names of their own, and FROM names static data.
    sources = re.findall(r"^from <(\S+)>", theirs, re.MULTILINE)
    variables = [str(variable) for variable in parse(theirs).variables]
    given: dict[str, Any] = {"static_graphs": dict.fromkeys(sources, network())} if sources else {"static": [network()]}
    expected = changes(windows(ours), CALLED.get(text, variables), static=[network()])
    assert expected
    assert changes(windows(theirs), variables, **given) == expected


def test_posts_of_a_user_are_those_of_the_stream() -> None:
    """Their first query: everything of which the user is the subject, which is making posts and comments."""
    found = changes(windows((FOLDER / "cqels/q1.cqels").read_text(encoding="utf-8")), ("p", "o"), static=[])
    posted = changes(windows(query("02")), ("post",), static=[network()])
    creator_of = "http://rdfs.org/sioc/ns#creator_of"
    assert found == Counter({(time, (creator_of, *post)): number for (time, post), number in posted.items()})


@pytest.mark.parametrize("number", [1, 2, 3, 4, 10])
def test_rules_are_no_queries(number: int) -> None:
    """ETALIS's language is none of SPARQL's dialects."""
    with pytest.raises(QuerySyntaxError, match="expected"):
        parse((FOLDER / f"etalis/q{number}.etalis").read_text(encoding="utf-8"))


def test_the_official_data_has_the_vocabulary_of_ours(tmp_path: Path) -> None:
    """Every property and class of the generated streams and static data; of the streams' files the beginnings will do."""
    for path in (FOLDER / "data").glob("*Stream*.ttl.gz"):
        with gzip.open(path, "rb") as file:
            text = b"".join(islice(file, 20_000))
        # Not in the middle of something that has not said yet when it was made.
        end = text.rfind(b"^^xsd:dateTime .\n")
        (tmp_path / path.name.removesuffix(".gz")).write_bytes(text[:end] + b"^^xsd:dateTime .\n" if end >= 0 else text)
    official, ours = lsbench.official(tmp_path), tables()
    assert official.keys() == ours.keys()
    for iri, batches in official.items():
        assert terms(batches.read_all()) >= terms(ours[iri])
    known = lsbench.official_static(FOLDER / "data")
    for term in {*re.findall(rb" (<\S+>) ", network()), *re.findall(rb"#type> (<\S+>)", network())}:
        assert term in known


# --- running ------------------------------------------------------------------------------------------------------


def query(number: str) -> str:
    return (files("cqels_py.queries") / "lsbench" / f"{number}.rq").read_text(encoding="utf-8")


def repaired(text: str) -> str:
    found = (FOLDER / text).read_text(encoding="utf-8")
    for wrong, right in REPAIRS.get(text, {}).items():
        assert wrong in found
        found = found.replace(wrong, right)
    return found


def windows(text: str) -> str:
    """With the windows of WINDOWS, whatever stood there."""
    for iri, size in WINDOWS.items():
        if "NAMED WINDOW" in text:
            size = "PT" + size.replace(" STEP ", " STEP PT").upper()
        text = re.sub(rf"<{re.escape(iri)}>\s*\[[^\]]*\]", f"<{iri}> [RANGE {size}]", text)
    return text


@cache
def tables() -> Mapping[str, pa.Table]:
    """Likes once: where a window is a graph, a second one makes no difference."""
    made = {iri: batches.read_all() for iri, batches in lsbench.streams(20_000, users=USERS, pace=3.0).items()}
    for iri in (lsbench.POST_LIKES, lsbench.PHOTO_LIKES):
        pairs = made[iri].select(["subject", "object"]).to_pandas()
        made[iri] = made[iri].filter(pa.array(~pairs.duplicated()))
    return made


@cache
def network() -> bytes:
    """Without who made the groups: where streams and static data are one graph, these would be posts."""
    lines = lsbench.static(users=USERS).splitlines(keepends=True)
    return b"".join(line for line in lines if b"creator_of" not in line)


def changes(text: str, variables: Sequence[str], **data: Any) -> Changes:
    """By time and these variables' values: how many more rows of them there are, or fewer."""
    engine = cqels.Engine()
    asked = engine.register(text, changelog=True, **data)
    engine.run({iri: table for iri, table in tables().items() if iri in asked.plan.streams})
    found: Changes = Counter()
    for result in asked.results():
        found[result.time, tuple(str(result.bindings[name]) for name in variables)] += result.sign
    return Counter({change: number for change, number in found.items() if number})


def terms(table: pa.Table) -> set[str]:
    """Properties and classes."""
    typed = pa.compute.match_substring(table["predicate"], "#type")
    return {*table["predicate"].to_pylist(), *table.filter(typed)["object"].to_pylist()}
