"""Weather over a world: smooth in space and time, with storms that pass over the stations.

A hurricane is a vortex (a wind profile like Holland's, inflow, pressure falling towards the eye, rain around it) that
crosses Florida in a day. A blizzard is a wide field of cold wind and snow that crosses Wyoming. They follow one another
far more often than in reality, so that there is one of each nearly all the time. They are superimposed on the course of
a day, slow waves over the map, and noise.

Time is in hours of the weather since the stream began. Everything except the noise of single readings is a function of
time and place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .world import World

Field = npt.NDArray[np.float64]
"""One value for each instant (rows) and station (columns)."""

MILES_A_DEGREE = 69.0

HURRICANE_EVERY, HURRICANE_HOURS, FIRST_HURRICANE = 28.0, 26.0, -1.0
BLIZZARD_EVERY, BLIZZARD_HOURS, FIRST_BLIZZARD = 34.0, 30.0, -3.0
CORE_MILES = 20.0
PROFILE = 1.5
RAIN_MILES, RAIN_RATE = 85.0, 5.0
SNOW_MILES, SNOW_RATE = 100.0, 4.0
BLIZZARD_WIND = 62.0
CLEAR_SIGHT = 1_600_000.0
"""Centimetres: ten miles, the range of the instruments."""

TEMPERATURE, SWING = np.array([80.0, 33.0]), np.array([6.0, 9.0])
HUMIDITY = np.array([72.0, 55.0])


@dataclass(frozen=True, slots=True)
class Weather:
    """°F, %, miles an hour (twice), degrees, hectopascal, cm an hour (twice), cm."""

    temperature: Field
    humidity: Field
    wind: Field
    gust: Field
    direction: Field
    pressure: Field
    rain: Field
    snow: Field
    visibility: Field


def weather(world: World, hours: npt.NDArray[np.float64], noise: npt.NDArray[np.float64]) -> Weather:
    """The weather at some instants. `noise`: three standard normal numbers for each instant and station, first axis."""
    time = hours[:, None]
    eastward, northward = _breeze(world, time)
    temperature = _usual_temperature(world, time)
    humidity = HUMIDITY[world.region] - (temperature - TEMPERATURE[world.region]) + 8 * _wave(world, time, 4)
    pressure = 1014 + 5 * _wave(world, time, 5)
    rain = np.clip(_wave(world, time, 6) + 0.4 * _wave(world, 3 * time, 7) - 0.9, 0, 1)
    snow = np.zeros_like(rain)
    for number in _alive(hours, FIRST_HURRICANE, HURRICANE_EVERY, HURRICANE_HOURS):
        east, north, strength, distance = _hurricane(world, time, number)
        eastward, northward = eastward + east, northward + north
        pressure = pressure - 75 * strength * np.exp(-distance / 60)
        wet = strength * np.exp(-((distance / RAIN_MILES) ** 2)) * (1 + 0.15 * noise[2])
        rain = rain + RAIN_RATE * np.clip(wet, 0, None)
        temperature, humidity = temperature - 7 * wet, humidity + 25 * wet
    for number in _alive(hours, FIRST_BLIZZARD, BLIZZARD_EVERY, BLIZZARD_HOURS):
        cover = _blizzard(world, time, number)
        eastward, northward = eastward + 0.8 * BLIZZARD_WIND * cover, northward - 0.6 * BLIZZARD_WIND * cover
        temperature, humidity = temperature - 22 * cover, humidity + 40 * cover
        pressure = pressure - 18 * cover
        snow = snow + SNOW_RATE * np.clip(cover * (1 + 0.1 * noise[2]) - 0.08, 0, None)
    temperature = temperature + 0.4 * noise[0]
    rain = np.where((temperature < 34) | (rain < 0.05), 0.0, rain)
    snow = np.where((temperature < 35) & (snow > 0.05), snow, 0.0)
    humidity = np.clip(humidity, 8, 100)
    wind = np.hypot(eastward, northward) * (1 + 0.06 * noise[1])
    dimness = np.maximum(rain / RAIN_RATE, snow / SNOW_RATE)
    return Weather(
        temperature=temperature,
        humidity=humidity,
        wind=wind,
        gust=wind * (1.3 + 0.08 * np.abs(noise[2])),
        # Where it comes from, clockwise from north.
        direction=np.degrees(np.arctan2(-eastward, -northward)) % 360,
        pressure=pressure,
        rain=rain,
        snow=snow,
        visibility=CLEAR_SIGHT * np.exp(-17 * np.clip(dimness, 0, 1.1) - 0.03 * np.clip(humidity - 60, 0, None)),
    )


def dew_point(temperature: Field, humidity: Field) -> Field:
    """Magnus' formula, in °F."""
    celsius = (temperature - 32) / 1.8
    magnus = np.log(humidity / 100) + 17.62 * celsius / (243.12 + celsius)
    return 32 + 1.8 * 243.12 * magnus / (17.62 - magnus)


