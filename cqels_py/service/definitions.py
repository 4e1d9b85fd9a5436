"""Streams and queries as requests define them, checked, and as plain data for the folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cqels_py.algebra.nodes import Dialect
from cqels_py.connections.location import without_secrets
from cqels_py.dictionary import Dictionary
from cqels_py.engine.backfill import LOG
from cqels_py.engine.engine import Engine
from cqels_py.engine.options import EVENTS, KEEP, WALL, check_duplicates
from cqels_py.errors import DataError, Place, UsageError
from cqels_py.formats.ntriples import StatementCheck
from cqels_py.formats.python_times import duration
from cqels_py.formats.turtle import statements_of, to_nquads
from cqels_py.iris import is_iri
from cqels_py.suggestions import unknown

DIALECTS = tuple(dialect.value for dialect in Dialect)
_INLINE = {
    "application/trig": "trig",
    "text/turtle": "ttl",
}
_LINES = {"application/n-quads": True, "application/n-triples": False}
"""Formats that the tokenizer reads, and whether statements may name graphs."""


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """`lateness`: microseconds. `context`: a JSON-LD context, or the path of one. `map`: the text of a CONSTRUCT, or its path."""

    iri: str
    source: str | None = None
    lateness: int = 0
    clock: str = WALL
    context: Any = None
    map: str | None = None
    duplicates: str = KEEP

    @classmethod
    def of(cls, given: object) -> StreamDefinition:
        """The body of a request. UsageError for one that makes no sense."""
        members = _members(given, ("iri", "source", "lateness", "clock", "context", "map", "duplicates"), "a stream")
        iri = members.get("iri")
        if not isinstance(iri, str) or not is_iri(iri):
            raise UsageError(
                f'iri is the absolute IRI of the stream, such as "http://example.org/readings", not {iri!r}'
            )
        source, clock, map_ = members.get("source"), members.get("clock", WALL), members.get("map")
        if source is not None and not isinstance(source, str):
            raise UsageError(f"source is a URL, not {source!r}")
        if clock not in (EVENTS, WALL):
            raise UsageError(f"clock is {EVENTS!r} or {WALL!r}, not {clock!r}")
        if map_ is not None and not isinstance(map_, str):
            raise UsageError("map is the text of a CONSTRUCT, or its path")
        context = members.get("context")
        if context is not None and not isinstance(context, dict | list | str):
            raise UsageError("context is a JSON-LD context, or its path")
        if context is not None and map_ is not None:
            raise UsageError("a stream has a context or a map, not both")
        given_lateness = members.get("lateness", 0)
        if not isinstance(given_lateness, int | str) or isinstance(given_lateness, bool):
            raise UsageError(f'lateness is a duration such as "10s", or microseconds, not {given_lateness!r}')
        duplicates = members.get("duplicates", KEEP)
        check_duplicates(duplicates)
        return cls(iri, source, duration(given_lateness, "lateness"), clock, context, map_, duplicates)

    def declare(self, engine: Engine) -> None:
        """Give the engine the stream's options. UsageError if queries read it with others."""
        engine.declare(self.iri, lateness=self.lateness, clock=self.clock, duplicates=self.duplicates)

    def plain(self) -> dict[str, Any]:
        """As JSON, for the folder."""
        return asdict(self)

    def shown(self) -> dict[str, Any]:
        """As JSON, for clients: without secrets."""
        return {**asdict(self), "source": self.source and without_secrets(self.source)}

    def with_secrets_of(self, known: StreamDefinition) -> StreamDefinition:
        """The definition; a source as `shown` gave it for the known one is the known source."""
        return replace(self, source=known.source) if self.source == known.shown()["source"] else self


