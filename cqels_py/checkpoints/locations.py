"""Where the state of a query on Spark is: a local or mounted folder, or one of an object store or a distributed file system.

/data/state  file:/data/state  s3a://bucket/state  gs://bucket/state  abfss://container@account.dfs…/state  hdfs://host/state
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from cqels_py.checkpoints.arrow_store import ArrowStore
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.objects import Store
from cqels_py.checkpoints.shared_folder import SharedFolder
from cqels_py.errors import UsageError

if TYPE_CHECKING:
    import pyarrow.fs

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""A single letter is a drive."""
_S3 = ("s3", "s3a", "s3n")
_KNOWN = (*_S3, "gs", "abfs", "abfss", "hdfs", "viewfs", "file")
_RENAMED = ("hdfs", "viewfs")
"""Files that are being written are seen there."""
_S3_OPTIONS = ("region", "endpoint_override", "scheme", "role_arn")
_SECONDS = 20
_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Location:
    """A folder; `text` is the path of a local one, or a URI."""

    text: str

    def below(self, *names: str) -> Location:
        """A folder in it."""
        if self.is_local:
            return replace(self, text=str(Path(self.text, *names)))
        address, mark, options = self.text.partition("?")
        return replace(self, text="/".join([address.rstrip("/"), *names]) + mark + options)

    @property
    def is_local(self) -> bool:
        """Is it a folder of this machine, perhaps a mounted one?"""
        return _SCHEME.match(self.text) is None

    def open(self) -> Store:
        """The store of the objects in the folder."""
        found = _SCHEME.match(self.text)
        if found is None:
            return SharedFolder(Path(self.text))
        base, path = _split(self.text)
        return ArrowStore(_file_system(base), path, self.text, renames=found[1].lower() in _RENAMED)

    def __str__(self) -> str:
        return self.text.partition("?")[0]


def file_at(uri: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The file system of a file, and the path in it. `uri`: as Hadoop writes it, where nothing in a name is quoted."""
    import pyarrow.fs as fs

    found = _SCHEME.match(uri)
    if found is None:
        return fs.LocalFileSystem(), uri
    if found[1].lower() == "file":
        return fs.LocalFileSystem(), "/" + uri.partition(":")[2].lstrip("/")
    scheme, _, rest = uri.partition("://")
    host, _, path = rest.partition("/")
    # Within an address a question mark would begin its options.
    _, folder = _split(f"{scheme}://{host}")
    return _file_system(f"{scheme}://{host}"), f"{folder.rstrip('/')}/{path}"


def location_of(state: str | Path) -> Location:
    """UsageError unless it is the path of a folder, or could be, or the URI of one in a store that is known."""
    if not isinstance(state, str | Path):
        raise UsageError(f"the state is the path or the URI of a folder, not {state!r}")
    text = str(state)
    found = _SCHEME.match(text)
    scheme = None if found is None else found[1].lower()
    if scheme == "dbfs":
        raise UsageError(f"the state is the folder that is mounted, /dbfs{text.partition(':')[2]}, not {text}")
    if scheme is not None and scheme not in _KNOWN:
        raise UsageError(
            f"the state is a folder of s3a:, gs:, abfss:, hdfs: or file:, or one that is mounted, not {text!r}"
        )
    if scheme is not None and scheme != "file":
        if not urlsplit(text).netloc and scheme not in _RENAMED:
            raise UsageError(f"the state {text} names no bucket or container, as {scheme}://bucket/state does")
        return Location(text)
    path = Path(text if scheme is None else unquote(_parsed(text).path)).absolute()
    if path.exists() and not path.is_dir():
        raise UsageError(f"the state is a folder, which {path} is not")
    return Location(str(path))


def _split(uri: str) -> tuple[str, str]:
    """The URI without its path, and the path in its file system."""
    parts = _parsed(uri)
    base = parts._replace(path="").geturl()
    path = unquote(parts.path).strip("/")
    if parts.scheme.lower() in _RENAMED:
        return base, f"/{path}"
    container = parts.netloc.rpartition("@")[0] if parts.scheme.lower().startswith("abfs") else parts.netloc
    return base, f"{container}/{path}".rstrip("/")


def _parsed(uri: str) -> SplitResult:
    """A number sign belongs to the name of a folder, as for Hadoop."""
    return urlsplit(uri, allow_fragments=False)


@cache
def _file_system(base: str) -> pyarrow.fs.FileSystem:
    """Made once in each process: it keeps connections. UsageError if its options are wrong."""
    import pyarrow as pa
    import pyarrow.fs as fs

    scheme = urlsplit(base).scheme.lower()
    try:
        return _s3(base) if scheme in _S3 else fs.FileSystem.from_uri(base)[0]
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StorageError(f"cannot reach the state at {base.partition('?')[0]}: {error}") from error


def _s3(base: str) -> pyarrow.fs.FileSystem:
    import pyarrow.fs as fs

    options = dict(parse_qsl(urlsplit(base).query))
    for name in options:
        if name not in _S3_OPTIONS:
            raise UsageError(f"{name} is no option of a state in S3: {', '.join(_S3_OPTIONS)} are")
    return fs.S3FileSystem(
        **{**_endpoint(), **options},
        # One request for a small object.
        allow_delayed_open=True,
        background_writes=False,
        request_timeout=_SECONDS,
        connect_timeout=_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )


def _endpoint() -> dict[str, str]:
    """The store that the environment names, as for other programs; pyarrow asks for it only where an address is parsed."""
    named = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    scheme, _, address = named.partition("://")
    return {"scheme": scheme, "endpoint_override": address.rstrip("/")} if address else {}
