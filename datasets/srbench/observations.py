"""The stream of observations: the stations' reports of the weather, column by column.

At each instant, a multiple of five minutes, a part of the stations reports. An element is an observation of nine
triples, named like the observation: five that describe it, three of its value, and om-owl:generatedObservation, the
inverse of om-owl:procedure. An element before them describes the instant in two triples, once for all observations of
that instant.

Stations differ in the properties that they measure; some give no unit for rainfall. Snowfall is observed while it
snows, gusts while there are some, a wind's direction except in calm air. Now and then a station is silent for some
hours, and a thermometer is off by many degrees for a day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..tables import Statement, date_times, decimals, iris, rows
from .vocabulary import BASE, OM, RDF_TYPE, TIME, om, weather
from .weather import Field, dew_point
from .weather import weather as weather_of
from .world import CODES, Codes, Flags, Numbers, World

SECOND = 1_000_000
MINUTE = 60 * SECOND
INSTANT_MINUTES = 5
INSTANTS_A_DAY = 24 * 60 // INSTANT_MINUTES
FIRST_INSTANT = 1_287_878_400 * SECOND
"""2010-10-24T00:00Z."""

BLOCK = 12
"""Instants per block: an hour."""
SLOT = 8 * 60 // INSTANT_MINUTES
"""Instants within which a station becomes silent at most once."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The observed property, the observation's class, the unit; and the share of stations that measure it."""

    property: str
    type: str
    unit: str
    share: float


KINDS = (
    Kind("AirTemperature", "TemperatureObservation", "fahrenheit", 1.0),
    Kind("DewPoint", "TemperatureObservation", "fahrenheit", 0.8),
    Kind("RelativeHumidity", "RelativeHumidityObservation", "percentage", 0.9),
    Kind("WindSpeed", "WindSpeedObservation", "milesPerHour", 1.0),
    Kind("WindGust", "WindSpeedObservation", "milesPerHour", 0.7),
    Kind("WindDirection", "WindDirectionObservation", "degrees", 0.9),
    Kind("Pressure", "PressureObservation", "hectopascal", 0.5),
    Kind("PrecipitationAccumulated", "RainfallObservation", "centimeters", 0.8),
    Kind("SnowInterval", "SnowfallObservation", "centimeters", 0.9),
    Kind("Visibility", "VisibilityObservation", "centimeters", 0.6),
)
RAINFALL = 7
PROPERTIES = pa.array([kind.property for kind in KINDS])


def batches(world: World, minutes: int, pace: float) -> Iterator[pa.RecordBatch]:
    """Batches without end. Each station reports every `minutes`; the weather runs `pace` times as fast as the clock."""
    fallen = np.zeros(world.stations)
    for block in count():
        instants = np.arange(block * BLOCK, (block + 1) * BLOCK)
        values, fallen = _values(world, instants, pace, fallen)
        yield _rows(world, instants, values, _reports(world, instants, minutes))


def measures(world: World) -> Flags:
    """The kinds (rows) that each station (columns) observes. The first station of each region observes all."""
    share = np.array([kind.share for kind in KINDS])
    measured = np.random.default_rng((world.seed, 5)).random((len(KINDS), world.stations)) < share[:, None]
    measured[:, [int(np.argmax(world.region == region)) for region in (0, 1)]] = True
    return measured


def gives_no_unit(world: World) -> Flags:
    """Stations whose rainfall has no unit: every tenth."""
    without: Flags = np.arange(world.stations) % 10 == 4
    return without


