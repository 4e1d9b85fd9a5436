"""The events in the network as columns of numbers, common to all streams.

Events follow one another at random, and each stream contains a part of them. Likes, comments and photos refer to
earlier things, more often to newer ones. Hashtags come from the interests of their authors, and from topics that are
popular for ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import IntEnum
from itertools import count

import numpy as np

from .network import TAGS, Codes, Flags, Network, Numbers, active, tags

SECOND = 1_000_000
FIRST_INSTANT = 1_269_820_800 * SECOND
"""2010-03-29T00:00Z."""
BURST = 600 * SECOND
HOT = 3
"""The number of tags that are popular at a time."""
MOST_TAGS = 5
MOST_PERSONS = 9
KEPT = 4_096
"""The number of recent posts, photos and albums that can be referred to."""
OPEN_ALBUMS = 32
BLOCK = 8_192


class Kind(IntEnum):
    """Kinds of events, in the order of RATES."""

    TRACKED = 0
    POST = 1
    COMMENT = 2
    POST_LIKE = 3
    ALBUM = 4
    PHOTO = 5
    PHOTO_LIKE = 6


RATES = np.array([4.0, 1.5, 0.8, 5.0, 0.1, 1.0, 6.0])
"""Events per second of a thousand users: about 70 triples."""
TRIPLES = np.array([5, 8, 7, 1, 4, 9, 1])
"""Triples of an event, without tags and agents."""


@dataclass(frozen=True, slots=True)
class Events:
    """A row for each event of a block. Users are given by rank, other things by number.

    kind · time (microseconds) · number: how many of the kind there were before · user: who does it
    thing: a like's post or photo, a comment's post, a photo's album; -1 for others
    reply: the comment that a comment replies to, or -1 · forum: a post's
    tags: a post's, -1 where there are fewer · persons: a photo's, likewise · agent: whether there is one
    draw: random numbers for the remaining details
    """

    kind: Codes
    time: Codes
    number: Codes
    user: Codes
    thing: Codes
    reply: Codes
    forum: Codes
    tags: Codes
    persons: Codes
    agent: Flags
    draw: Numbers

    def where(self, chosen: Flags) -> Events:
        return Events(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})

    def triples(self) -> Codes:
        """The number of triples of each event."""
        named = np.count_nonzero(self.tags >= 0, axis=1) + np.count_nonzero(self.persons >= 0, axis=1)
        number: Codes = TRIPLES[self.kind] + named + self.agent
        return number


def events(network: Network, pace: float) -> Iterator[Events]:
    """Blocks of events without end. Users act `pace` times as often as RATES says."""
    made = np.zeros(len(Kind), np.int64)
    # The makers of the latest posts, albums and photos, which likes and comments of later blocks refer to.
    makers = {kind: np.empty(0, np.int64) for kind in (Kind.POST, Kind.ALBUM, Kind.PHOTO)}
    milliseconds = 0
    gap = 1000 / (RATES.sum() * network.users / 1000 * pace)
    for block in count():
        random = np.random.default_rng((network.seed, 4, block))
        kind = random.choice(len(Kind), size=BLOCK, p=RATES / RATES.sum()).astype(np.int64)
        if block == 0:
            kind[:3] = Kind.POST, Kind.ALBUM, Kind.PHOTO
        # No two events have the same instant, so the order of the streams among each other is defined.
        passed = milliseconds + np.cumsum(1 + np.floor(random.exponential(max(gap - 0.5, 0.01), BLOCK))).astype(
            np.int64
        )
        milliseconds = int(passed[-1])
        yield _block(network, random, kind, FIRST_INSTANT + passed * 1000, made, makers)
        made += np.bincount(kind, minlength=len(Kind))


def _block(
    network: Network,
    random: np.random.Generator,
    kind: Codes,
    time: Codes,
    made: Codes,
    makers: dict[Kind, Codes],
) -> Events:
    """`made`: how many of each kind there were before the block. `makers` is updated."""
    before = np.stack([np.cumsum(kind == each) - (kind == each) for each in Kind])
    before += made[:, None]
    number = before[kind, np.arange(BLOCK)]
    user = np.where(
        kind == Kind.TRACKED,
        random.integers(0, network.users, BLOCK),
        active(network.users, random.random(BLOCK)),
    )
    lag = random.random(BLOCK)
    thing = np.full(BLOCK, -1)

    post = kind == Kind.POST
    root = _continued(random, int(np.count_nonzero(post)))
    user[post] = user[post][root]
    _remember(makers, Kind.POST, user[post])

    _remember(makers, Kind.ALBUM, user[kind == Kind.ALBUM])
    photo = kind == Kind.PHOTO
    thing[photo], user[photo] = _referred(Kind.ALBUM, photo, before, made, makers, kind, lag, OPEN_ALBUMS)
    _remember(makers, Kind.PHOTO, user[photo])

    draw, stranger = random.random((2, BLOCK))
    for reaction, to in ((Kind.COMMENT, Kind.POST), (Kind.POST_LIKE, Kind.POST), (Kind.PHOTO_LIKE, Kind.PHOTO)):
        chosen = kind == reaction
        thing[chosen], maker = _referred(to, chosen, before, made, makers, kind, lag, KEPT)
        user[chosen] = np.where(stranger[chosen] < 0.85, network.friend(maker, draw[chosen]), user[chosen])

    in_group = random.random(BLOCK) < 0.2
    return Events(
        kind=kind,
        time=time,
        number=number,
        user=user,
        thing=thing,
        reply=_replies(random, kind, thing, number),
        forum=np.where(in_group, network.users + network.group[user], user),
        tags=_tags(network, random, time, user, post, root),
        persons=_persons(network, random, user, photo),
        agent=(post | photo) & (random.random(BLOCK) < 0.4),
        draw=random.random(BLOCK),
    )


def _continued(random: np.random.Generator, posts: int) -> Codes:
    """For each post, the post itself or the one that it continues: by the same user, about the same topic."""
    place = np.arange(posts)
    earlier = place - random.integers(1, 9, posts)
    root = np.where((random.random(posts) < 0.15) & (earlier >= 0), earlier, place)
    while (further := root[root] != root).any():
        root = np.where(further, root[root], root)
    return root


def _remember(makers: dict[Kind, Codes], kind: Kind, users: Codes) -> None:
    makers[kind] = np.concatenate((makers[kind][-KEPT:], users))


def _referred(
    to: Kind,
    chosen: Flags,
    before: Codes,
    made: Codes,
    makers: dict[Kind, Codes],
    kind: Codes,
    lag: Numbers,
    most: int,
) -> tuple[Codes, Codes]:
    """The number and the maker of an earlier thing for each chosen event. The logarithms of the lags are uniform."""
    there = before[to][chosen]
    first = made[to] + np.count_nonzero(kind == to) - len(makers[to])
    number = np.maximum(there - np.floor(most ** lag[chosen]).astype(np.int64), max(first, 0))
    return number, makers[to][number - first]


def _replies(random: np.random.Generator, kind: Codes, thing: Codes, number: Codes) -> Codes:
    """Every second comment replies to the previous comment on the same post, if that is in the block."""
    reply = np.full(BLOCK, -1)
    comments = np.flatnonzero(kind == Kind.COMMENT)
    by_post = comments[np.argsort(thing[comments], kind="stable")]
    again = thing[by_post[1:]] == thing[by_post[:-1]]
    again &= random.random(len(again)) < 0.5
    reply[by_post[1:][again]] = number[by_post[:-1][again]]
    return reply


def _tags(network: Network, random: np.random.Generator, time: Codes, user: Codes, post: Flags, root: Codes) -> Codes:
    """One to five different tags for each post; the first is its topic."""
    posts = len(root)
    found = tags(random.random((posts, MOST_TAGS)))
    interest = network.interests[user[post], random.integers(0, network.interests.shape[1], posts)]
    fashionable = random.random(posts) < _heat(time[post])
    found[:, 0] = np.where(fashionable, _in_fashion(network, random, time[post]), interest)
    found[:, 0] = found[root, 0]
    found[np.arange(MOST_TAGS) > random.binomial(MOST_TAGS - 1, 0.4, posts)[:, None]] = -1
    for column in range(1, MOST_TAGS):
        found[(found[:, :column] == found[:, column, None]).any(axis=1), column] = -1
    every = np.full((BLOCK, MOST_TAGS), -1)
    every[post] = found
    return every


def _in_fashion(network: Network, random: np.random.Generator, time: Codes) -> Codes:
    """A popular tag at each time. These are any tags, not the most used ones."""
    if not len(time):
        return np.empty(0, np.int64)
    slots, slot = np.unique((time - FIRST_INSTANT) // BURST, return_inverse=True)
    hot = np.stack([np.random.default_rng((network.seed, 3, int(each))).integers(0, TAGS, HOT) for each in slots])
    return hot[slot, random.integers(0, HOT, len(time))]


def _heat(time: Codes) -> Numbers:
    """The share of posts about the popular topic: it rises quickly and falls slowly."""
    within = (time - FIRST_INSTANT) % BURST / BURST
    return 0.6 * np.minimum(within / 0.2, (1 - within) / 0.8)


def _persons(network: Network, random: np.random.Generator, user: Codes, photo: Flags) -> Codes:
    """The persons in each photo: friends of its maker, neighbours in the list of friends."""
    maker = user[photo]
    first = network.first[maker]
    degree = network.first[maker + 1] - first
    number = np.minimum(np.minimum(random.geometric(0.25, len(maker)), MOST_PERSONS), degree)
    start = (random.random(len(maker)) * degree).astype(np.int64)
    column = np.arange(MOST_PERSONS)
    place = first[:, None] + (start[:, None] + column) % degree[:, None]
    every = np.full((BLOCK, MOST_PERSONS), -1)
    every[photo] = np.where(column < number[:, None], network.friends[place], -1)
    return every
