"""The order in which the pages of an event stream are read, and its members returned: arithmetic only, without a connection.

A page that has not been read may have members of all times that relations do not exclude: those of other pages wait for it, unless
they are earlier. So members come in order of time, but for those that a page gets after it was read.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from cqels_py.errors import DataError, RunError
from cqels_py.formats.lines import Malformed
from cqels_py.sources.ldes.bounds import FIRST, LAST
from cqels_py.sources.ldes.pages import Member, Page, Path, Relation
from cqels_py.sources.ldes.waiting import Waiting, WaitingMembers

MOST_PAGES: Final = 1_000_000
"""The number of pages of a stream; with more the run ends with an error."""
MOST_REMEMBERED: Final = 1_000_000
"""The number of members of finished pages that are recognised on others."""
_REMEMBERED_IN_POSITION: Final = 1_000

_LOG = logging.getLogger("cqels_py")


@dataclass(slots=True, eq=False)
class KnownPage:
    """A page that is not finished. Its members' times are from `low` to `high`, as far as that is promised.

    `key`: the digest of its URL; `parent`: the page that led to it. `links`: those to which it leads. `returned`: the members of
    it that were returned, or left out; `waiting`: how many wait. Of the last response: `etag`, `modified`. `due`: when it is to
    be read again, on the caller's clock.
    """

    url: str
    key: int
    low: int
    high: int
    number: int
    parent: int | None = None
    links: frozenset[int] = frozenset()
    fetched: bool = False
    immutable: bool = False
    returned: set[int] = field(default_factory=set)
    waiting: int = 0
    etag: str | None = None
    modified: str | None = None
    due: float = 0.0

    @property
    def is_finished(self) -> bool:
        """Is it read to its end, for good?"""
        return self.immutable and self.fetched and not self.waiting


class Traversal:
    """Which page is next, which members are. `start`: members before this time are left out, and pages that have only such.
    `most_waiting`: bytes of members that may wait for pages.
    """

    def __init__(self, root: str, shown: str, path: Path | None, start: int, most_waiting: int) -> None:
        self._shown = shown
        self._start = start
        self.path = path
        self._root = digest(root)
        self._pages: dict[int, KnownPage] = {}
        self._finished: set[int] = set()
        self._waiting = WaitingMembers(shown, most_waiting)
        # Members that were returned, with their times; those that wait and were found once more.
        self._members: dict[int, int] = {}
        self._found_again: set[int] = set()
        # Pages that have not been read, in the order in which they will be: by the times of their first members.
        self._unread: list[tuple[int, int, int, KnownPage]] = []
        self._number = 0
        self._keeps: int | None = None
        self._greatest = FIRST
        self._told = False
        self._add(Relation(root, FIRST, LAST), None)

    # --- pages --------------------------------------------------------------------------------------------------------

    def next(self, now: float) -> KnownPage | None:
        """The page that is to be read now: one that has not been, with the earliest members first; or one that is due again."""
        if self.is_behind:
            return self._unread[0][-1]
        due = [page for page in self._pages.values() if not page.immutable and page.due <= now]
        return min(due, key=lambda page: (page.due, page.number), default=None)

    @property
    def is_behind(self) -> bool:
        """Are there pages that have never been read?"""
        while self._unread and self._unread[0][-1].fetched:
            heapq.heappop(self._unread)
        return bool(self._unread)

    @property
    def has_ended(self) -> bool:
        """Have all pages been read to their ends, for good?"""
        return not self._pages

    def take(self, known: KnownPage, url: str, page: Page, malformed: Malformed) -> None:
        """A page has been read from `url`, for the first time or again. RunError for too many pages."""
        self.path = self.path or page.path
        self._keeps = page.keeps if page.keeps is not None else self._keeps
        known.immutable = known.immutable or page.immutable
        for relation in self._followed(url, page):
            self._add(relation, known)
        known.links = frozenset(digest(each.url) for each in page.relations)
        for iri, error in page.wrong.items():
            self._leave_out(known, digest(iri), error, malformed)
        for member in page.members:
            self._put(known, member)
        known.fetched = True
        self._finish(known)

    def same(self, known: KnownPage) -> None:
        """A page has not changed."""
        known.fetched = True
        self._finish(known)

    def gone(self, known: KnownPage) -> None:
        """A page is no longer there."""
        known.immutable = known.fetched = True
        self._finish(known)

    def _followed(self, url: str, page: Page) -> tuple[Relation, ...]:
        """The relations of a page; of the description of a stream, its view."""
        if page.relations or page.members or not page.views or url in page.views:
            return page.relations
        if len(page.views) > 1:
            raise RunError(f"{url} has several views; give the URL of one of them: {', '.join(page.views)}")
        return (Relation(page.views[0], FIRST, LAST),)

    def _add(self, relation: Relation, parent: KnownPage | None) -> None:
        key = digest(relation.url)
        if key in self._finished or key in self._pages or relation.high < self._start:
            return
        if len(self._finished) + len(self._pages) >= MOST_PAGES:
            raise RunError(f"{self._shown} has more than {MOST_PAGES:,} pages")
        low, high = relation.low, relation.high
        if parent is not None and max(low, parent.low) <= min(high, parent.high):
            # Relations are true of all pages behind them. Otherwise it leads back.
            low, high = max(low, parent.low), min(high, parent.high)
        self._know(relation.url, low, high, None if parent is None else parent.key)

    def _know(self, url: str, low: int, high: int, parent: int | None) -> None:
        self._number += 1
        page = KnownPage(url, digest(url), low, high, self._number, parent)
        self._pages[page.key] = page
        heapq.heappush(self._unread, (low, high, self._number, page))

    def _finish(self, known: KnownPage) -> None:
        if known.is_finished:
            self._pages.pop(known.key, None)
            self._finished.add(known.key)

    # --- members ------------------------------------------------------------------------------------------------------

    def _put(self, known: KnownPage, member: Member) -> None:
        key = digest(member.iri)
        if key in self._members or key in known.returned or member.time < self._start:
            known.returned.add(key)
        elif self._waiting.add(Waiting(key, known.key, member.time, member.triples)):
            known.waiting += 1
            self._check_promise(known, member)
        else:
            known.returned.add(key)
            self._found_again.add(key)

    def _check_promise(self, known: KnownPage, member: Member) -> None:
        if member.time < known.low and not self._told:
            self._told = True
            _LOG.warning(
                "%s has members of before the time that relations promise, such as %s: they may be late",
                known.url,
                member.iri,
            )

    def _leave_out(self, known: KnownPage, key: int, error: DataError, malformed: Malformed) -> None:
        if key not in known.returned and key not in self._members and key not in self._waiting:
            known.returned.add(key)
            malformed(error)

    @property
    def first_waiting(self) -> int:
        """The time of the first member that waits; LAST if none does."""
        return self._waiting.first

    def release(self, most: int) -> list[Waiting]:
        """The next members, at most so many: those before which no unread page may have others."""
        found = self._waiting.take(self._unread[0][0] if self.is_behind else LAST, most)
        for key, page, time, _ in found:
            known = self._pages[page]
            known.returned.add(key)
            known.waiting -= 1
            self._finish(known)
            self._members[key] = time
            self._found_again.discard(key)
            self._greatest = max(self._greatest, time)
        if found:
            self._forget()
        return found

    def close(self) -> None:
        """Forget the members that wait."""
        self._waiting.close()

    def _forget(self) -> None:
        """Forget members that the server no longer has, and the oldest of too many; those of pages that may change stay there."""
        if len(self._members) > MOST_REMEMBERED:
            since = self._greatest - self._keeps if self._keeps is not None else FIRST
            kept = [(key, time) for key, time in self._members.items() if time >= since]
            self._members = dict(kept if len(kept) <= MOST_REMEMBERED else kept[-MOST_REMEMBERED // 2 :])

    # --- positions ----------------------------------------------------------------------------------------------------

    def position(self) -> dict[str, Any]:
        """Where the members that were returned end, as plain data: the pages that are not finished, and the members of them that
        were returned; of finished pages those to which these may lead back.
        """
        pages = list(self._pages.values())
        near = {self._root, *(page.parent for page in pages), *(key for page in pages for key in page.links)}
        members = {key for page in pages for key in page.returned} | set(_last(self._members, _REMEMBERED_IN_POSITION))
        return {
            "pages": [[page.url, page.low, page.high, page.parent] for page in pages],
            "finished": sorted(self._finished & near),
            "members": sorted(members - self._found_again),
            "path": list(self.path or ()),
        }

    def begin_at(self, position: Mapping[str, Any]) -> None:
        """Go on at a position; members in its `taken`, if there are any, have been returned behind it."""
        self._pages, self._unread = {}, []
        self._finished = set(position["finished"])
        self.path = self.path or tuple(position["path"]) or None
        self._members = dict.fromkeys([*position["members"], *position.get("taken", ())], FIRST)
        for url, low, high, parent in position["pages"]:
            self._know(url, low, high, parent)


def _last(members: Mapping[int, int], count: int) -> Iterator[int]:
    backwards = iter(reversed(members))
    for _ in range(min(count, len(members))):
        yield next(backwards)


def digest(text: str) -> int:
    """A number of 63 bits for a URL or an IRI: different ones have the same one in a billion streams once."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