def _values(world: World, instants: Codes, pace: float, fallen: Numbers) -> tuple[Numbers, Numbers]:
    """Values by kind, instant and station, NaN where there are none; and the rain of the day so far."""
    size = (3, world.stations)
    noise = np.stack([np.random.default_rng((world.seed, 6, int(i))).standard_normal(size) for i in instants], axis=1)
    hours = INSTANT_MINUTES / 60 * pace
    there = weather_of(world, instants.astype(np.float64) * hours, noise)
    rain, fallen = _rain_of_the_day(instants, there.rain * hours, fallen)
    off = np.stack([_thermometer_is_off(world, int(day)) for day in instants // INSTANTS_A_DAY])
    values = np.stack(
        [
            there.temperature + off,
            dew_point(there.temperature, there.humidity),
            there.humidity,
            there.wind,
            np.where(there.wind > 8, there.gust, np.nan),
            np.where(there.wind > 1, there.direction, np.nan),
            there.pressure,
            rain,
            np.where(there.snow > 0, there.snow * hours, np.nan),
            there.visibility,
        ]
    )
    return values, fallen


def _rain_of_the_day(instants: Codes, rain: Field, fallen: Numbers) -> tuple[Field, Numbers]:
    """The gauges' readings. Gauges are emptied at midnight; an hour does not span a midnight."""
    if instants[0] % INSTANTS_A_DAY == 0:
        fallen = np.zeros_like(fallen)
    shown = fallen + np.cumsum(rain, axis=0)
    return shown, shown[-1]


def _thermometer_is_off(world: World, day: int) -> Numbers:
    random = np.random.default_rng((world.seed, 7, day))
    size = world.stations
    return np.where(random.random(size) < 0.06, random.uniform(14, 26, size) * random.choice([-1, 1], size), 0.0)


def _reports(world: World, instants: Codes, minutes: int) -> Flags:
    """The stations (columns) that report at each instant (rows): they take turns, and are silent now and then."""
    turns = minutes // INSTANT_MINUTES
    in_turn = (instants[:, None] + np.arange(world.stations)) % turns == 0
    silent = np.stack([_silent(world, int(instant)) for instant in instants])
    reporting: Flags = in_turn & ~silent
    return reporting


def _silent(world: World, instant: int) -> Flags:
    slot, within = divmod(instant, SLOT)
    random = np.random.default_rng((world.seed, 8, slot))
    falls, start, long = random.random((3, world.stations))
    begin = (0.05 + 0.5 * start) * SLOT
    silent: Flags = (falls < 0.12) & (within >= begin) & (within < begin + (0.25 + 0.3 * long) * SLOT)
    return silent


def _rows(world: World, instants: Codes, values: Numbers, reports: Flags) -> pa.RecordBatch:
    """Elements of a block: the instant, then its stations in order, each with its observations."""
    observed = reports[None] & measures(world)[:, None] & ~np.isnan(values)
    kind, instant, station = np.nonzero(observed)
    value = values[observed]
    # An instant comes before its observations: it is sorted as station -1.
    reported = np.flatnonzero(reports.any(axis=1))
    kind = np.concatenate((np.full(len(reported), -1), kind))
    instant = np.concatenate((reported, instant))
    station = np.concatenate((np.full(len(reported), -1), station))
    value = np.concatenate((np.zeros(len(reported)), value))
    order = np.lexsort((kind, station, instant))
    return _elements(world, instants, kind[order], instant[order], station[order], value[order])


def _elements(
    world: World,
    instants: Codes,
    kind: Codes,
    instant: Codes,
    station: Codes,
    value: Numbers,
) -> pa.RecordBatch:
    """One row each: an observation, or an instant if `kind` is -1."""
    is_instant = kind < 0
    times = FIRST_INSTANT + instants * (INSTANT_MINUTES * MINUTE)
    stamps = pc.strftime(pa.array(times // SECOND).cast(pa.timestamp("s")), "%Y_%m_%d_%H_%M_%S")
    chosen = pa.array(instant)
    stamp = stamps.take(chosen)
    at = iris(BASE + "Instant_", stamps).take(chosen)
    kinds = pa.array(np.maximum(kind, 0))
    missing = pa.array(is_instant)
    name = pc.binary_join_element_wise(
        PROPERTIES.take(kinds), station_names(world).take(pa.array(np.maximum(station, 0))), stamp, "_"
    )
    observation = pc.if_else(missing, None, iris(BASE + "Observation_", name))
    data = pc.if_else(missing, None, iris(BASE + "MeasureData_", name))
    system = systems(world).take(pa.array(np.maximum(station, 0)))
    units = pa.array([weather(each.unit) for each in KINDS]).take(kinds)
    unitless = pa.array((kind == RAINFALL) & gives_no_unit(world)[np.maximum(station, 0)])
    each_instant = pc.if_else(missing, at, None)
    always = len(kind)
    statements = [
        Statement(each_instant, RDF_TYPE, _same(f"<{TIME}Instant>", always)),
        Statement(each_instant, f"<{TIME}inXSDDateTime>", date_times(times).take(chosen)),
        Statement(observation, RDF_TYPE, pa.array([weather(each.type) for each in KINDS]).take(kinds)),
        Statement(
            observation, om("observedProperty"), pa.array([weather("_" + k.property) for k in KINDS]).take(kinds)
        ),
        Statement(observation, om("procedure"), system),
        Statement(observation, om("result"), data),
        Statement(observation, om("samplingTime"), at),
        Statement(data, RDF_TYPE, _same(f"<{OM}MeasureData>", always)),
        Statement(data, om("floatValue"), decimals(value, 1, "float")),
        Statement(data, om("uom"), pc.if_else(unitless, None, units)),
        Statement(system, om("generatedObservation"), observation),
    ]
    return rows(times[instant], pc.coalesce(observation, at), statements)


def station_names(world: World) -> pa.Array:
    """Names of the region's letter and a number."""
    return pa.array([f"{CODES[region]}{number:04}" for number, region in enumerate(world.region)])


def systems(world: World) -> pa.Array:
    return iris(BASE + "System_", station_names(world))


def _same(term: str, length: int) -> pa.Array:
    return pa.repeat(pa.scalar(term), length)
