"""Where the stations stand: two regions with towns, and the weather stations near them.

Region 0 is Florida, where the hurricanes come; region 1 is Wyoming, high and cold, where the blizzards come. Towns and
stations are invented. The first station of each region stands at a fixed place, which queries can name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.errors import UsageError

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

STATES = ("Florida", "Wyoming")
CODES = ("F", "W")
SOUTH, NORTH = np.array([25.3, 41.2]), np.array([30.3, 44.8])
WEST, EAST = np.array([-82.4, -110.6]), np.array([-80.4, -104.4])

REFERENCE_LATITUDE = (26.5, 43.0)
REFERENCE_LONGITUDE = (-81.25, -107.5)
REFERENCE_ALTITUDE = (20.0, 5400.0)
"""The first station in each region, by region."""

STATIONS_A_TOWN = 4
IN_FLORIDA = 3
"""Of five stations; the others are in Wyoming."""


@dataclass(frozen=True, slots=True)
class World:
    """Stations and towns, in columns; a town belongs to a region, a station to a town.

    `near`: the kind of place a station is near: 0 the town, 1 a section of the town, 2 its shore.
    """

    seed: int
    region: Codes
    town: Codes
    near: Codes
    latitude: Numbers
    longitude: Numbers
    altitude: Numbers
    town_region: Codes
    town_latitude: Numbers
    town_longitude: Numbers

    @property
    def stations(self) -> int:
        return len(self.region)

    @property
    def towns(self) -> int:
        return len(self.town_region)

    @property
    def has_shore(self) -> Flags:
        """Every second town of Florida."""
        there: Flags = (self.town_region == 0) & (np.arange(self.towns) // 2 % 2 == 0)
        return there

    @property
    def has_section(self) -> Flags:
        """Every third town."""
        there: Flags = np.arange(self.towns) % 3 == 0
        return there


def world(stations: int, seed: int) -> World:
    """Stations are assigned to towns in turn, so that each has neighbours."""
    if stations < 2:
        raise UsageError(f"{stations} stations make no weather map; ask for 2 or more")
    random = np.random.default_rng((seed, 1))
    number = np.arange(stations)
    region = (number % 5 >= IN_FLORIDA).astype(np.int64)
    if stations <= IN_FLORIDA:
        region[-1] = 1
    towns = 2 * max(1, -(-stations // (2 * STATIONS_A_TOWN)))
    town_region = np.arange(towns) % 2
    across = random.random((2, towns))
    town_latitude = SOUTH[town_region] + across[0] * (NORTH - SOUTH)[town_region]
    town_longitude = WEST[town_region] + across[1] * (EAST - WEST)[town_region]
    town_latitude[:2], town_longitude[:2] = REFERENCE_LATITUDE, REFERENCE_LONGITUDE
    # The stations of a region are assigned to its towns in turn.
    place = np.where(region == 0, np.cumsum(region == 0), np.cumsum(region == 1)) - 1
    town = place % (towns // 2) * 2 + region
    aside = random.normal(scale=0.04, size=(2, stations))
    latitude = (town_latitude[town] + aside[0]).round(4)
    longitude = (town_longitude[town] + aside[1]).round(4)
    altitude = np.where(region == 0, random.uniform(3, 90, stations), random.uniform(4000, 8000, stations)).round()
    for each in (0, 1):
        first = int(np.argmax(region == each))
        latitude[first], longitude[first] = REFERENCE_LATITUDE[each], REFERENCE_LONGITUDE[each]
        altitude[first] = REFERENCE_ALTITUDE[each]
    made = World(
        seed, region, town, np.zeros(stations, np.int64), latitude, longitude, altitude,
        town_region, town_latitude, town_longitude,
    )  # fmt: skip
    turn = place // (towns // 2) % 3
    made.near[(turn == 1) & made.has_section[town]] = 1
    made.near[(turn != 1) & (number % 2 == 0) & made.has_shore[town]] = 2
    return made
