"""Linked Data Event Streams as sources: against a server of the test's own, whose members are the oracle."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cqels_py import Engine
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, RunError, UsageError
from cqels_py.formats.json_ld import JsonLd
from cqels_py.sources.ldes.bounds import FIRST
from cqels_py.sources.ldes.pages import read_page
from cqels_py.sources.ldes.traversal import Traversal
from cqels_py.sources.ldes.waiting import Waiting, WaitingMembers
from cqels_py.sources.partitions import position_behind
from cqels_py.sources.protocol import Opening
from cqels_py.sources.urls import source_of
from cqels_py.testing import check_source
from tests.support.http_server import Request, served
from tests.support.ldes_server import KINDS, MADE, VALUE, Entry, LdesServer, PageOf, cut, entries, ldes_server
from tests.support.servers import needed_module, wait_until

STREAM = "http://example.org/stream"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
FORMATS = ("text/turtle", "application/n-triples", "application/trig", "application/ld+json")


@pytest.fixture(autouse=True)
def packages() -> None:
    needed_module("httpx", "http")


class Reading:
    """A source, and the elements that it has returned: their times in seconds and the members' numbers."""

    def __init__(self, url: str, **opening: Any) -> None:
        self.dictionary = Dictionary()
        self.source: Any = source_of(url).open(Opening(stream=STREAM, number=0, dictionary=self.dictionary, **opening))
        self.found: list[tuple[int, int]] = []
        self.ended = False

    def poll(self) -> list[tuple[int, int]]:
        batch = self.source.poll()
        if batch is None:
            self.ended = True
            return []
        predicate = self.dictionary.encode_one(f"<{VALUE}>")
        terms = self.dictionary.decode(batch.object[batch.predicate == predicate])
        numbers = [int(str(term).split('"')[1]) for term in terms]
        new = list(zip((batch.time // 1_000_000).tolist(), numbers, strict=True))
        self.found += new
        return new

    def to_end(self) -> list[tuple[int, int]]:
        self._until(lambda: self.ended)
        return self.found

    def up_to(self, count: int) -> list[tuple[int, int]]:
        self._until(lambda: len(self.found) >= count)
        return self.found

    def _until(self, done: Callable[[], bool]) -> None:
        # A poll waits by itself; the first may compile kernels.
        until = time.monotonic() + 120
        while not done():
            assert time.monotonic() < until, f"{len(self.found)} elements, and no more"
            self.poll()

    def close(self) -> None:
        self.source.close()


@pytest.fixture
def server() -> Iterator[LdesServer]:
    with ldes_server() as found:
        yield found


def pairs(members: list[Entry]) -> list[tuple[int, int]]:
    return sorted((each.time, each.number) for each in members)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_each_member_once_in_order_of_time(kind: str, seed: int, server: LdesServer) -> None:
    random = Random(seed)
    server.kind, server.in_body = FORMATS[seed], seed % 2 == 1
    members = entries(random, random.choice([5, 60]))
    server.put(cut(kind, members, random))
    with closing(Reading(f"ldes+{server.url}/stream")) as reading:
        # All pages are immutable, so that the stream ends.
        found = reading.to_end()
    assert sorted(found) == pairs(members)
    assert [time for time, _ in found] == sorted(each.time for each in members)
    assert server.asked == dict.fromkeys(["stream", *server.pages], 1)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_the_tree_members_come_in_order_of_time(seed: int) -> None:
    """Also if the run is interrupted anywhere, and goes on at its position: members of before it are read again."""
    random = Random(seed)
    scale = random.choice([1, 40, 1700, 50_000, 2_000_000])
    members = [Entry(each.number, each.time * scale) for each in entries(random, random.choice([5, 30, 60]))]
    server = LdesServer(url="http://localhost")
    server.put(cut("mixed", members, random))
    found: list[tuple[int, int]] = []
    position: Any = None
    while len(found) < len(members):
        traversal = Traversal("http://localhost/root", "pages", None, FIRST, 1 << 20)
        if position is not None:
            traversal.begin_at(position)
        for _ in range(random.choice([5, 20, 1000])):
            if (known := traversal.next(0)) is not None:
                body = server.text(server.pages[known.url.rpartition("/")[2]])
                page = read_page(body, "text/turtle", known.url, {}, traversal.path)
                traversal.take(known, known.url, replace(page, immutable=True), _never)
            found += [(each.time // 1_000_000, _number(each)) for each in traversal.release(random.choice([1, 3, 100]))]
        position = json.loads(json.dumps(traversal.position()))
    assert traversal.has_ended
    assert sorted(found) == pairs(members)
    assert [time for time, _ in found] == [each.time for each in members]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_page_of_rdf_xml_is_read_as_a_file_is(encoding: str) -> None:
    def page(inside: str, end: str = "</r:RDF>") -> Any:
        text = (
            '<?xml version="1.0"?><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/" '
            'xmlns:t="https://w3id.org/tree#" xml:lang="de"><r:Description r:about=""><t:member><r:Description r:about="m">'
            f"<e:at>2024-01-01T00:00:00Z</e:at>{inside}</r:Description></t:member></r:Description>{end}"
        )
        return read_page(text.encode(encoding), "application/rdf+xml", "http://h/page", JsonLd(), ("http://e/at",))

    (member,) = page('<e:a xml:lang="">one</e:a><e:a>two</e:a><e:b r:resource="#x"/>').members
    assert member.iri == "<http://h/m>"
    assert {value for _, _, value in member.triples} > {'"one"', '"two"@de', "<http://h/page#x>"}
    for wrong in ('<e:a xml:lang="x">x</e:a>', '<e:b r:resource="http://e/%"/>'):
        for empty in ("", '<e:a xml:lang="">one</e:a>'):
            with pytest.raises(DataError, match="http://h/page"):
                page(wrong + empty)
    with pytest.raises(DataError, match="not well-formed XML"):
        page("", "")


def _never(error: DataError) -> None:
    raise error


def _number(member: Waiting) -> int:
    return next(int(value.split('"')[1]) for _, predicate, value in member.triples if predicate == f"<{VALUE}>")


def test_more_members_than_may_wait_end_the_run(server: LdesServer) -> None:
    """None is dropped: an error says what to do, which then works."""
    server.put([PageOf("a", [Entry(n, n) for n in range(50)], [("b", None, None)]), PageOf("b", [Entry(50, 0)])])
    with closing(Reading(f"ldes+{server.url}/a#waiting=2KB")) as reading:
        with pytest.raises(RunError, match="more than 2,000 bytes of members wait for pages"):
            reading.to_end()
        assert not reading.found
    with closing(Reading(f"ldes+{server.url}/a#waiting=2MB")) as reading:
        assert reading.to_end() == [(0, 0), (0, 50), *((n, n) for n in range(1, 50))]


def test_many_members_wait_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cqels_py.sources.ldes.waiting._CACHE_KIB", 100)
    waiting = WaitingMembers("pages", 1 << 30)
    members = [
        Waiting(n, n % 7, n * 37 % 4001, (("<http://e/s>", f"<http://e/{'p' * 200}>", f'"{n}"'),)) for n in range(4001)
    ]
    assert all(waiting.add(member) for member in members)
    assert not waiting.add(members[5])
    assert waiting.first == 0
    found = waiting.take(2000, 1500) + waiting.take(2000, 1500)
    assert found == sorted(members, key=lambda member: member.time)[:2000]
    assert waiting.first == 2000
    assert found[0].key not in waiting
    waiting.close()


def test_a_promise_that_is_broken_is_told(server: LdesServer, caplog: pytest.LogCaptureFixture) -> None:
    server.put([PageOf("a", [Entry(0, 0)], [("b", 5, None)]), PageOf("b", [Entry(1, 3), Entry(2, 6)])])
    with caplog.at_level(logging.WARNING), closing(Reading(f"ldes+{server.url}/a")) as reading:
        assert reading.to_end() == [(0, 0), (3, 1), (6, 2)]
    (said,) = caplog.messages
    assert (
        f"{server.url}/b has members of before the time that relations promise, such as <{server.url}/member/1>" in said
    )


@pytest.mark.parametrize("kind", ["tree", "days"])
def test_pages_before_the_start_are_not_read(kind: str, server: LdesServer) -> None:
    members = entries(Random(1), 60)
    server.put(cut(kind, members, Random(1)))
    start = members[40].time
    with closing(Reading(f"ldes+{server.url}/{server.root}#start={start * 1_000_000}")) as reading:
        assert reading.to_end() == [pair for pair in reading.found if pair[0] >= start]
    assert sorted(reading.found) == [pair for pair in pairs(members) if pair[0] >= start]
    assert len(server.asked) < len(server.pages)


def test_a_stream_that_grows(server: LdesServer) -> None:
    """The last page is asked for again, and sent only if it has changed; pages that are immutable are not."""
    server.put([PageOf("a", [Entry(0, 0), Entry(1, 1)], [("b", 2, None)]), PageOf("b", [Entry(2, 2)], open=True)])
    with closing(Reading(f"ldes+{server.url}/stream#refresh=20ms&idle=1ms")) as reading:
        assert reading.up_to(3) == [(0, 0), (1, 1), (2, 2)]
        wait_until(lambda: reading.poll() or server.asked["b"] > 2, "it is asked for again")
        assert server.sent["b"] == 1
        assert reading.source.idle
        server.pages["b"].entries.append(Entry(3, 5))
        assert reading.up_to(4)[3:] == [(5, 3)]
        server.pages["b"].relations.append(("c", 6, None))
        server.pages["c"] = PageOf("c", [Entry(4, 9), Entry(5, 7)], open=True)
        assert reading.up_to(6)[4:] == [(7, 5), (9, 4)]
        server.pages["b"].open = server.pages["c"].open = False
        server.pages["c"].entries.append(Entry(6, 10))
        assert reading.to_end()[6:] == [(10, 6)]
    assert server.asked["a"] == server.asked["stream"] == 1


def test_without_following_it_ends(server: LdesServer) -> None:
    server.put([PageOf("a", [Entry(0, 0)], open=True)])
    with closing(Reading(f"ldes+{server.url}/a#follow=no")) as reading:
        assert reading.to_end() == [(0, 0)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_it_goes_on_at_a_position(kind: str, seed: int, server: LdesServer) -> None:
    """Interrupted at any element, while the stream grows by members of any time: each comes once."""
    random = Random(seed)
    members = entries(random, 40)
    server.put(cut(kind, members, random))
    last = next(page for page in server.pages.values() if members[-1] in page.entries)
    last.open = True
    found: list[tuple[int, int]] = []
    position: Any = None
    for _ in range(60):
        with closing(Reading(f"ldes+{server.url}/stream#refresh=5ms", continues=True, position=position)) as reading:
            new: list[tuple[int, int]] = []
            until = time.monotonic() + 10
            while not new and len(found) < len(members) and time.monotonic() < until:
                new = reading.poll()
            taken = random.randint(0, len(new))
            found += new[:taken]
            position = reading.source.position()
            if taken < len(new):
                returned = reading.source.returned
                position = position_behind(returned.before, returned.numbers[:taken])
            # As the log keeps it.
            position = json.loads(json.dumps(position))
        if len(found) == len(members):
            break
        if random.random() < 0.5:
            members.append(Entry(len(members), random.randint(0, members[-1].time)))
            last.entries.insert(random.randrange(len(last.entries)), members[-1])
    assert sorted(found) == pairs(members)


def test_a_position_is_bounded(server: LdesServer) -> None:
    """It has what is needed to go on: not what lies behind."""
    members = [Entry(number, number) for number in range(3000)]
    pages = [PageOf(f"p{start}", members[start : start + 100]) for start in range(0, 3000, 100)]
    for page, after in pairwise(pages):
        page.relations.append((after.name, after.entries[0].time, None))
        after.relations.append((page.name, None, after.entries[0].time))
    pages[-1].open = True
    server.put(pages)
    with closing(Reading(f"ldes+{server.url}/stream", continues=True)) as reading:
        reading.up_to(3000)
        position = reading.source.position()
    assert len(position["pages"]) == 1
    assert len(position["finished"]) <= 2
    assert len(position["members"]) <= 1100


def test_a_run_with_a_position_goes_on_behind_its_commit(server: LdesServer, tmp_path: Path) -> None:
    server.put([PageOf("a", [Entry(0, 0), Entry(1, 1)], open=True)])
    url = f"ldes+{server.url}/stream#refresh=5ms&position={tmp_path / 'at'}"
    with closing(Reading(url)) as reading:
        reading.up_to(2)
        reading.source.commit(reading.source.position())
    server.pages["a"].entries.append(Entry(2, 2))
    with closing(Reading(url)) as reading:
        assert reading.up_to(1) == [(2, 2)]


def test_an_engine_goes_on_from_its_checkpoint(server: LdesServer, tmp_path: Path) -> None:
    """Each member counts once, whenever the process ends."""
    random = Random(7)
    members = entries(random, 60)
    server.put(cut("tree", members, random))
    found: dict[int, str] = {}
    for _ in range(100):
        engine = Engine(checkpoint=tmp_path, batch=random.choice([None, 1, 3]))
        query = engine.register(
            f"SELECT ?v FROM NAMED WINDOW <http://example.org/w> ON <{STREAM}> [RANGE PT1S] "
            f"WHERE {{ WINDOW <http://example.org/w> {{ ?s <{VALUE}> ?v }} }}",
            name="q",
        )
        query.subscribe(lambda result: found.update({result.number: str(result.bindings["v"])}))
        left = random.randrange(1, 6)
        inputs: Any = engine._inputs
        taken: Callable[..., None] = inputs.elements

        def stop(batch: Any, **how: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise InterruptedError
            taken(batch, **how)  # noqa: B023

        inputs.elements = stop
        try:
            engine.run({STREAM: f"ldes+{server.url}/stream"})
            break
        except InterruptedError:
            engine.close()
    assert engine.statistics.elements == 60
    assert sorted(found.values(), key=int) == [str(number) for number in range(60)]


def test_it_keeps_the_protocol(server: LdesServer) -> None:
    server.put([PageOf("a", [Entry(n, n) for n in range(1, 4)], open=True)])
    dated = [f"1970-01-01T00:00:0{n}Z" for n in range(4)]
    elements = [
        (
            n * 1_000_000,
            [
                (
                    f"<{server.url}/member/{n}>",
                    f"<{MADE}>",
                    f'"{dated[n]}"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
                ),
                (f"<{server.url}/member/{n}>", f"<{VALUE}>", f'"{n}"{INTEGER}'),
                (f"<{server.url}/member/{n}>", "<http://example.org/of>", "_:b0"),
                ("_:b0", "<http://example.org/part>", f'"{n}"{INTEGER}'),
            ],
        )
        for n in range(1, 4)
    ]

    def wrong(request: Request) -> None:
        text = server.text(server.pages["a"]).decode()
        text += f"<{server.url}/stream> tree:member ex:timeless, ex:nowhere . ex:timeless ex:v 1 ."
        request.send(kind="text/turtle", body=text.encode())

    with served(wrong) as other:
        check_source(
            lambda: source_of(f"ldes+{server.url}/stream#follow=no"),
            elements,
            malformed=lambda: source_of(f"ldes+{other}/a#follow=no"),
        )


def test_a_path_of_several_properties_and_a_graph_of_the_member() -> None:
    text = """PREFIX tree: <https://w3id.org/tree#> PREFIX ldes: <https://w3id.org/ldes#> PREFIX ex: <http://example.org/>
    ex:c ldes:timestampPath ( ex:at ex:made ) ; tree:view <> ; tree:member ex:m . <> ldes:immutable true .
    ex:m ex:at [ ex:made "1970-01-01T00:00:05Z" ] . ex:m { ex:other ex:v 7 }"""
    with (
        served(lambda request: request.send(kind="application/trig", body=text.encode())) as url,
        closing(Reading(f"ldes+{url}/")) as reading,
    ):
        assert reading.to_end() == [(5, 7)]


@pytest.mark.parametrize("predicate", [None, MADE])
def test_a_stream_without_a_path_needs_a_time_predicate(predicate: str | None) -> None:
    text = f"""@prefix tree: <https://w3id.org/tree#> . <#c> tree:view <> ; tree:member <#m> .
    <#m> <{MADE}> "1970-01-01T00:00:05Z" ; <{VALUE}> 7 ."""
    with (
        served(lambda request: request.send(kind="application/octet-stream", body=text.encode())) as url,
        closing(Reading(f"ldes+{url}/a.ttl#follow=no", time_predicate=predicate)) as reading,
    ):
        if predicate is None:
            with pytest.raises(RunError, match="name the property as time predicate"):
                reading.to_end()
        else:
            assert reading.to_end() == [(5, 7)]


def test_a_server_that_asks_for_patience(server: LdesServer, caplog: pytest.LogCaptureFixture) -> None:
    """429 with Retry-After, 503, and a page that is gone."""
    server.put([PageOf("a", [Entry(0, 0)], [("b", None, None), ("c", None, None)]), PageOf("c", [Entry(1, 1)])])
    refused = [429, 503]
    asked: list[float] = []

    def answer(request: Request) -> None:
        if request.path == "/a" and refused:
            asked.append(time.monotonic())
            request.send(refused.pop(), retry_after="1" if refused else "Wed, 21 Oct 2015 07:28:00 GMT")
        elif request.path == "/b":
            request.send(410)
        else:
            asked.append(time.monotonic())
            server.answer(request)

    with caplog.at_level(logging.WARNING), served(answer) as url:
        server.url = url
        with closing(Reading(f"ldes+{url}/a")) as reading:
            assert reading.to_end() == [(0, 0), (1, 1)]
    assert asked[1] - asked[0] >= 1
    said = "\n".join(caplog.messages)
    assert "status 503; trying again" in said
    assert "/b is gone" in said


def test_a_time_of_modification_counts_once_its_second_is_over() -> None:
    """A page may change twice within the second that its time has."""
    text = "@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> ."
    text += f"<#c> tree:view <> ; ldes:timestampPath <{MADE}> ."
    asked: list[str | None] = []

    def answer(request: Request) -> None:
        asked.append(request.headers.get("if-modified-since"))
        if asked[-1] is not None:
            request.send(304)
            return
        number = len(asked)
        member = f'<#m{number}> <{MADE}> "1970-01-01T00:00:0{number}Z" ; <{VALUE}> {number} . <#c> tree:member <#m{number}> .'
        age = 0 if number == 1 else 5
        modified = formatdate(time.time() - age, usegmt=True)
        request.send(kind="text/turtle", body=(text + member).encode(), last_modified=modified)

    with served(answer) as url, closing(Reading(f"ldes+{url}/a#refresh=5ms")) as reading:
        assert reading.up_to(2) == [(1, 1), (2, 2)]
        wait_until(lambda: reading.poll() or len(asked) > 2, "it is asked for again")
    assert asked[:2] == [None, None]
    assert asked[2] is not None


def test_another_server_is_asked_only_if_it_is_allowed(server: LdesServer) -> None:
    """A link, and a redirect; the token is for the first server."""
    tokens: dict[str, str | None] = {}

    def first(request: Request) -> None:
        tokens["first"] = request.headers.get("authorization")
        if request.path == "/moved":
            request.send(302, location=f"{server.url}/a")
        else:
            link = f"<> <https://w3id.org/tree#relation> [ <https://w3id.org/tree#node> <{server.url}/a> ] ."
            request.send(kind="text/turtle", body=link.encode(), cache_control="immutable")

    answered = server.answer

    def second(request: Request) -> None:
        tokens["second"] = request.headers.get("authorization")
        answered(request)

    with served(second) as url, served(first) as other:
        server.url = url
        server.put([PageOf("a", [Entry(0, 0)])])
        for path in ("moved", "link"):
            refused = pytest.raises(RunError, match=f"leads to {url}/a, of another server: allow it with hosts=127")
            with closing(Reading(f"ldes+{other}/{path}")) as reading, refused:
                reading.to_end()
            assert not server.asked
            allowed = f"hosts={url.removeprefix('http://')}&token=abc"
            with closing(Reading(f"ldes+{other}/{path}#{allowed}")) as reading:
                assert reading.to_end() == [(0, 0)]
            assert tokens == {"first": "Bearer abc", "second": None}
            server.asked.clear()


@pytest.mark.parametrize(
    ("send", "options", "said"),
    [
        ({"status": 404}, "", "answers with status 404"),
        ({"kind": "text/html"}, "", "answers with text/html; pages are read in"),
        ({"kind": "text/turtle", "body": b"# " + b"x" * 3000}, "#page=2KB", "has more than 2,000 bytes: allow larger"),
        (
            {"kind": "text/turtle", "body": b"<#c> <https://w3id.org/tree#view> <#a>, </b>, </c> ."},
            "",
            "has several views",
        ),
    ],
)
def test_what_is_no_stream_is_refused(send: dict[str, Any], options: str, said: str) -> None:
    with served(lambda request: request.send(**send)) as url, closing(Reading(f"ldes+{url}/a{options}")) as reading:
        if "several" in said:
            send["body"] = send["body"].replace(b"<#a>, ", b"")
        with pytest.raises(RunError, match=said):
            reading.to_end()


def test_a_page_that_cannot_be_parsed() -> None:
    with served(lambda request: request.send(kind="text/turtle", body=b"<#a> nonsense")) as url:
        with closing(Reading(f"ldes+{url}/a")) as reading, pytest.raises(DataError, match=f"^{url}/a:1:"):
            reading.to_end()
        told: list[DataError] = []
        with closing(Reading(f"ldes+{url}/a#follow=no", on_error="skip", report=told.append)) as reading:
            assert reading.to_end() == []
        assert len(told) == 1


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(UsageError, match="there is no option 'strt'"):
        source_of("ldes+http://localhost/a#strt=arrival")
    with pytest.raises(UsageError, match="the option start is earliest or a time"):
        source_of("ldes+https://localhost/a#start=soon")
