"""The settings of a connection to PostgreSQL, as its URL describes it."""

from __future__ import annotations

from typing import Any

from cqels_py.connections.location import Location
from cqels_py.connections.schemes import needed
from cqels_py.errors import UsageError


def psycopg_for(location: Location) -> Any:
    """The client's package. MissingExtra where it is missing."""
    return needed("psycopg", "psycopg", "postgres", f"{location.scheme}://")


def settings_of(location: Location, own: str) -> dict[str, str]:
    """For libpq: the parts of the URL, and its options that nobody has asked for. `own`: the names of the others, for messages.

    UsageError for an option that libpq does not know.
    """
    psycopg = psycopg_for(location)
    given = {
        "host": location.host,
        "port": location.port,
        "user": location.user,
        "password": location.password,
        "dbname": location.path,
    }
    settings = {"connect_timeout": "10", "application_name": "cqels", **location.options.rest()}
    settings.update({name: str(value) for name, value in given.items() if value})
    try:
        psycopg.conninfo.make_conninfo(**settings)
    except psycopg.Error as error:
        raise UsageError(
            f"{location.shown}: {str(error).strip()}; the options here are {own} and those of libpq"
        ) from None
    return settings