@dataclass(frozen=True, slots=True)
class Keep:
    """The results of a query that are kept: the last `results`, those of the last `age` seconds, at most about `bytes` of them."""

    results: int | None = None
    bytes: int | None = None
    age: float | None = None

    @classmethod
    def of(cls, given: object) -> Keep | None:
        """The member of a request: a number of results, or an object. UsageError for one that makes no sense."""
        if given is None:
            return None
        members = {"results": given} if isinstance(given, int) else given
        if not isinstance(members, dict) or not members or not set(members) <= {"results", "bytes", "age"}:
            raise UsageError(
                'keep is a number of results, or an object such as {"results": 1000, "bytes": 1000000, "age": "1h"}'
            )
        for name in ("results", "bytes"):
            number = members.get(name)
            if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
                raise UsageError(f"{name} of keep is a whole number from 1, not {number!r}")
        age = members.get("age")
        if age is not None and (not isinstance(age, int | str) or isinstance(age, bool)):
            raise UsageError(f'age of keep is a duration such as "1h", not {age!r}')
        seconds = None if age is None else duration(age, "age of keep") / 1_000_000
        return cls(members.get("results"), members.get("bytes"), seconds)


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    """`static`: data of the default graph: paths or URLs, or N-Quads with their media type. `sinks`: URLs. `dialect`: that which the
    text has to have. `keep`: of its results, where the server's own limit does not count.
    """

    text: str
    static: tuple[Any, ...] = ()
    changelog: bool = False
    entailment: str | None = None
    clock: str | None = None
    sinks: tuple[str, ...] = ()
    dialect: str | None = None
    keep: Keep | None = None

    @classmethod
    def of(cls, given: object) -> QueryDefinition:
        """The body of a request, without `backfill`. UsageError for one that makes no sense."""
        known = ("text", "dialect", "static", "changelog", "entailment", "clock", "sinks", "keep", "backfill")
        members = _members(given, known, "a query")
        text = members.get("text")
        if not isinstance(text, str):
            raise UsageError('text is the text of the query: {"text": "SELECT …"}')
        changelog, entailment = members.get("changelog", False), members.get("entailment")
        if not isinstance(changelog, bool):
            raise UsageError(f"changelog is true or false, not {changelog!r}")
        if entailment not in (None, "rdfs"):
            raise UsageError(f"entailment is 'rdfs' or null, not {entailment!r}")
        clock = members.get("clock")
        if clock not in (EVENTS, WALL, None):
            raise UsageError(f"clock is {EVENTS!r} or {WALL!r}, not {clock!r}")
        static = tuple(_static(each) for each in _list(members, "static"))
        sinks = tuple(_list(members, "sinks"))
        if not all(isinstance(sink, str) for sink in sinks):
            raise UsageError("sinks is a list of URLs")
        dialect = members.get("dialect")
        if dialect is not None and dialect not in DIALECTS:
            raise UsageError(f"dialect is one of {', '.join(DIALECTS)}, not {dialect!r}")
        return cls(text, static, changelog, entailment, clock, sinks, dialect, Keep.of(members.get("keep")))

    @classmethod
    def from_plain(cls, given: Mapping[str, Any]) -> QueryDefinition:
        """That which `plain` gave."""
        keep = given.get("keep")
        tuples = {"static": tuple(given["static"]), "sinks": tuple(given["sinks"])}
        return cls(**{**given, **tuples, "keep": None if keep is None else Keep(**keep)})

    def plain(self) -> dict[str, Any]:
        """As JSON, for the folder."""
        return {**asdict(self), "static": list(self.static), "sinks": list(self.sinks)}

    def shown(self) -> dict[str, Any]:
        """As JSON, for clients: without secrets."""
        lists = {"static": [_shown(each) for each in self.static], "sinks": [_shown(each) for each in self.sinks]}
        return {**asdict(self), **lists}

    def with_secrets_of(self, known: QueryDefinition) -> QueryDefinition:
        """The definition; addresses as `shown` gave them for the known one are the known addresses."""
        addresses = {_shown(each): each for each in (*known.static, *known.sinks) if isinstance(each, str)}

        def told(each: Any) -> Any:
            return addresses.get(each, each) if isinstance(each, str) else each

        return replace(self, static=tuple(map(told, self.static)), sinks=tuple(map(told, self.sinks)))


def _shown(given: Any) -> Any:
    return without_secrets(given) if isinstance(given, str) else given


def backfill_of(given: object) -> str | None:
    """The member `backfill` of a request: "log", or None. UsageError for another one."""
    asked = given.get("backfill") if isinstance(given, dict) else None
    if asked not in (None, LOG):
        raise UsageError(f'backfill is "{LOG}", the elements that the log still has, or null, not {asked!r}')
    return None if asked is None else LOG


def inline_static(given: Mapping[str, str]) -> bytes:
    """Static data that stands in a request, as N-Quads. DataError, with the place, for data that is malformed."""
    if given["type"] in _LINES:
        try:
            text = given["data"].encode()
        except UnicodeEncodeError as error:
            raise DataError(f"static data: {error}") from None
        StatementCheck(Dictionary(), _LINES[given["type"]], "static data").check(text)
        return text
    try:
        quads = statements_of(given["data"].encode(), _INLINE[given["type"]], "static data")
    except SyntaxError as error:
        raise DataError(f"static data: {error.msg}", Place(error.lineno or 1, error.offset)) from None
    except ValueError as error:
        raise DataError(f"static data: {error}") from None
    return to_nquads(quads)


def _static(given: object) -> Any:
    if isinstance(given, str):
        return given
    if isinstance(given, dict) and set(given) == {"type", "data"} and isinstance(given["data"], str):
        if given["type"] not in (*_LINES, *_INLINE):
            raise UsageError(unknown("media type of static data", str(given["type"]), [*_LINES, *_INLINE]))
        return given
    raise UsageError('static is a list of paths, or of data such as {"type": "text/turtle", "data": "…"}')


def _members(given: object, known: tuple[str, ...], of: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise UsageError(f"{of} is a JSON object, with the members {', '.join(known)}")
    for member in given:
        if member not in known:
            raise UsageError(unknown("member", member, known))
    return given


def _list(members: Mapping[str, Any], name: str) -> list[Any]:
    found = members.get(name, [])
    if not isinstance(found, list):
        raise UsageError(f"{name} is a list")
    return found


@dataclass(slots=True)
class KeptQuery:
    """A query in the folder. `generation`: counts its texts; `base`: the number of the last result of the texts before.

    `next`: another definition, which is replacing it just now. `backfill`: "log" if it began with the elements of before.
    """

    definition: QueryDefinition
    generation: int = 1
    base: int = 0
    paused: bool = False
    next: QueryDefinition | None = None
    created: float = field(default=0.0)
    backfill: str | None = None

    @classmethod
    def from_plain(cls, given: Mapping[str, Any]) -> KeptQuery:
        """That which `plain` gave."""
        following = given["next"]
        return cls(
            QueryDefinition.from_plain(given["definition"]),
            given["generation"],
            given["base"],
            given["paused"],
            None if following is None else QueryDefinition.from_plain(following),
            given["created"],
            given.get("backfill"),
        )

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "definition": self.definition.plain(),
            "generation": self.generation,
            "base": self.base,
            "paused": self.paused,
            "next": None if self.next is None else self.next.plain(),
            "created": self.created,
            "backfill": self.backfill,
        }
