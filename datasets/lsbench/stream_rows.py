"""Events as rows of the streams: one element for each event, named after the thing that it creates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..tables import Statement, date_times, decimals, iris, rows, strings
from .events import FIRST_INSTANT, SECOND, Events, Kind
from .network import TRIP_HOURS, Codes, Flags, Network, Numbers, number, town_of
from .vocabulary import (
    ALBUM,
    COMMENT,
    CREATED,
    DBPEDIA_ONTOLOGY,
    DCTERMS,
    FORUM,
    GPS,
    GPS_STREAM,
    LATITUDE,
    LONGITUDE,
    PHOTO,
    PHOTO_LIKES,
    PHOTOS,
    POST,
    POST_LIKES,
    POSTS,
    RDF_TYPE,
    SIB,
    SIOC_TYPES,
    USER,
    sib,
    sioc,
)
from .words import contents, hashtags, towns

_BROWSERS = strings(pa.array(["Firefox", "Safari", "Opera", "Chrome"]))
_AGENTS = strings(pa.array(["telephone", "tablet", "watch"]))


def _tracked(network: Network, events: Events) -> pa.RecordBatch:
    place, latitude, longitude = _whereabouts(network, events)
    gps = _iris(GPS, events.number)
    statements = [
        Statement(users(events.user), sib("trackedAt"), gps),
        Statement(gps, LATITUDE, decimals(latitude, 6, "double")),
        Statement(gps, LONGITUDE, decimals(longitude, 6, "double")),
        Statement(gps, sib("trackedTime"), date_times(events.time)),
        Statement(gps, sib("trackedLocation"), place),
    ]
    return rows(events.time, gps, statements)


def _posts(network: Network, events: Events) -> pa.RecordBatch:
    """Posts and comments."""
    is_post = events.kind == Kind.POST
    post = _iris(POST, events.number, is_post)
    comment = _iris(COMMENT, events.number, ~is_post)
    either = pc.coalesce(post, comment)
    about = pc.coalesce(hashtags().take(_numbers(events.tags[:, 0], is_post)), pa.scalar("indeed"))
    original = _iris(POST, events.thing, ~is_post)
    statements = [
        Statement(post, RDF_TYPE, _all(sib("Post"), events)),
        Statement(post, RDF_TYPE, _all(sioc("Post"), events)),
        Statement(comment, RDF_TYPE, _all(sib("Comment"), events)),
        Statement(comment, RDF_TYPE, _all(sioc("Item"), events)),
        Statement(either, CREATED, date_times(events.time)),
        *_sent(post, events),
        Statement(comment, sioc("reply_of"), pc.coalesce(_iris(COMMENT, events.reply, events.reply >= 0), original)),
        Statement(either, sioc("content"), strings(contents(events.draw, about))),
        Statement(_iris(FORUM, events.forum, is_post), sioc("container_of"), post),
        Statement(original, sioc("container_of"), comment),
        Statement(users(events.user), sioc("creator_of"), either),
        *(Statement(post, sib("hashtag"), strings(hashtags().take(_numbers(tag, tag >= 0)))) for tag in events.tags.T),
    ]
    return rows(events.time, either, statements)


def _photos(network: Network, events: Events) -> pa.RecordBatch:
    """Albums and photos."""
    is_photo = events.kind == Kind.PHOTO
    photo = _iris(PHOTO, events.number, is_photo)
    album = _iris(ALBUM, events.number, ~is_photo)
    either = pc.coalesce(photo, album)
    place, latitude, longitude = _whereabouts(network, events)
    statements = [
        Statement(album, RDF_TYPE, _all(f"<{SIOC_TYPES}ImageGallery>", events)),
        Statement(album, f"<{DCTERMS}title>", strings(contents(events.draw))),
        Statement(photo, RDF_TYPE, _all(sib("Photo"), events)),
        Statement(photo, RDF_TYPE, _all(sioc("Item"), events)),
        Statement(photo, f"<{DBPEDIA_ONTOLOGY}location>", place),
        Statement(photo, LATITUDE, decimals(latitude, 6, "double")),
        Statement(photo, LONGITUDE, decimals(longitude, 6, "double")),
        *_sent(photo, events),
        Statement(either, CREATED, date_times(events.time)),
        Statement(users(events.user), sioc("creator_of"), album),
        Statement(_iris(ALBUM, events.thing, is_photo), sioc("container_of"), photo),
        *(Statement(photo, sib("usertag"), users(person, person >= 0)) for person in events.persons.T),
    ]
    return rows(events.time, either, statements)


def _post_likes(network: Network, events: Events) -> pa.RecordBatch:
    return _likes(events, "post", POST)


def _photo_likes(network: Network, events: Events) -> pa.RecordBatch:
    return _likes(events, "photo", PHOTO)


def _likes(events: Events, what: str, prefix: str) -> pa.RecordBatch:
    like = _iris(f"{SIB}like/{what}/l", events.number)
    return rows(events.time, like, [Statement(users(events.user), sib("like"), _iris(prefix, events.thing))])


STREAMS: dict[str, tuple[tuple[Kind, ...], Callable[[Network, Events], pa.RecordBatch]]] = {
    GPS_STREAM: ((Kind.TRACKED,), _tracked),
    POSTS: ((Kind.POST, Kind.COMMENT), _posts),
    POST_LIKES: ((Kind.POST_LIKE,), _post_likes),
    PHOTOS: ((Kind.ALBUM, Kind.PHOTO), _photos),
    PHOTO_LIKES: ((Kind.PHOTO_LIKE,), _photo_likes),
}
"""For each stream, the kinds of its events and the functions that write them."""


def users(rank: Codes, where: Flags | None = None) -> pa.Array:
    """IRIs; null where there is no user."""
    return iris(USER, _numbers(number(rank), where))


def _sent(thing: pa.Array, events: Events) -> list[Statement]:
    """The device of a post or photo. Everybody has a browser, an address, and at most one kind of telephone."""
    address = pc.binary_join_element_wise(
        "10",
        pa.array(events.user // 65_536).cast(pa.string()),
        pa.array(events.user // 256 % 256).cast(pa.string()),
        pa.array(events.user % 256).cast(pa.string()),
        ".",
    )
    return [
        Statement(thing, sib("agent"), _AGENTS.take(_numbers(events.user % 3, events.agent))),
        Statement(thing, sib("browser"), _BROWSERS.take(pa.array(events.user % 4))),
        Statement(thing, sioc("ip_address"), strings(address)),
    ]


def _whereabouts(network: Network, events: Events) -> tuple[pa.Array, Numbers, Numbers]:
    """The current town of each user, and a place in it to which the user returns."""
    hours = (events.time - FIRST_INSTANT) / (3_600 * SECOND)
    trips, trip = np.unique(np.floor(hours / TRIP_HOURS).astype(np.int64), return_inverse=True)
    of_trip = [town_of(network, int(each)) for each in trips] or [network.town]
    town = np.stack(of_trip)[trip, events.user]
    around = 2 * np.pi * (events.user * 0.618 + hours * (1 + events.user % 5))
    latitude = network.degrees[0, town] + 0.03 * np.sin(around)
    longitude = network.degrees[1, town] + 0.03 * np.cos(around) * (1 + events.user % 3) / 3
    return strings(towns(network.towns).take(pa.array(town))), latitude, longitude


def _iris(prefix: str, numbers: Codes, where: Flags | None = None) -> pa.Array:
    return iris(prefix, _numbers(numbers, where))


def _numbers(numbers: Codes, where: Flags | None = None) -> pa.Array:
    """Numbers; null where there is none."""
    return pa.array(numbers, mask=None if where is None else ~where)


def _all(term: str, events: Events) -> pa.Array:
    return pa.repeat(pa.scalar(term), len(events.kind))
