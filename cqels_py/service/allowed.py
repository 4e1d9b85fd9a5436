"""Which files and addresses requests may make the server open."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cqels_py.service.failures import Forbidden

_FILE_SCHEMES = ("sqlite", "duckdb", "tail", "dir")
_FILE_OPTION = re.compile(
    r"[?&#](position|map|context|passfile|service|ssl(?:cert|key|rootcert|crl|crldir))=", re.IGNORECASE
)
_PAGES = "ldes+"
"""Before the scheme of addresses of which several pages are read."""
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
        path = Path(unquote(urlsplit(given).path) if given.startswith("file:") else given).resolve()
        if any(path.is_relative_to(folder.resolve()) for folder in self.paths):
            return str(path)
        raise Forbidden(f"requests may not name the file {given}: start the server with --allow-path {path.parent}")

    def url(self, given: str) -> str:
        """The address. Forbidden for one that does not begin as an allowed one."""
        if any(_begins(given, prefix) for prefix in self.urls):
            return given
        raise Forbidden(
            f"requests may not name the address {given}: start the server with --allow-url {_origin(given)}"
        )

    def check(self, url: str) -> None:
        """Forbidden for an address that does not begin as an allowed one, also where another one leads there."""
        if not any(_begins(f"{kind}{url}", prefix) for kind in ("", _PAGES) for prefix in self.urls):
            self.url(url)

    def check_peer(self, url: str, address: str) -> None:
        """Forbidden for a connection to an address of a kind that requests may not reach."""
        found, host = ipaddress.ip_address(address.partition("%")[0]), urlsplit(url).hostname or ""
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        if found.is_link_local or found.is_multicast or found.is_unspecified:
            raise Forbidden(f"{_origin(url)} leads to {found}, which requests may not reach")
        if (found.is_private or found.is_loopback) and not (self.private or _is_address(host)):
            raise Forbidden(
                f"{_origin(url)} leads to {found}, in a private network: start the server with --allow-private"
            )

    def location(self, given: str) -> str:
        """A path, or an address."""
        if (option := _FILE_OPTION.search(given)) is not None and _SCHEME.match(given):
            raise Forbidden(f"requests may not use the option {option[1]}=, which names a file of the server")
        scheme, _, rest = given.partition(":")
        if scheme in _FILE_SCHEMES:
            self.path(re.split(r"[?#]", rest)[0])
            return given
        if _SCHEME.match(given) and scheme != "file":
            return self.url(given)
        return self.path(given)


def _is_address(host: str) -> bool:
    """Is it an address itself, or this machine's own name? Then it was allowed as such."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _begins(given: str, prefix: str) -> bool:
    """Does an address begin so, at the end of a part of it? ".." in it leads elsewhere."""
    if ".." in given or "\\" in given or "@" in given.partition("://")[2].partition("/")[0]:
        return False
    return given == prefix or given.startswith(prefix if prefix.endswith("/") else (prefix + "/", prefix + "?"))


def _origin(given: str) -> str:
    scheme, _, rest = given.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
