"""Static data: persons and their accounts, friendships, groups, forums and their subscribers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..tables import Statement, date_times, decimals, iris, ntriples, strings, typed
from .events import FIRST_INSTANT, SECOND
from .network import Codes, Network, number
from .stream_rows import users
from .vocabulary import (
    CREATED,
    DC,
    FORUM,
    FRIENDSHIP,
    GROUP,
    LATITUDE,
    LONGITUDE,
    MEMBERSHIP,
    PERSON,
    RDF_TYPE,
    foaf,
    sib,
    sioc,
)
from .words import first_names, hashtags, last_names, towns

_YEAR = 365 * 86_400 * SECOND


def static(network: Network) -> bytes:
    """The static data as N-Triples."""
    return ntriples(
        [*_persons(network), *_accounts(network), *_friendships(network), *_forums(network), *_groups(network)]
    )


def _persons(network: Network) -> list[Statement]:
    rank = np.arange(network.users)
    random = np.random.default_rng((network.seed, 5))
    person = iris(PERSON, pa.array(number(rank)))
    first, last = first_names(rank), last_names(rank)
    born = (random.integers(-10_000, 11_000, network.users) * 86_400).astype("datetime64[s]")
    mail = pc.binary_join_element_wise(pc.utf8_lower(first), pa.array(rank).cast(pa.string()), "@mail.example", "")
    gender = pa.array(["female", "male"]).take(pa.array(rank % 2))
    return [
        Statement(person, RDF_TYPE, _all(foaf("Person"), network.users)),
        Statement(person, foaf("firstName"), strings(first)),
        Statement(person, foaf("lastName"), strings(last)),
        Statement(person, foaf("based_near"), strings(towns(network.towns).take(pa.array(network.town)))),
        Statement(person, LATITUDE, decimals(network.degrees[0, network.town], 6, "double")),
        Statement(person, LONGITUDE, decimals(network.degrees[1, network.town], 6, "double")),
        Statement(person, foaf("gender"), strings(gender)),
        Statement(person, foaf("birthday"), typed(pc.strftime(pa.array(born), "%Y-%m-%d"), "date")),
        Statement(person, sioc("email"), strings(mail)),
    ]


def _accounts(network: Network) -> list[Statement]:
    rank = np.arange(network.users)
    random = np.random.default_rng((network.seed, 6))
    user = users(rank)
    status = pa.array(["Single", "Married", "In a relationship"]).take(pa.array(random.integers(0, 3, network.users)))
    joined = FIRST_INSTANT - random.integers(0, 3 * _YEAR, network.users)
    interests = np.sort(network.interests, axis=1)
    repeated = np.zeros_like(interests, np.bool_)
    repeated[:, 1:] = interests[:, 1:] == interests[:, :-1]
    return [
        Statement(user, RDF_TYPE, _all(sib("User"), network.users)),
        Statement(user, sioc("account_of"), iris(PERSON, pa.array(number(rank)))),
        Statement(user, sib("status"), strings(status)),
        Statement(user, f"<{DC}date>", date_times(joined)),
        *(
            Statement(user, sib("interest"), strings(hashtags().take(pa.array(interest, mask=again))))
            for interest, again in zip(interests.T, repeated.T, strict=True)
        ),
    ]


def _friendships(network: Network) -> list[Statement]:
    one, other = network.known
    size = len(one)
    random = np.random.default_rng((network.seed, 7))
    friendship = iris(FRIENDSHIP, pa.array(np.arange(size)))
    requested = FIRST_INSTANT - random.integers(_YEAR // 10, 2 * _YEAR, size)
    return [
        Statement(users(one), foaf("knows"), users(other)),
        Statement(users(other), foaf("knows"), users(one)),
        Statement(friendship, sib("memb"), users(one)),
        Statement(friendship, sib("memb"), users(other)),
        Statement(friendship, sib("initiator"), users(np.where(random.random(size) < 0.5, one, other))),
        Statement(friendship, sib("requested"), date_times(requested)),
        Statement(friendship, sib("approved"), date_times(requested + random.integers(0, _YEAR // 10, size))),
    ]


def _forums(network: Network) -> list[Statement]:
    """One forum for each user, and one for each group."""
    forums = np.arange(network.users + network.groups)
    subscriber, subscribed = network.subscriptions
    own = forums[: network.users]
    return [
        Statement(_forum(forums), RDF_TYPE, _all(sioc("Forum"), len(forums))),
        Statement(_forum(forums), CREATED, date_times(np.full(len(forums), FIRST_INSTANT - 3 * _YEAR))),
        Statement(users(own), sioc("moderator_of"), _forum(own)),
        Statement(users(subscriber), sioc("subscriber_of"), _forum(subscribed)),
    ]


def _groups(network: Network) -> list[Statement]:
    """Everybody is in a group. The member with the lowest rank created it."""
    rank = np.arange(network.users)
    numbers, founder = np.unique(network.group, return_index=True)
    group = iris(GROUP, pa.array(numbers))
    forum = _forum(network.users + numbers)
    about = hashtags().take(pa.array(network.interests[founder, 0]))
    membership = iris(MEMBERSHIP, pa.array(rank))
    of = iris(GROUP, pa.array(network.group))
    return [
        Statement(group, RDF_TYPE, _all(sib("Group"), len(numbers))),
        Statement(group, sioc("name"), strings(pc.binary_join_element_wise("Group for", about, " "))),
        Statement(users(founder), sioc("creator_of"), group),
        Statement(users(founder), sioc("moderator_of"), forum),
        Statement(forum, sib("tag"), strings(about)),
        Statement(of, sioc("has_member"), users(rank)),
        Statement(membership, sib("member_of_membership"), users(rank)),
        Statement(membership, sib("group_of_membership"), of),
    ]


def _forum(numbers: Codes) -> pa.Array:
    return iris(FORUM, pa.array(numbers))


def _all(term: str, length: int) -> pa.Array:
    return pa.repeat(pa.scalar(term), length)
