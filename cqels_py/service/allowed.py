"""Which files and addresses requests may make the server open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cqels_py.service.failures import Forbidden

_FILE_SCHEMES = ("sqlite", "duckdb", "tail", "dir")
_FILE_OPTION = re.compile(
    r"[?&#](position|map|context|passfile|service|ssl(?:cert|key|rootcert|crl|crldir))=", re.IGNORECASE
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Allowed:
    """`paths`: folders below which files may be opened. `urls`: prefixes of addresses that may be connected to."""

    paths: tuple[Path, ...] = ()
    urls: tuple[str, ...] = ()

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


def _begins(given: str, prefix: str) -> bool:
    """Does an address begin so, at the end of a part of it? ".." in it leads elsewhere."""
    if ".." in given or "\\" in given or "@" in given.partition("://")[2].partition("/")[0]:
        return False
    return given == prefix or given.startswith(prefix if prefix.endswith("/") else (prefix + "/", prefix + "?"))


def _origin(given: str) -> str:
    scheme, _, rest = given.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
