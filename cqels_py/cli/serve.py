"""`cqels serve`: the service, with the options of its command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cqels_py.cli.failures import say
from cqels_py.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from cqels_py.service.service import Service

TOKEN = "CQELS_TOKEN"


@dataclass(frozen=True, slots=True)
class Asked:
    """The options. `limits`: those of `service.limits` that are given, by name; None: the default. Sizes are bytes."""

    data: Path | None
    host: str
    port: int
    allow_hosts: Sequence[str]
    token_file: Path | None
    certificate: Path | None
    key: Path | None
    allow_paths: Sequence[Path]
    allow_urls: Sequence[str]
    limits: dict[str, int | None]
    demo: bool = False
    allow_private: bool = False
    without: Sequence[str] = ()


def run(asked: Asked) -> None:
    """Serve until a signal."""
    try:
        from cqels_py.service.allowed import Allowed
        from cqels_py.service.limits import Limits
        from cqels_py.service.server import Serving, serve
    except ImportError as error:
        raise MissingExtra(f"the service needs the package {error.name}: pip install 'cqels_py[service]'") from None
    if (asked.certificate is None) != (asked.key is None):
        raise UsageError("--tls-certificate and --tls-key belong together")
    data = asked.data or default_folder("cqels-demo" if asked.demo else "cqels")
    serving = Serving(
        data=data,
        host=asked.host,
        port=asked.port,
        hosts=tuple(asked.allow_hosts),
        token=token_of(asked.token_file),
        certificate=asked.certificate,
        key=asked.key,
        limits=Limits(**{name: value for name, value in asked.limits.items() if value is not None}),
        allowed=Allowed(tuple(asked.allow_paths), tuple(asked.allow_urls), asked.allow_private),
        dashboard=find_spec("nicegui") is not None,
        without=tuple(asked.without),
    )
    serve(serving, _demo if asked.demo else _nothing, lambda address: say(f"serving {data} at {address}"))
    say("stopped: everything is kept")


def _nothing(_: Service) -> None:
    """There is nothing to prepare."""


def _demo(service: Service) -> None:
    from cqels_py.cli.serve_demo import prepare

    prepare(service)


def default_folder(name: str) -> Path:
    """Where the service keeps its data, unless --data says otherwise."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / name


def token_of(file: Path | None) -> str | None:
    """The token in a file, or else that of the environment, if there is one; without white space around it."""
    if file is None:
        return os.environ.get(TOKEN, "").strip() or None
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the token in {file} cannot be read: {error}") from None
