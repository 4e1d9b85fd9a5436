"""Taxi rides in a city like New York: a seeded generator, column by column, of any length.

The scenario of the paper's section 2.1. Random variables and their distributions:

* arrivals: a Poisson process whose rate follows the hour of the day (quiet at five, busy in the evening);
* areas: 263, with the popularity of a Zipf law, other areas for pick-ups than for drop-offs;
* distances: log-normal, median 1.8 miles; speeds: by the hour, with log-normal noise;
* fares: the meter's tariff of 2013 (2.50 at the start, 2.50 a mile, 0.50 a slow minute, in steps of 0.50);
* tips: none on record for rides paid in cash, otherwise mostly 20, 25 or 30 % of the fare;
* taxis: day shifts from five to five, night shifts, and a few that drive all day; a ride goes to the taxi that has
  been without one for longest (a few long rides overlap with the next one of the same taxi).

The stream is ordered by pick-up time, which is also the event time. The same seed gives the same rides, and a shorter
stream is the beginning of a longer one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cqels_py.errors import UsageError

from .tables import SCHEMA, Statement, date_times, decimals, iris, ntriples, rows, strings, typed

BASE = "http://cqels.example/taxi/"
RIDES = BASE + "rides"
TERMS = BASE + "terms#"
SCHEMA_ORG = "http://schema.org/"

SECOND = 1_000_000
HOUR = 3_600
DAY = 24 * HOUR
FIRST_INSTANT = 1_356_998_400
"""2013-01-01T00:00Z, in seconds."""

AREAS = 263
BOROUGHS = ("Manhattan", "Brooklyn", "Queens", "Bronx", "Staten Island")
BOROUGH_OF_RANK = np.repeat(np.arange(5), (69, 61, 69, 43, 21))

# fmt: off
RATE_BY_HOUR = np.array([
    0.90, 0.66, 0.49, 0.35, 0.26, 0.22, 0.46, 0.80, 1.00, 1.01, 0.98, 1.00,
    1.06, 1.05, 1.09, 1.05, 0.92, 1.11, 1.34, 1.38, 1.30, 1.28, 1.23, 1.06,
])
"""Relative to the mean over a day."""

SPEED_BY_HOUR = np.array([
    16.0, 17.0, 18.0, 20.0, 22.0, 23.0, 19.0, 14.0, 11.0, 11.0, 11.0, 11.0,
    10.5, 10.5, 10.5, 10.5, 11.0, 10.5, 10.5, 11.5, 13.0, 14.0, 14.5, 15.0,
])
"""Miles an hour."""
# fmt: on

BLOCK = 8_192
"""Rides are generated in blocks of this size, each with its own random generator, so batching changes nothing."""


@dataclass(frozen=True, slots=True)
class Rides:
    """n rides: seconds since the epoch, numbers of taxis and areas, miles, dollars."""

    first: int
    pickup: npt.NDArray[np.int64]
    dropoff: npt.NDArray[np.int64]
    taxi: npt.NDArray[np.int64]
    pickup_area: npt.NDArray[np.int64]
    dropoff_area: npt.NDArray[np.int64]
    distance: npt.NDArray[np.float64]
    fare: npt.NDArray[np.float64]
    tip: npt.NDArray[np.float64]
    by_card: npt.NDArray[np.bool_]


def streams(
    days: int | None = None, *, rides_per_day: int = 20_000, taxis: int = 1_000, seed: int = 1
) -> dict[str, pa.RecordBatchReader]:
    """The stream of rides, for a number of days or unbounded."""
    if days is not None and days < 1:
        raise UsageError(f"{days} days make no stream; ask for 1 or more")
    blocks = generate(rides_per_day=rides_per_day, taxis=taxis, seed=seed, days=days)
    return {RIDES: pa.RecordBatchReader.from_batches(SCHEMA, (_ride_rows(block) for block in blocks))}


def static() -> bytes:
    """The areas' names and boroughs as N-Triples."""
    number = pa.array(np.arange(AREAS)).cast(pa.string())
    area = iris(BASE + "area/", number)
    borough = pa.array([BOROUGHS[rank] for rank in BOROUGH_OF_RANK])
    name = pa.array([f"Area {rank}" for rank in range(AREAS)])
    return ntriples(
        [
            Statement(area, f"<{SCHEMA_ORG}name>", strings(name)),
            Statement(area, f"<{TERMS}borough>", strings(borough)),
        ]
    )


