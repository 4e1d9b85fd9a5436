"""The social network behind the streams: friendships, towns and interests. Arrays indexed by a user's rank.

The lower the rank, the more a user does and the more friends they have, both by power laws. Users live in towns. Each
town is a community, and most friends are within it. A small part of the users is travelling at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cqels_py.errors import UsageError

Numbers: TypeAlias = npt.NDArray[np.float64]
Codes: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

FRIENDS = 18
"""On average."""
COMMUNITY = 25
GROUP = 25
INTERESTS = 3
TAGS = 600
ASKED_FOR = 984
"""The number of the user of rank 0, for whom queries ask: every network has a user with this number."""
TRIP_HOURS = 6


@dataclass(frozen=True, slots=True)
class Network:
    """`friends[first[u]:first[u + 1]]` are the friends of user u; `known` holds each pair of friends once, in two rows.

    `subscriptions` holds pairs of a user and a forum, in two rows: forum u is user u's own, forum users + g that of group g.
    `degrees`: the towns' latitude and longitude.
    """

    seed: int
    users: int
    first: Codes
    friends: Codes
    known: Codes
    town: Codes
    towns: int
    degrees: Numbers
    group: Codes
    groups: int
    subscriptions: Codes
    interests: Codes

    def friend(self, user: Codes, draw: Numbers) -> Codes:
        """A friend of each user, by random numbers from [0, 1)."""
        degree = self.first[user + 1] - self.first[user]
        chosen: Codes = self.friends[self.first[user] + (draw * degree).astype(np.int64)]
        return chosen


def active(users: int, draw: Numbers) -> Codes:
    """Users by random numbers from [0, 1), more active ones more often: the density falls with the square root of the rank."""
    return (draw**2 * users).astype(np.int64)


def tags(draw: Numbers) -> Codes:
    """Tags by random numbers from [0, 1), by Zipf's law."""
    weight = np.cumsum(1 / np.arange(1, TAGS + 1))
    found: Codes = np.searchsorted(weight, draw * weight[-1], side="right")
    return found


def number(rank: Codes) -> Codes:
    """The numbers in the names of users: rank 0 is 984, ranks up to 984 count down to 0, others are unchanged."""
    return np.where(rank <= ASKED_FOR, ASKED_FOR - rank, rank)


def town_of(network: Network, trip: int) -> Codes:
    """The town of each user for some hours: their own, or one that they visit."""
    random = np.random.default_rng((network.seed, 2, trip))
    away = random.random(network.users) < 0.1
    return np.where(away, random.integers(0, network.towns, network.users), network.town)


@cache
def network(users: int, seed: int) -> Network:
    """The network; equal arguments give equal networks. UsageError for fewer than 10 users."""
    if users < 10:
        raise UsageError(f"{users} users make no network; ask for 10 or more")
    random = np.random.default_rng((seed, 1))
    towns = max(2, users // COMMUNITY)
    groups = max(2, users // GROUP)
    rank = np.arange(users)
    known = _acquainted(random, users, towns)
    first, friends = _neighbours(known, users)
    # Strides that are coprime: groups span towns.
    group = rank // towns % groups
    return Network(
        seed=seed,
        users=users,
        first=first,
        friends=friends,
        known=known,
        town=rank % towns,
        towns=towns,
        degrees=np.stack((random.uniform(-45, 65, towns), random.uniform(-170, 170, towns))),
        group=group,
        groups=groups,
        subscriptions=_subscribed(random, users, first, friends, group),
        interests=tags(random.random((users, INTERESTS))),
    )


def _acquainted(random: np.random.Generator, users: int, towns: int) -> Codes:
    """Pairs of friends: by weight, seven of ten in the same town; and a ring through each town, so that nobody is alone."""
    size = users * FRIENDS // 2
    one = active(users, random.random(size))
    anywhere = active(users, random.random(size))
    # The people of a town have its number as remainder: their order within the town is that of their ranks.
    at_home = active(-(-users // towns), random.random(size)) * towns + one % towns
    other = np.where((random.random(size) < 0.7) & (at_home < users), at_home, anywhere)
    rank = np.arange(users)
    both = np.stack((np.concatenate((one, rank)), np.concatenate((other, (rank + towns) % users))))
    both.sort(axis=0)
    return np.unique(both[:, both[0] < both[1]], axis=1)


def _neighbours(known: Codes, users: int) -> tuple[Codes, Codes]:
    user = np.concatenate((known[0], known[1]))
    friend = np.concatenate((known[1], known[0]))
    order = np.lexsort((friend, user))
    first = np.searchsorted(user[order], np.arange(users + 1))
    return first, friend[order]


def _subscribed(random: np.random.Generator, users: int, first: Codes, friends: Codes, group: Codes) -> Codes:
    """Everybody to their own forum, their group's, and to those of six of ten friends."""
    rank = np.arange(users)
    user = np.repeat(rank, np.diff(first))
    follows = random.random(len(user)) < 0.6
    pairs = (
        np.concatenate((rank, rank, user[follows])),
        np.concatenate((rank, users + group, friends[follows])),
    )
    return np.unique(np.stack(pairs), axis=1)
