"""Connectors by the scheme of their URLs: those of this package, and those that other packages have as entry points."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from cqels_py.connections.location import Location
from cqels_py.errors import MissingExtra, UsageError
from cqels_py.suggestions import did_you_mean

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//)?")

NOWHERE: Mapping[str, str] = MappingProxyType({})
Open = Callable[[Location], Any]
"""Makes the connector of a URL; checks its options, but connects to nothing yet."""


class Schemes:
    """The connectors of one kind ("source" or "sink").

    `group`: the entry points' group, in which a name is a scheme and its object an `Open`. `built_in`: "module:object" by scheme; a
    package cannot replace these. `elsewhere`: how schemes are used that are none of this kind.
    """

    def __init__(
        self, kind: str, group: str, built_in: Mapping[str, str], elsewhere: Mapping[str, str] = NOWHERE
    ) -> None:
        self._kind = kind
        self._group = group
        self._built_in = dict(built_in)
        self._elsewhere = elsewhere

    def is_url(self, text: str) -> bool:
        """Is it the URL of a connector? Also of one that is not there, if "//" follows the scheme; `file://` is a path."""
        match = _SCHEME.match(text)
        if match is None or match[1].lower() == "file":
            return False
        scheme = match[1].lower()
        return match[2] is not None or any(
            scheme in known for known in (self._built_in, self._elsewhere, _found(self._group))
        )

    def connector(self, url: str) -> Any:
        """The connector of a URL. UsageError for an unknown scheme or a wrong option, MissingExtra for a missing package."""
        location = Location.of(url)
        if (target := self._built_in.get(location.scheme)) is not None:
            module, _, name = target.partition(":")
            opener: Open = getattr(import_module(module), name)
        elif (found := _found(self._group).get(location.scheme)) is not None:
            opener = _loaded(found, location)
        else:
            raise self._unknown(location)
        connector = opener(location)
        location.options.done()
        return connector

    def known(self) -> list[str]:
        """All schemes."""
        return sorted({*self._built_in, *_found(self._group)})

    def _unknown(self, location: Location) -> UsageError:
        if (use := self._elsewhere.get(location.scheme)) is not None:
            return UsageError(f"{location.shown} is no {self._kind}: {use}")
        known = self.known()
        shown = ", ".join(f"{scheme}:" for scheme in known)
        article = (
            "A sink is a path, or one of these" if self._kind == "sink" else "A source is a path, - or one of these"
        )
        return UsageError(
            f"there is no connector for {location.scheme}:// as a {self._kind}. {article}: {shown}"
            f"{did_you_mean(location.scheme, known)}"
        )


@cache
def _found(group: str) -> Mapping[str, EntryPoint]:
    return {each.name.lower(): each for each in entry_points(group=group)}


def _loaded(found: EntryPoint, location: Location) -> Open:
    try:
        opener = found.load()
    except (ImportError, AttributeError) as error:
        package = found.dist.name if found.dist is not None else found.value
        raise MissingExtra(
            f"{location.scheme}: its connector, of the package {package}, cannot be loaded: {error}"
        ) from None
    if not callable(opener):
        raise UsageError(f"{location.scheme}: {found.value} is not a function of a Location that returns a connector")
    return opener  # type: ignore[no-any-return]


def needed(module: str, package: str, extra: str, use: str) -> Any:
    """A module of an optional package. MissingExtra, with the command that installs it, where it is missing."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(f"{use} needs the package {package}: pip install 'cqels_py[{extra}]'") from None
