"""Which files and addresses requests may make the server open."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from cqels_py.connections.http import options_behind
from cqels_py.connections.location import ENVIRONMENT, Location
from cqels_py.service.failures import Forbidden

_FILE_SCHEMES = ("sqlite", "duckdb", "tail", "dir", "parquet", "ldes")
_PAGES = "ldes+"
"""Before the scheme of addresses of which several pages are read."""
_MESSAGES = frozenset({"format", "time", "idle"})
_MQTT = _MESSAGES | {"qos", "client", "session", "retained", "retain", "retry"}
_WEB = _MESSAGES | {"token"}
_HTTP = _WEB | {"secret", "batch", "retry"}
_LDES_PAGES = frozenset({"start", "follow", "refresh", "hosts", "page", "token", "idle"})
_TABLE = frozenset({"mode", "retry", "refresh"})
_LIBPQ = frozenset(
    {
        "application_name",
        "connect_timeout",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "password",
        "sslmode",
        "tcp_user_timeout",
        "user",
    }
)
_LIBRDKAFKA = frozenset(
    {
        "batch.size",
        "client.id",
        "client.rack",
        "compression.type",
        "fetch.min.bytes",
        "fetch.wait.max.ms",
        "linger.ms",
        "security.protocol=PLAINTEXT",
        "security.protocol=SSL",
        "session.timeout.ms",
    }
)
HARMLESS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "tail": frozenset({"format", "start"}),
        "dir": frozenset({"pattern"}),
        "sqlite": _TABLE,
        "duckdb": _TABLE,
        "parquet": frozenset({"size"}),
        "ldes": frozenset({"members"}),
        "kafka": _MESSAGES | {"group", "start", "partitions", "key", "id", "retry"} | _LIBRDKAFKA,
        "mqtt": _MQTT,
        "mqtts": _MQTT,
        "nats": _MESSAGES | {"start", "position", "stream", "tls", "token", "retry"},
        "http": _HTTP,
        "https": _HTTP,
        "ws": _WEB,
        "wss": _WEB,
        "ldes+http": _LDES_PAGES,
        "ldes+https": _LDES_PAGES,
        "postgres": _TABLE | _LIBPQ,
        "postgresql": _TABLE | _LIBPQ,
    }
)
"""By scheme, the options that requests may give, some with one value alone: they open no file, delete none, load no library, run
no command, and lead to no other address than that of the URL. `hosts` is of those that are checked before they are asked."""
_BEHIND_HASH = ("http", "https", "ws", "wss", "ldes+http", "ldes+https")
"""The schemes of which the options stand behind "#"; those before it are the server's."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
"""IPv6 addresses that gateways translate to IPv4 addresses: everywhere (RFC 6052), and within a network (RFC 8215)."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Allowed:
    """`paths`: folders below which files may be opened. `urls`: prefixes of addresses that may be connected to; `private`: also
    where a name among them leads to this machine or into a private network.

    It is the `Reach` of the engine: addresses are checked again after redirects, and once they are connected to.
    """

    paths: tuple[Path, ...] = ()
    urls: tuple[str, ...] = ()
    private: bool = False

    def path(self, given: str) -> str:
        """The path, with its links resolved. Forbidden for one that is not below an allowed folder."""
        try:
            path = Path(unquote(urlsplit(given).path) if given.startswith("file:") else given).resolve()
        except (OSError, ValueError, RuntimeError):
            raise Forbidden(f"requests may not name the file {given!r}: it is no path") from None
        if any(path.is_relative_to(folder.resolve()) for folder in self.paths):
            return str(path)
        raise Forbidden(f"requests may not name the file {given}: start the server with --allow-path {path.parent}")

    def url(self, given: str) -> str:
        """The address. Forbidden for one that does not begin as an allowed one."""
        if any(_begins(given, prefix) for prefix in self.urls):
            return given
        raise Forbidden(
            f"requests may not name the address {given}: start the server with --allow-url {_prefix(given)}"
        )

    def check(self, url: str) -> None:
        """Forbidden for an address that does not begin as an allowed one, also where another one leads there."""
        if not any(_begins(f"{kind}{url}", _asked(prefix)) for kind in ("", _PAGES) for prefix in self.urls):
            self.url(url)

    def check_peer(self, url: str, address: str) -> None:
        """Forbidden for a connection to an address of a kind that requests may not reach."""
        found, host = ipaddress.ip_address(address.partition("%")[0]), urlsplit(url).hostname or ""
        if isinstance(found, ipaddress.IPv6Address):
            found = _translated(found)
        if found.is_link_local or found.is_multicast or found.is_unspecified:
            raise Forbidden(f"{_origin(url)} leads to {found}, which requests may not reach")
        if (not found.is_global or found in _LOCAL_NAT64) and not (self.private or _is_address(host)):
            raise Forbidden(
                f"{_origin(url)} leads to {found}, in a private network: start the server with --allow-private"
            )

    def location(self, given: str) -> str:
        """A path, or an address, whose options are harmless unless the whole of it is an allowed one."""
        if given in self.urls:
            return given
        if not _SCHEME.match(given) or given.startswith("file:"):
            return self.path(given)
        if ENVIRONMENT.search(given):
            raise Forbidden(f"requests may not name variables of the environment, as in {given}. To have it, {_WHOLE}")
        if given.partition(":")[0] not in _FILE_SCHEMES:
            self.url(given)
        location = Location.of(given)
        if location.scheme in _FILE_SCHEMES:
            self.path(_file(location))
        _check_options(location)
        return given


_WHOLE = "start the server with --allow-url and the whole address"


def _file(location: Location) -> str:
    """The path that a connector opens, or the first one."""
    if location.scheme == "parquet":
        # The files lie beside their common path, not below it.
        return f"{location.path.removesuffix('.parquet')}-000001.parquet"
    return location.path


def _check_options(location: Location) -> None:
    harmless = HARMLESS.get(location.scheme, frozenset())
    if location.scheme in _BEHIND_HASH:
        given = options_behind(location).rest()
    else:
        given = location.options.rest()
        if location.scheme not in HARMLESS:
            # A connector of another package may take these for options, too.
            given |= dict(parse_qsl(location.fragment or ""))
    for name, value in given.items():
        if name not in harmless and f"{name}={value}" not in harmless:
            known = ", ".join(sorted(harmless)) or "none"
            raise Forbidden(
                f"requests may not give {location.scheme}: the option {name}; they may give {known}. To have it, {_WHOLE}"
            )


def _translated(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address to which an IPv6 address leads, if it is one of a translation or of a tunnel."""
    if address in _NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


def _is_address(host: str) -> bool:
    """Is it an address itself, or this machine's own name? Then it was allowed as such."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _asked(prefix: str) -> str:
    """The prefix as it is asked for: without options of connectors, and with variables of the environment that there are."""
    return ENVIRONMENT.sub(lambda match: os.environ.get(match[1], match[0]), prefix.partition("#")[0])


def _begins(given: str, prefix: str) -> bool:
    """Does an address begin so, at the end of a part of it? ".." in it leads elsewhere."""
    if given == prefix:
        return True
    if _leads_elsewhere(given):
        return False
    return given.startswith(prefix if prefix.endswith("/") else (prefix + "/", prefix + "?"))


def _leads_elsewhere(given: str) -> bool:
    """May it lead elsewhere than it seems? A user stands before the host."""
    return ".." in unquote(given) or "\\" in given or "@" in given.partition("://")[2].partition("/")[0]


def _prefix(given: str) -> str:
    """The value of --allow-url that allows it."""
    return "and the whole address" if _leads_elsewhere(given) else _origin(given)


def _origin(given: str) -> str:
    scheme, separator, rest = given.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if separator else given
