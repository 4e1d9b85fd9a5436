"""The URL of a connector: where a source or a sink is, and its options."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from cqels_py.connections.sizes import bytes_of
from cqels_py.errors import QueryError, UsageError
from cqels_py.parser.times import duration_of
from cqels_py.suggestions import did_you_mean

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?://(?P<authority>[^/?#]*))?(?P<path>[^?#]*)"
    r"(?P<early>#[^?]*)?(?:\?(?P<query>[^#]*))?(?P<late>#.*)?",
    re.DOTALL,
)
_AUTHORITY = re.compile(
    r"(?:(?P<user>[^:@]*)(?::(?P<password>.*))?@)?(?:(?P<hosts>[^@,]+(?:,[^@,]+)+)|(?P<host>\[[^\]]*\]|[^:@\[\]]*)(?::(?P<port>[^:@]*))?)"
)
_SECRET = re.compile(r"(://[^/?#:@]*:)[^@/?#]*@")
_SECRET_OPTION = re.compile(r"((?:^|[?&#])(?:[\w.]*\.)?(?:password|token|secret)=)[^&#]*")
ENVIRONMENT = re.compile(r"\$\{(\w+)\}")
"""A variable of the environment in a URL."""


class Options:
    """The options of a URL, by name. Each is asked for once, with its default; then `done` refuses those that nobody asked for."""

    def __init__(self, values: Mapping[str, str], url: str) -> None:
        self._values = dict(values)
        self._url = url
        self._known: list[str] = []

    def text(self, name: str, default: str | None = None) -> str | None:
        """The option as it stands; `default` if it is not given."""
        self._known.append(name)
        return self._values.get(name, default)

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """One of the choices."""
        found = self.text(name, default)
        assert found is not None
        if found not in choices:
            raise self._wrong(name, f"is one of {', '.join(choices)}")
        return found

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """An integer between two bounds."""
        found = self.text(name, str(default))
        assert found is not None
        if not found.isdecimal() or not least <= int(found) <= most:
            raise self._wrong(name, f"is an integer from {least} to {most}")
        return int(found)

    def seconds(self, name: str, default: str) -> float:
        """A duration such as 5s or PT1M, in seconds."""
        found = self.text(name, default)
        assert found is not None
        try:
            return duration_of(found) / 1_000_000
        except QueryError:
            raise self._wrong(name, "is a duration, such as 5s or PT1M") from None

    def size(self, name: str, default: str) -> int:
        """A size such as 64MB or 2GiB, in bytes."""
        found = self.text(name, default)
        assert found is not None
        size = bytes_of(found)
        if size is None:
            raise self._wrong(name, "is a size, such as 64MB or 2GiB")
        return size

    def rest(self) -> dict[str, str]:
        """Options that have not been asked for: those of a library, which checks them itself."""
        found = {name: value for name, value in self._values.items() if name not in self._known}
        self._known += found
        return found

    def done(self) -> None:
        """UsageError for an option that does not exist."""
        for name in self._values:
            if name not in self._known:
                known = f"there are {', '.join(self._known)}" if self._known else "there are none"
                raise UsageError(f"{self._url}: there is no option {name!r}; {known}{did_you_mean(name, self._known)}")

    def _wrong(self, name: str, expected: str) -> UsageError:
        return UsageError(f"{self._url}: the option {name} {expected}, not {self._values[name]!r}")


@dataclass(frozen=True, slots=True)
class Location:
    """The parts of a URL, without percent-encoding. `shown`: the URL for messages, without passwords.

    `fragment` is the text after "#", before or after the options; None without "#". `host` is a list as it stands, with ports,
    where the URL has one ("a:9092,b:9092"); `port` is None then. `${NAME}` in the URL stands for a variable
    of the environment, so that passwords need not be written.

    >>> location = Location.of("mqtt://broker:1884/rooms/kitchen?qos=1")
    >>> location.host, location.port, location.path, location.options.whole("qos", 0, 0, 1)
    ('broker', 1884, 'rooms/kitchen', 1)
    """

    url: str
    shown: str
    scheme: str
    host: str
    port: int | None
    path: str
    fragment: str | None
    user: str | None = None
    password: str | None = None
    options: Options = field(default_factory=lambda: Options({}, ""))

    @classmethod
    def of(cls, text: str) -> Location:
        """The parts of a URL. UsageError for a text that is none."""
        shown = without_secrets(text)
        url = ENVIRONMENT.sub(lambda match: _environment(match[1], shown), text)
        parts = _URL.fullmatch(url)
        authority = None if parts is None else _AUTHORITY.fullmatch(parts["authority"] or "")
        if parts is None or authority is None:
            raise UsageError(f"{shown} is not a URL; one is written like mqtt://localhost:1883/rooms/kitchen?qos=1")
        hashed = parts["early"] or parts["late"]
        values: dict[str, str] = {}
        for name, value in parse_qsl(parts["query"] or "", keep_blank_values=True):
            if name in values:
                raise UsageError(f"{shown}: the option {name!r} is given twice")
            values[name] = value
        path = parts["path"]
        return cls(
            url=url,
            shown=shown,
            scheme=parts["scheme"].lower(),
            host=authority["hosts"] or authority["host"].strip("[]"),
            port=_port(authority["port"], shown),
            path=unquote(path[1:] if parts["authority"] is not None else path),
            fragment=None if hashed is None else unquote(hashed[1:]),
            user=_unquoted(authority["user"]),
            password=_unquoted(authority["password"]),
            options=Options(values, shown),
        )


def without_secrets(url: str) -> str:
    """The URL for messages: "…" in the place of each password, token and secret.

    >>> without_secrets("postgresql://me:secret@host/db?password=x#token=y")
    'postgresql://me:…@host/db?password=…#token=…'
    """
    return _SECRET_OPTION.sub(r"\1…", _SECRET.sub(r"\1…@", url))


def _environment(name: str, shown: str) -> str:
    if name not in os.environ:
        raise UsageError(f"{shown}: the environment has no variable {name}")
    return os.environ[name]


def _port(text: str | None, shown: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise UsageError(f"{shown}: the port is an integer from 1 to 65535, not {text!r}")
    return int(text)


def _unquoted(text: str | None) -> str | None:
    return None if text is None else unquote(text)