def generate(*, rides_per_day: int, taxis: int, seed: int, days: int | None = None) -> Iterator[Rides]:
    """Rides ordered by pick-up time, block by block."""
    fleet = _Fleet(taxis)
    start = 0.0  # how many rides' worth of the rate has passed, on average
    first = 0
    for block in count():
        random = np.random.default_rng((seed, block))
        passed = start + np.cumsum(random.exponential(size=BLOCK))
        start = float(passed[-1])
        seconds = _when(passed / rides_per_day)
        if days is not None:
            seconds = seconds[seconds < days * DAY]
        rides = _rides(random, first, seconds, fleet)
        if len(rides.pickup):
            yield rides
        first += len(seconds)
        if len(seconds) < BLOCK:
            return


def _when(passed_days: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Days' worth of rides → seconds: the inverse of the summed rate, which is linear within each hour."""
    summed = np.concatenate(([0.0], np.cumsum(RATE_BY_HOUR) / RATE_BY_HOUR.sum()))
    whole = np.floor(passed_days)
    seconds = whole * DAY + np.interp(passed_days - whole, summed, np.arange(25) * HOUR)
    return seconds.astype(np.int64)


def _rides(random: np.random.Generator, first: int, seconds: npt.NDArray[np.int64], fleet: _Fleet) -> Rides:
    """All random numbers of a block are drawn and then cut, so that a shorter stream begins like a longer one."""
    number = len(seconds)
    hour = seconds // HOUR % 24
    popularity = np.cumsum(1 / np.arange(1, AREAS + 1) ** 1.1)
    pickup_rank, dropoff_rank = np.searchsorted(popularity, random.random((2, BLOCK)) * popularity[-1])[:, :number]
    distance = np.clip(random.lognormal(np.log(1.8), 0.75, BLOCK)[:number], 0.1, 40).round(2)
    speed = SPEED_BY_HOUR[hour] * random.lognormal(0, 0.25, BLOCK)[:number]
    duration = np.maximum(60, distance / speed * HOUR)
    fare = _fare(distance, duration)
    by_card = random.random(BLOCK)[:number] < 0.55
    share = random.choice([0.0, 0.1, 0.2, 0.25, 0.3], size=BLOCK, p=[0.05, 0.10, 0.55, 0.20, 0.10])[:number]
    pickup = FIRST_INSTANT + seconds
    return Rides(
        first=first,
        pickup=pickup,
        dropoff=pickup + duration.astype(np.int64),
        taxi=fleet.take(hour),
        pickup_area=pickup_rank,
        # An odd multiplier coprime to 263: another order of popularity.
        dropoff_area=dropoff_rank * 37 % AREAS,
        distance=distance,
        fare=fare,
        tip=np.where(by_card, (fare * share).round(2), 0.0),
        by_card=by_card,
    )


def _fare(distance: npt.NDArray[np.float64], duration: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The meter charges by distance above 12 miles an hour, by time below."""
    slow = np.maximum(0.0, duration - distance / 12 * HOUR) / 60
    return np.ceil((2.5 + 2.5 * distance + 0.5 * slow) * 2) / 2


class _Fleet:
    """Queues of waiting taxis: day shift, night shift, all day."""

    def __init__(self, taxis: int) -> None:
        if taxis < 20:
            raise UsageError(f"a fleet of {taxis} taxis is too small for shifts; ask for 20 or more")
        always = taxis // 10
        half = (taxis - always) // 2
        numbers = np.arange(taxis)
        self._queues = (
            np.concatenate((numbers[:half], numbers[2 * half :])),
            numbers[half:],
        )
        self._served = [0, 0]

    def take(self, hour: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """A taxi for each ride, given the hour of the day at which it starts."""
        taxi = np.empty(len(hour), np.int64)
        by_night = (hour < 5) | (hour >= 17)
        for shift, rides in enumerate((~by_night, by_night)):
            queue = self._queues[shift]
            number = self._served[shift] + np.arange(np.count_nonzero(rides))
            taxi[rides] = queue[number % len(queue)]
            self._served[shift] += len(number)
        return taxi


def _ride_rows(rides: Rides) -> pa.RecordBatch:
    ride = iris(BASE + "ride/", pa.array(rides.first + np.arange(len(rides.pickup))))
    objects = (
        ("medallion", iris(BASE + "taxi/", pa.array(rides.taxi))),
        ("pickupArea", iris(BASE + "area/", pa.array(rides.pickup_area))),
        ("dropoffArea", iris(BASE + "area/", pa.array(rides.dropoff_area))),
        ("pickupTime", date_times(rides.pickup * SECOND)),
        ("dropoffTime", date_times(rides.dropoff * SECOND)),
        ("distance", decimals(rides.distance, 2)),
        ("fare", decimals(rides.fare, 2)),
        ("tip", decimals(rides.tip, 2)),
        ("paidByCard", typed(pa.array(rides.by_card), "boolean")),
    )
    statements = [Statement(ride, f"<{TERMS}{name}>", values) for name, values in objects]
    return rows(rides.pickup * SECOND, ride, statements)