def _usual_temperature(world: World, time: Field) -> Field:
    # Coolest at five, warmest at 17:00: local time is about six hours behind.
    course = -np.cos((time - 6 - 5) * np.pi / 12)
    # Higher stations are colder, and so is the north.
    height = np.where(world.region == 1, (world.altitude - 5500) / 1000 * 3.5, world.altitude / 1000 * 3.5)
    usual = TEMPERATURE[world.region] - height - (world.latitude - np.where(world.region == 0, 28, 43)) * 0.8
    usual_there: Field = usual + SWING[world.region] * course + 3 * _wave(world, time, 1)
    return usual_there


def _breeze(world: World, time: Field) -> tuple[Field, Field]:
    return 7 * _wave(world, time, 2), 7 * _wave(world, time, 3)


def _wave(world: World, time: Field, purpose: int) -> Field:
    """Between -1 and 1: three slow waves over the map, different for each seed and purpose."""
    random = np.random.default_rng((world.seed, 2, purpose))
    total = np.zeros((len(time), world.stations))
    for hours in (37.0, 17.0, 7.0):
        across = random.uniform(-0.7, 0.7, 2)
        phase = random.uniform(0, 2 * np.pi)
        place = across[0] * world.latitude + across[1] * world.longitude
        total += np.sin(2 * np.pi * time / hours + place + phase) / 3
    return total


def _alive(hours: npt.NDArray[np.float64], first: float, every: float, long: float) -> range:
    """Numbers of the storms that are active at these instants."""
    lowest = int(np.ceil((hours.min() - long - first) / every))
    return range(max(0, lowest), max(0, int(np.floor((hours.max() - first) / every)) + 1))


def _hurricane(world: World, time: Field, number: int) -> tuple[Field, Field, Field, Field]:
    """Eastward and northward wind, strength (0 to 1), and miles from the eye."""
    random = np.random.default_rng((world.seed, 3, number))
    start_latitude, start_longitude = random.uniform(24.2, 25.4), random.uniform(-80.9, -80.1)
    end_latitude, end_longitude = random.uniform(29.6, 31.2), random.uniform(-83.0, -81.6)
    greatest = random.uniform(115, 150)
    age = np.clip((time - FIRST_HURRICANE - number * HURRICANE_EVERY) / HURRICANE_HOURS, 0, 1)
    strength = np.sqrt(np.sin(np.pi * age))
    north = (world.latitude - start_latitude - age * (end_latitude - start_latitude)) * MILES_A_DEGREE
    miles_a_degree = MILES_A_DEGREE * np.cos(np.radians(world.latitude))
    east = (world.longitude - start_longitude - age * (end_longitude - start_longitude)) * miles_a_degree
    distance = np.maximum(np.hypot(east, north), 1.0)
    ratio = (CORE_MILES / distance) ** PROFILE
    speed = greatest * strength * np.sqrt(ratio * np.exp(1 - ratio))
    # Counterclockwise around the eye, turned inwards by 20 degrees; no vortex reaches Wyoming.
    angle = np.arctan2(north, east) + np.radians(90 + 20)
    reach = np.where(world.region == 0, strength, 0.0)
    speed = np.where(world.region == 0, speed, 0.0)
    return speed * np.cos(angle), speed * np.sin(angle), reach, distance


def _blizzard(world: World, time: Field, number: int) -> Field:
    """How far a station is inside of the blizzard, 0 to 1."""
    random = np.random.default_rng((world.seed, 4, number))
    start_latitude, end_latitude = random.uniform(42.2, 43.8, 2)
    start_longitude, end_longitude = random.uniform(-111.5, -110), random.uniform(-105.5, -104)
    age = np.clip((time - FIRST_BLIZZARD - number * BLIZZARD_EVERY) / BLIZZARD_HOURS, 0, 1)
    north = (world.latitude - start_latitude - age * (end_latitude - start_latitude)) * MILES_A_DEGREE
    miles_a_degree = MILES_A_DEGREE * np.cos(np.radians(world.latitude))
    east = (world.longitude - start_longitude - age * (end_longitude - start_longitude)) * miles_a_degree
    cover = np.sqrt(np.sin(np.pi * age)) * np.exp(-(east**2 + north**2) / SNOW_MILES**2)
    over_wyoming: Field = np.where(world.region == 1, cover, 0.0)
    return over_wyoming
