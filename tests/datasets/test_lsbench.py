"""LSBench's generated network and streams, and the loader of the official generator's files."""

from __future__ import annotations

import gzip
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph
import pytest

from cqels_py.datasets import lsbench
from cqels_py.datasets.__main__ import write
from cqels_py.datasets.lsbench.events import BURST, FIRST_INSTANT
from cqels_py.datasets.lsbench.network import network
from cqels_py.datasets.lsbench.words import first_names, last_names
from cqels_py.errors import DataError, UsageError

TERMS = "http://www.ins.cwi.nl/sib/vocabulary/"
SIOC = "http://rdfs.org/sioc/ns#"
LIKE, HASHTAG, USERTAG = f"<{TERMS}like>", f"<{TERMS}hashtag>", f"<{TERMS}usertag>"
CONTAINER, CREATOR = f"<{SIOC}container_of>", f"<{SIOC}creator_of>"
Pairs = list[tuple[str, str]]


def tables(triples: int, **options: float) -> dict[str, pa.Table]:
    return {iri: batches.read_all() for iri, batches in lsbench.streams(triples, **options).items()}  # type: ignore[arg-type]


@cache
def streams() -> dict[str, pa.Table]:
    """More than one block of events."""
    return tables(100_000)


@cache
def static() -> list[pyoxigraph.Triple]:
    return [quad.triple for quad in pyoxigraph.parse(lsbench.static(), pyoxigraph.RdfFormat.N_TRIPLES)]


def pairs(table: pa.Table, predicate: str) -> Pairs:
    """Subjects and objects."""
    chosen = table.filter(pc.equal(table["predicate"], predicate))
    return list(zip(chosen["subject"].to_pylist(), chosen["object"].to_pylist(), strict=True))


@cache
def friends() -> set[tuple[str, str]]:
    return {(str(t.subject), str(t.object)) for t in static() if t.predicate.value.endswith("/knows")}


# --- streams ------------------------------------------------------------------------------------------------------


def test_the_streams_have_the_requested_length_together() -> None:
    for triples in (1, 30, 5_000, 100_000):
        made = sum(table.num_rows for table in tables(triples, users=100).values())
        assert triples <= made < triples + 20


def test_every_stream_goes_on_in_time_and_no_two_events_share_an_instant() -> None:
    times = [np.unique(table["time"].to_numpy()) for table in streams().values()]
    assert all((np.diff(table["time"].to_numpy()) >= 0).all() for table in streams().values())
    elements = [len(table["graph"].unique()) for table in streams().values()]
    assert [len(each) for each in times] == elements
    assert len(np.unique(np.concatenate(times))) == sum(elements)


def test_a_shorter_stream_is_the_beginning_of_a_longer_one() -> None:
    for triples in (500, 50_000):
        for iri, shorter in tables(triples).items():
            assert 0 < shorter.num_rows < streams()[iri].num_rows
            assert shorter.equals(streams()[iri].slice(0, shorter.num_rows))


def test_the_seed_decides() -> None:
    one, again, other = (tables(3_000, seed=seed) for seed in (7, 7, 8))
    assert one == again
    assert all(one[iri] != other[iri] for iri in one)
    assert lsbench.static(seed=7) == lsbench.static(seed=7) != lsbench.static(seed=8)


def test_a_thousand_users_make_seventy_triples_a_second_and_faster_ones_more() -> None:
    for pace in (1.0, 10.0):
        made = tables(50_000, pace=pace)
        seconds = (max(table["time"][-1].as_py() for table in made.values()) - FIRST_INSTANT) / 1e6
        assert 50_000 / seconds == pytest.approx(70 * pace, rel=0.1)


def test_every_term_is_well_formed() -> None:
    for table in streams().values():
        lines = pc.binary_join_element_wise(
            table["subject"], table["predicate"], table["object"], table["graph"], ".\n", " "
        )
        text = "".join(lines.slice(0, 3_000).to_pylist()).encode()
        assert sum(1 for _ in pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_QUADS)) == 3_000


