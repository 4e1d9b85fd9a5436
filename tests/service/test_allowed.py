"""Which URLs of sources, sinks and tables a request may name: no option opens a file, runs code or leads to another server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cqels_py.connections.location import Options
from cqels_py.errors import CqelsError
from cqels_py.service.allowed import HARMLESS, Allowed
from cqels_py.service.failures import Forbidden
from cqels_py.sinks.urls import SINKS
from cqels_py.sources.static_tables import StaticTable
from cqels_py.sources.urls import SOURCES

_CERTIFICATES = ("ca", "cert", "key")
REFUSED = {
    "tail": ("position",),
    "dir": ("position", "after"),
    "sqlite": ("map",),
    "duckdb": ("map",),
    "postgres": ("map",),
    "postgresql": ("map",),
    "mqtt": _CERTIFICATES,
    "mqtts": _CERTIFICATES,
    "nats": ("ca", "creds"),
    "ldes+http": ("position", "waiting"),
    "ldes+https": ("position", "waiting"),
}
"""The connectors' own options that name files of the server, delete some, or let some grow."""
LIBRARIES = {
    "postgresql": (
        *(
            "host",
            "hostaddr",
            "port",
            "dbname",
            "passfile",
            "service",
            "servicefile",
            "sslcert",
            "sslkey",
            "sslpassword",
        ),
        *("sslrootcert", "sslcrl", "sslcrldir", "sslkeylogfile", "krbsrvname", "gsslib", "requirepeer", "options"),
    ),
    "kafka": (
        *("plugin.library.paths", "metadata.broker.list", "bootstrap.servers", "socket.keepalive.enable", "debug"),
        *(
            "ssl.ca.location",
            "ssl.certificate.location",
            "ssl.key.location",
            "ssl.keystore.location",
            "ssl.crl.location",
        ),
        *("ssl.engine.location", "ssl.providers", "ssl.ca.certificate.stores", "ssl.ca.pem", "https.ca.location"),
        *(
            "sasl.oauthbearer.config",
            "sasl.oauthbearer.method",
            "sasl.oauthbearer.token.endpoint.url",
            "sasl.mechanism",
        ),
        *(
            "sasl.oauthbearer.assertion.private.key.file",
            "sasl.oauthbearer.assertion.jwt.template.file",
            "security.protocol",
        ),
        *(
            "sasl.kerberos.kinit.cmd",
            "sasl.kerberos.keytab",
            "sasl.kerberos.principal",
            "sasl.mechanisms",
            "resolve_cb",
        ),
    ),
}
"""Options of libraries that name files, commands, shared libraries and other servers, among others."""
PATHS = {"tail": "in.nq", "dir": "in", "sqlite": "x.db", "duckdb": "x.db", "parquet": "results", "ldes": "pages"}
HASHED = ("http", "https", "ws", "wss", "ldes+http", "ldes+https")


def url_of(scheme: str, folder: Path, options: str) -> str:
    """A URL that is allowed without its options."""
    options = f"{'#' if scheme in HASHED else '?'}{options}" if options else ""
    if scheme in PATHS:
        return f"{scheme}:{folder}/{PATHS[scheme]}{options}{'#rooms' if scheme in ('sqlite', 'duckdb') else ''}"
    return f"{scheme}://server/rooms{options}{'#rooms' if scheme.startswith('postgres') else ''}"


@pytest.fixture
def allowed(tmp_path: Path) -> Allowed:
    return Allowed((tmp_path,), tuple(f"{scheme}://server" for scheme in (*HARMLESS, "other")))


@pytest.mark.parametrize(
    ("scheme", "option"), [(scheme, each) for of in (REFUSED, LIBRARIES) for scheme in of for each in of[scheme]]
)
def test_options_that_reach_further_are_refused(scheme: str, option: str, allowed: Allowed, tmp_path: Path) -> None:
    assert allowed.location(url_of(scheme, tmp_path, ""))
    for given in (f"{option}={tmp_path}/x", f"{option.replace('e', '%65')}=x", f"{option.upper()}=x"):
        url = url_of(scheme, tmp_path, given)
        with pytest.raises(Forbidden, match=r"the option .*start the server with --allow-url and the whole address"):
            allowed.location(url)
        # The operator may say so.
        assert Allowed(urls=(url,)).location(url) == url


@pytest.mark.parametrize(
    ("scheme", "option"), [(scheme, each) for scheme in HARMLESS for each in sorted(HARMLESS[scheme])]
)
def test_harmless_options_are_allowed(scheme: str, option: str, allowed: Allowed, tmp_path: Path) -> None:
    url = url_of(scheme, tmp_path, option if "=" in option else f"{option}=1")
    assert allowed.location(url) == url


@pytest.mark.parametrize(
    "options",
    ["security.protocol=SASL_SSL", "format=auto&plugin.library.paths=x", "security.protocol=SSL&ssl.ca.location=x"],
)
def test_each_option_is_looked_at(options: str, allowed: Allowed) -> None:
    with pytest.raises(Forbidden):
        allowed.location(f"kafka://server/rooms?{options}")


def test_the_query_of_an_address_is_its_servers(allowed: Allowed) -> None:
    assert allowed.location("http://server/rooms?key=1&position=2#time=arrival")


