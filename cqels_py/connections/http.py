"""URLs of HTTP and WebSocket: their query belongs to the server, so the options of the connector stand behind "#"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from cqels_py.connections.location import Location, Options
from cqels_py.connections.schemes import needed
from cqels_py.errors import UsageError

_TO_BE_TRIED_AGAIN: Final = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A request. `url`: without the options; `shown`: for messages. `token`: a bearer token for the server."""

    url: str
    shown: str
    token: str | None

    @property
    def base(self) -> str:
        """The IRI of the place of its documents: without user, query and fragment, which may be secret."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}


def endpoint_of(location: Location) -> tuple[Endpoint, Options]:
    """The endpoint of a URL, and the options behind "#": the caller asks for those that it knows, and refuses the others."""
    location.options.rest()
    if not location.host:
        raise UsageError(f"{location.shown} names no host")
    options = options_behind(location)
    return Endpoint(location.url.partition("#")[0], location.shown, options.text("token")), options


def options_behind(location: Location) -> Options:
    """The options behind "#"."""
    behind = location.url.partition("#")[2]
    return Options(dict(parse_qsl(behind, keep_blank_values=True)), location.shown)


def may_pass(status: int) -> bool:
    """Is it the status of an answer that another try, later, may not get?"""
    return status >= 500 or status in _TO_BE_TRIED_AGAIN


def httpx_for(location: Location) -> Any:
    """The HTTP client's package. MissingExtra where it is missing."""
    return needed("httpx", "httpx", "http", f"{location.scheme}://")
