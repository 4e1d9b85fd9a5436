"""A server of Linked Data Event Streams for tests, whose pages are cut in several ways."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pyoxigraph

from tests.support.http_server import Request, served

VALUE, MADE = "http://example.org/v", "http://example.org/made"
KINDS = ("tree", "forward", "backward", "plain", "days", "mixed")
"""How pages lead to others: by halves of the time, to the next or the one before with a bound, without one, from one page to all, or
by relations of all kinds with members on pages of any depth.
"""

_PREFIXES = f"""@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix ex: <{VALUE[:-1]}> .
"""
_FORMATS = {
    "text/turtle": pyoxigraph.RdfFormat.TURTLE,
    "application/n-triples": pyoxigraph.RdfFormat.N_TRIPLES,
    "application/trig": pyoxigraph.RdfFormat.TRIG,
    "application/ld+json": pyoxigraph.RdfFormat.JSON_LD,
}


@dataclass
class Entry:
    """A member: its number, which is its IRI and value, and its time in seconds."""

    number: int
    time: int


@dataclass
class PageOf:
    """A page. `relations`: other pages, with bounds, of which None is none; `others`: other pages, with the types and values of a
    relation, as Turtle. `open`: it may change.
    """

    name: str
    entries: list[Entry]
    relations: list[tuple[str, int | None, int | None]] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)
    open: bool = False


@dataclass
class LdesServer:
    """Pages by name, and how often each was asked for (`asked`) and sent whole (`sent`). `kind`: the content type."""

    pages: dict[str, PageOf] = field(default_factory=dict)
    kind: str = "text/turtle"
    root: str = "root"
    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    path: str = "ex:made"
    in_body: bool = False

    def answer(self, request: Request) -> None:
        name = request.path.strip("/")
        self.asked[name] += 1
        if name == "stream":
            view = f"<{self.url}/stream> a ldes:EventStream ; ldes:timestampPath {self.path} ; tree:view <{self.url}/{self.root}> ."
            request.send(kind="text/turtle", body=(_PREFIXES + view).encode(), cache_control="immutable")
            return
        if (page := self.pages.get(name)) is None:
            request.send(404)
            return
        body = self.text(page)
        tag = f'"{zlib.crc32(body)}"'
        cache = "no-cache" if page.open or self.in_body else "max-age=9999, immutable"
        headers: dict[str, Any] = {"etag": tag, "cache_control": cache}
        if request.headers.get("if-none-match") == tag:
            request.send(304, **headers)
            return
        self.sent[name] += 1
        request.send(kind=self.kind, body=body, **headers)

    def text(self, page: PageOf) -> bytes:
        here = f"<{self.url}/{page.name}>"
        lines = [
            _PREFIXES,
            f"<{self.url}/stream> ldes:timestampPath {self.path} ; tree:view <{self.url}/{self.root}> .",
        ]
        if self.in_body and not page.open:
            lines.append(f"{here} ldes:immutable true .")
        for name, low, high in page.relations:
            node = f"tree:node <{self.url}/{name}>"
            if low is None and high is None:
                lines.append(f"{here} tree:relation [ a tree:Relation ; {node} ] .")
            for kind, bound in (("tree:GreaterThanOrEqualToRelation", low), ("tree:LessThanRelation", high)):
                if bound is not None:
                    value = f'tree:path {self.path} ; tree:value "{_time(bound)}"^^xsd:dateTime'
                    lines.append(f"{here} tree:relation [ a {kind} ; {node} ; {value} ] .")
        for name, how in page.others:
            lines.append(f"{here} tree:relation [ tree:node <{self.url}/{name}> ; {how} ] .")
        for entry in page.entries:
            member = f"<{self.url}/member/{entry.number}>"
            lines.append(f"<{self.url}/stream> tree:member {member} .")
            lines.append(
                f'{member} ex:made "{_time(entry.time)}"^^xsd:dateTime ; ex:v {entry.number} ; ex:of [ ex:part {entry.number} ] .'
            )
        text = "\n".join(lines)
        if self.kind == "text/turtle":
            return text.encode()
        quads = list(pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.TURTLE))
        found = pyoxigraph.serialize(quads, format=_FORMATS[self.kind])
        assert found is not None
        return found

    def put(self, pages: Sequence[PageOf]) -> None:
        self.pages = {page.name: page for page in pages}
        self.root = pages[0].name


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


@contextmanager
def ldes_server(**how: Any) -> Iterator[LdesServer]:
    server = LdesServer(**how)
    with served(server.answer) as url:
        server.url = url
        yield server


def entries(random: Random, count: int) -> list[Entry]:
    """Members in order of time, of which several may have the same."""
    times = sorted(random.randrange(count) for _ in range(count))
    return [Entry(number, time) for number, time in enumerate(times)]


def cut(kind: str, members: Sequence[Entry], random: Random) -> list[PageOf]:
    """Pages of a kind with these members, the first page first; on a page they are in any order."""
    if kind == "mixed":
        pages = list(_mixed("root", list(members), random))
    elif kind == "tree":
        pages = list(_tree("root", list(members), members[-1].time + 1, random))
    else:
        bounds = sorted({0, *(random.randrange(len(members)) for _ in range(5)), len(members)})
        parts = [list(members[start:end]) for start, end in pairwise(bounds)]
        pages = [PageOf(f"page{number}", part) for number, part in enumerate(parts)]
        links = list(pairwise(pages))
        if kind == "forward":
            for page, after in links:
                # It leads back, too.
                page.relations.append((after.name, after.entries[0].time, None))
                after.relations.append((page.name, None, None))
        elif kind == "plain":
            for page, after in links:
                page.relations.append((after.name, None, None))
        elif kind == "backward":
            for page, after in links:
                after.relations.append((page.name, None, page.entries[-1].time + 1))
            pages.reverse()
        else:
            to_all: list[tuple[str, int | None, int | None]] = [
                (page.name, page.entries[0].time, page.entries[-1].time + 1) for page in pages
            ]
            random.shuffle(to_all)
            pages.insert(0, PageOf("root", [], to_all))
    for page in pages:
        random.shuffle(page.entries)
    return pages


def _tree(name: str, members: list[Entry], end: int, random: Random) -> Iterator[PageOf]:
    """Halves of the time, down to pages of a few members; an inner page has some of its own."""
    if len(members) <= 4:
        yield PageOf(name, members)
        return
    middle = members[len(members) // 2].time
    own = [each for each in members if random.random() < 0.2]
    rest = [each for each in members if each not in own]
    early = [each for each in rest if each.time < middle]
    late = [each for each in rest if each.time >= middle]
    if not early or not late:
        yield PageOf(name, members)
        return
    yield PageOf(name, own, [(f"{name}1", middle, end), (f"{name}0", None, middle)])
    yield from _tree(f"{name}0", early, middle, random)
    yield from _tree(f"{name}1", late, end, random)


def _mixed(name: str, members: list[Entry], random: Random) -> Iterator[PageOf]:
    """Members anywhere in a tree, whose relations promise as much as is true of all pages behind them, or less; some lead back."""
    here = PageOf(name, [])
    behind: list[list[Entry]] = [[] for _ in range(random.randint(1, 3))]
    by_time = random.random() < 0.5
    for number, member in enumerate(members):
        place = number * len(behind) // len(members) if by_time else random.randrange(len(behind))
        (here.entries if len(members) < 3 or random.random() < 0.3 else behind[place]).append(member)
    yield here
    for number, part in enumerate(behind):
        if part:
            here.others.append((f"{name}{number}", _true_relation(part[0].time, part[-1].time, random)))
            for page in _mixed(f"{name}{number}", part, random):
                if random.random() < 0.2:
                    page.others.append((name, "a tree:Relation"))
                yield page
    random.shuffle(here.others)


def _true_relation(first: int, last: int, random: Random) -> str:
    """A relation that is true of members from the first to the last time, in seconds."""
    start, end = datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)
    # Without a zone a value may be in any.
    local = timedelta(hours=random.randint(-14, 14))
    kinds = [
        ("tree:Relation", ""),
        ("tree:GreaterThanRelation", _value(first - 1)),
        ("tree:GreaterThanOrEqualToRelation", _value(first)),
        ("tree:GreaterThanOrEqualToRelation", f'"{(start + local):%Y-%m-%d}"^^xsd:date'),
        ("tree:LessThanRelation", _value(last + 1)),
        ("tree:LessThanOrEqualToRelation", _value(last)),
        ("tree:GreaterThanRelation, tree:LessThanRelation", f"{_value(last + 1)}, {_value(first - 1)}"),
        ("tree:PrefixRelation", _value(first + 1)),
    ]
    for pattern, kind in _PARTS:
        if start.strftime(pattern) == end.strftime(pattern):
            kinds += [("tree:InBetweenRelation", f'"{start.strftime(pattern)}Z"{kind}')] * 3
        if (start + local).strftime(pattern) == (end + local).strftime(pattern):
            kinds += [("tree:InBetweenRelation", f'"{(start + local).strftime(pattern)}"{kind}')] * 3
    if first == last:
        kinds += [("tree:EqualToRelation", _value(first))] * 3
    kind, value = random.choice(kinds)
    if not value:
        return f"a {kind}"
    if random.random() < 0.1:
        return f"a {kind} ; tree:path ex:other ; tree:value {_value(last + 9)}"
    return f"a {kind} ; tree:path ex:made ; tree:value {value}"


_PARTS = (
    ("%Y-%m-%dT%H:%M:%S", "^^xsd:dateTime"),
    ("%Y-%m-%dT%H:%M", ""),
    ("%Y-%m-%dT%H", "^^xsd:dateTime"),
    ("%Y-%m-%d", "^^xsd:date"),
    ("%Y-%m", "^^xsd:gYearMonth"),
    ("%Y", "^^xsd:gYear"),
)


def _value(seconds: int) -> str:
    return f'"{_time(seconds)}"^^xsd:dateTime'