def test_connectors_of_other_packages_get_no_options(allowed: Allowed) -> None:
    assert allowed.location("other://server/rooms#table")
    for url in ("other://server/rooms?size=1", "other://server/rooms#size=1"):
        with pytest.raises(Forbidden):
            allowed.location(url)


def asked_options(scheme: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> set[str]:
    """The options for which the connectors of a scheme ask themselves."""
    asked: set[str] = set()
    text: Callable[..., Any] = Options.text

    def noted(self: Options, name: str, default: str | None = None) -> str | None:
        asked.add(name)
        return str(rules) if name == "map" else text(self, name, default)

    rules = tmp_path / "map.rq"
    rules.write_text("CONSTRUCT { ?s <http://ex.org/p> ?o } {}")
    monkeypatch.setattr(Options, "text", noted)
    url, opened = url_of(scheme, tmp_path, ""), 0
    for open_ in (SOURCES.connector, SINKS.connector, StaticTable.of):
        if open_ == StaticTable.of and scheme not in ("sqlite", "duckdb", "postgres", "postgresql"):
            continue
        try:
            open_(url)
        except CqelsError as error:
            assert f"{scheme}:" in str(error) and ("connector" in str(error) or "is no " in str(error)), error
        else:
            opened += 1
    assert opened
    return asked


@pytest.mark.parametrize("scheme", [*SOURCES.known(), *SINKS.known()])
def test_each_option_of_a_connector_is_either_harmless_or_refused(
    scheme: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in (
        "confluent_kafka",
        "paho.mqtt.client",
        "nats",
        "psycopg",
        "httpx",
        "websockets",
        "duckdb",
        "pyarrow",
    ):
        pytest.importorskip(module)
    asked, of_library = asked_options(scheme, monkeypatch, tmp_path), set[str]()
    if scheme in ("kafka", "postgres", "postgresql"):
        of_library = {each for each in HARMLESS[scheme] if each not in asked}
    assert not HARMLESS[scheme] & set(REFUSED.get(scheme, ()))
    assert asked == {*HARMLESS[scheme], *REFUSED.get(scheme, ())} - of_library


def test_harmless_options_of_libraries_are_theirs() -> None:
    psycopg, kafka = pytest.importorskip("psycopg"), pytest.importorskip("confluent_kafka")
    values = {"compression.type": "gzip", "session.timeout.ms": "7000"}
    settings = dict(
        each.split("=") if "=" in each else (each, values.get(each, "9")) for each in HARMLESS["kafka"] if "." in each
    )
    kafka.Consumer({"group.id": "x", **settings})
    own = {"mode", "retry", "refresh"}
    psycopg.conninfo.make_conninfo(**dict.fromkeys(HARMLESS["postgresql"] - own, "1"))


@pytest.mark.parametrize("scheme", PATHS)
def test_files_of_all_connectors_lie_below_allowed_folders(scheme: str, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    allowed = Allowed((inside,))
    assert allowed.location(url_of(scheme, inside, ""))
    for path in ("../x", "%2e%2e/x", "..%2fx", "/x", "%2e%2e%2f%2e%2e%2fx"):
        with pytest.raises(Forbidden, match="--allow-path"):
            allowed.location(f"{scheme}:{inside}/{path}#rooms" if path != "/x" else f"{scheme}:/x#rooms")
    with pytest.raises(Forbidden):
        allowed.location(f"{scheme}:{inside}/%00#rooms")
    with pytest.raises(Forbidden, match=f"start the server with --allow-path {tmp_path}$"):
        allowed.location(f"{scheme}:{tmp_path}/x")


def test_parquet_files_beside_an_allowed_folder_are_not_below_it(tmp_path: Path) -> None:
    with pytest.raises(Forbidden, match="--allow-path"):
        Allowed((tmp_path,)).location(f"parquet:{tmp_path}")


@pytest.mark.parametrize(
    "given", ["foo:bar", "foo:bar?x=1", "foo://server/x", "http://me@server/x", "http://server/../x"]
)
def test_the_advice_helps(given: str) -> None:
    with pytest.raises(Forbidden) as refused:
        Allowed().url(given)
    advice = str(refused.value).partition("--allow-url ")[2]
    assert Allowed(urls=(given if advice == "and the whole address" else advice,)).url(given) == given


def test_requests_name_no_variables_of_the_environment(
    allowed: Allowed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "../../etc")
    for url in (f"tail:{tmp_path}/${{SECRET}}", "http://server/x?${SECRET}", "http://server/x#token=${SECRET}"):
        with pytest.raises(Forbidden, match="environment"):
            allowed.location(url)
        assert Allowed(urls=(url,)).location(url) == url
    whole = Allowed(urls=("http://server/x?key=${SECRET}#token=${SECRET}",))
    whole.check("http://server/x?key=../../etc")
    with pytest.raises(Forbidden):
        whole.check("http://server/x")


def test_a_path_may_not_be_left_by_percent_encoding(allowed: Allowed) -> None:
    with pytest.raises(Forbidden):
        Allowed(urls=("http://server/files",)).location("http://server/files/%2e%2e/x")