@pytest.mark.parametrize(("likes", "things"), [("POST_LIKES", "POSTS"), ("PHOTO_LIKES", "PHOTOS")])
def test_likes_follow_the_liked_things_and_are_mostly_of_friends(likes: str, things: str) -> None:
    table, liked = streams()[getattr(lsbench, likes)], streams()[getattr(lsbench, things)]
    made = dict(zip(liked["graph"].to_pylist(), liked["time"].to_pylist(), strict=True))
    assert all(
        made[thing] < time for thing, time in zip(table["object"].to_pylist(), table["time"].to_pylist(), strict=True)
    )
    maker = makers(liked)
    of_friends = [(user, maker[thing]) in friends() for user, thing in pairs(table, LIKE)]
    assert 0.8 < np.mean(of_friends) < 0.95
    # The most liked one has far more than its share.
    counted = Counter(thing for _, thing in pairs(table, LIKE)).most_common()
    assert counted[0][1] > 5 * counted[len(counted) // 2][1]


def makers(table: pa.Table) -> dict[str, str]:
    """Of posts, comments and albums; and of photos by way of their albums."""
    made = {thing: user for user, thing in pairs(table, CREATOR)}
    contained = {thing: made[album] for album, thing in pairs(table, CONTAINER) if album in made and "photo/" in thing}
    return {**made, **contained}


def test_photos_show_friends_of_their_makers() -> None:
    photos = streams()[lsbench.PHOTOS]
    maker = makers(photos)
    shown = pairs(photos, USERTAG)
    assert len(set(shown)) == len(shown) > 3 * len({photo for photo, _ in shown})
    assert {(maker[photo], person) for photo, person in shown} <= friends()


def test_comments_are_about_posts_and_answer_one_another() -> None:
    posts = streams()[lsbench.POSTS]
    reply = pairs(posts, f"<{SIOC}reply_of>")
    post_of = {comment: post for post, comment in pairs(posts, CONTAINER) if "/comment/" in comment}
    kinds = Counter("/comment/" in answered for _, answered in reply)
    assert kinds[True] > 50 and kinds[False] > 50
    for comment, answered in reply:
        assert post_of[comment] == (post_of[answered] if "/comment/" in answered else answered)


def test_posts_have_different_tags_some_of_which_burst() -> None:
    posts = streams()[lsbench.POSTS]
    tagged = posts.filter(pc.equal(posts["predicate"], HASHTAG))
    assert len(set(pairs(posts, HASHTAG))) == tagged.num_rows
    slot = (tagged["time"].to_numpy() - FIRST_INSTANT) // BURST
    tag = tagged["object"].to_pylist()
    overall, within = Counter(tag), Counter(zip(slot.tolist(), tag, strict=True))
    share = {each: number / len(tag) for each, number in overall.items()}
    sizes = Counter(slot.tolist())
    assert max(number / sizes[when] / share[each] for (when, each), number in within.items() if number > 20) > 2
    # Without bursts, too, some tags are used far more than others.
    assert overall.most_common()[0][1] > 20 * overall.most_common()[len(overall) // 2][1]


def test_sizes_that_make_no_stream_are_refused() -> None:
    with pytest.raises(UsageError, match="0 triples"):
        lsbench.streams(0)
    with pytest.raises(UsageError, match="pace of 0"):
        lsbench.streams(10, pace=0)
    with pytest.raises(UsageError, match="9 users"):
        lsbench.streams(10, users=9)


# --- the network --------------------------------------------------------------------------------------------------


def test_friends_know_one_another_and_their_numbers_follow_a_power_law() -> None:
    known = friends()
    assert known == {(other, one) for one, other in known}
    degree = np.sort([*Counter(one for one, _ in known).values()])[::-1]
    assert len(degree) == 1_000
    assert degree[0] > 8 * np.median(degree)
    # The number of users with at least so many friends falls with the square of that.
    ranks = np.arange(5, 200)
    slope = np.polyfit(np.log(degree[ranks]), np.log(ranks), 1)[0]
    assert -3.5 < slope < -1.5


def test_users_subscribe_to_their_own_forums_and_to_friends() -> None:
    there = network(100, 1)
    pairs_of = set(zip(*there.subscriptions.tolist(), strict=True))
    assert {(user, user) for user in range(100)} <= pairs_of
    assert {(user, 100 + int(there.group[user])) for user in range(100)} <= pairs_of
    assert len(pairs_of) > 300


@pytest.mark.parametrize("users", [10, 985, 1_500])
def test_the_users_named_by_queries_are_in_every_network(users: int) -> None:
    lines = lsbench.static(users=users).decode().splitlines()
    person = "<http://www.ins.cwi.nl/sib/person/p984>"
    named = {"first": '"Ines"', "last": '"Varga"'}
    for which, name in named.items():
        assert f"{person} <http://xmlns.com/foaf/0.1/{which}Name> {name} ." in lines
    persons = {line.split()[0] for line in lines if line.endswith("/Person> .")}
    assert len(persons) == users


def test_two_thousand_persons_have_different_names() -> None:
    rank = np.arange(2_000)
    assert len(set(zip(first_names(rank).to_pylist(), last_names(rank).to_pylist(), strict=True))) == 2_000


def test_the_suite_is_written_as_files(tmp_path: Path) -> None:
    write("lsbench", 1_000, "csv", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "gpsstream.csv",
        "likedphotostream.csv",
        "likedpoststream.csv",
        "photostream.csv",
        "poststream.csv",
        "static.nt",
    ]


# --- the official generator's files -------------------------------------------------------------------------------

PREFIXES = """\
@prefix sib: <http://www.ins.cwi.nl/sib/vocabulary/> .
@prefix sioc: <http://rdfs.org/sioc/ns#> .
@prefix dc: <http://purl.org/dc/elements/1.1/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <http://ex.org/> .
"""
POSTS = """\
:p1 a sib:Post .
:p1 dc:created "2010-02-01T00:00:09Z"^^xsd:dateTime .
:p1 sioc:content "a\\u0085b \\"c\\" ." .
:f sioc:container_of :p1 .
:u1 sioc:creator_of :p1 .
:p0 a sib:Post .
:p0 dc:created "2010-02-01T00:00:05Z"^^xsd:dateTime .
:u2 sioc:creator_of :p0 .
:p1 sib:hashtag "tag" .
"""
LIKES = """\
:u1 sib:like :p0 .
:u2 sib:like :p1 .
:u3 sib:like :p0 .
:u3 sib:like :elsewhere .
"""


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}1000.ttl").write_text(PREFIXES + text, encoding="utf-8")
    return folder


def seconds(table: pa.Table) -> list[int]:
    """Of the minute."""
    return [time // 1_000_000 % 60 for time in table["time"].to_pylist()]


def last(term: str) -> str:
    """Of an IRI's parts."""
    return term.rsplit("/", 1)[-1].rstrip(">")


def test_a_thing_is_an_element_at_the_time_when_it_was_made(tmp_path: Path) -> None:
    found = lsbench.official(written(tmp_path, rdfPostStream=POSTS))
    assert list(found) == [lsbench.POSTS]
    table = found[lsbench.POSTS].read_all()
    assert seconds(table) == [5] * 3 + [9] * 6
    assert [last(graph) for graph in table["graph"].to_pylist()] == ["p0"] * 3 + ["p1"] * 6
    assert [last(term) for term in table["subject"].to_pylist()] == [
        "p0",
        "p0",
        "u2",
        "p1",
        "p1",
        "p1",
        "f",
        "u1",
        "p1",
    ]
    assert table["object"].to_pylist()[5] == '"a\u0085b \\"c\\" ."'


def test_a_like_has_the_time_of_the_liked_thing_but_keeps_its_place(tmp_path: Path) -> None:
    found = lsbench.official(written(tmp_path, rdfPostStream=POSTS, rdfPostLikeStream=LIKES))
    likes = found[lsbench.POST_LIKES].read_all()
    assert seconds(likes) == [5, 9, 9, 9]
    assert [last(user) for user in likes["subject"].to_pylist()] == ["u1", "u2", "u3", "u3"]
    assert len(likes["graph"].unique()) == 4


def test_positions_and_static_data_are_read_compressed_too(tmp_path: Path) -> None:
    tracked = ':u1 sib:trackedAt :g .\n:g sib:trackedTime "2010-02-01T00:00:07Z"^^xsd:dateTime .\n'
    (tmp_path / "gpsStream9.ttl.gz").write_bytes(gzip.compress((PREFIXES + tracked).encode()))
    (tmp_path / "mr0_sibdataset9.ttl.gz").write_bytes(gzip.compress((PREFIXES + ":u1 sib:like :p .\n").encode()))
    assert seconds(lsbench.official(tmp_path)[lsbench.GPS_STREAM].read_all()) == [7, 7]
    assert lsbench.official_static(tmp_path) == f"<http://ex.org/u1> {LIKE} <http://ex.org/p> .\n".encode()


def test_files_that_cannot_be_loaded_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none of LSBench's streams \(gpsStream\*"):
        lsbench.official(tmp_path)
    with pytest.raises(UsageError, match=r"no static data of LSBench \(mr\*"):
        lsbench.official_static(tmp_path)
    with pytest.raises(UsageError, match=r"there is no file rdfPhotoStream\*"):
        lsbench.official(written(tmp_path, rdfPhotoLikeStream=LIKES))[lsbench.PHOTO_LIKES].read_all()
    with pytest.raises(DataError, match=r"<http://ex.org/p9> has neither dc:created nor"):
        lsbench.official(written(tmp_path, rdfPostStream=POSTS + ":u2 sioc:creator_of :p9 .\n"))[
            lsbench.POSTS
        ].read_all()
    with pytest.raises(DataError, match=r"rdfPostStream1000.ttl: .*"):
        lsbench.official(written(tmp_path, rdfPostStream=":u2 sioc:creator_of .\n"))[lsbench.POSTS].read_all()
    with pytest.raises(DataError, match="none of the liked things"):
        written(tmp_path, rdfPostStream=POSTS, rdfPostLikeStream=":u1 sib:like :x .\n")
        lsbench.official(tmp_path)[lsbench.POST_LIKES].read_all()
