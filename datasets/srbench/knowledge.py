"""Static data: the stations, GeoNames' and DBpedia's graphs around them, and the classes of observations.

Only the schema's IRIs are GeoNames' and DBpedia's; places, sites and hurricanes are invented.

* Stations (LinkedSensorData): position, the properties they measure, and the place they are near: a town, a section of
  it, or its shore.
* GeoNames: towns with populations and names (some only an official one), sections of towns, shores, counties, states and the
  country, linked upwards by gn:parentFeature; airports, in towns or their sections.
* DBpedia: each town and state again, linked by owl:sameAs in either direction; heritage sites in towns; and hurricanes of the
  past with their classes by strength, winds in miles an hour, damages in dollars, and the areas they hit.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..tables import Statement, decimals, iris, ntriples, strings, typed
from .observations import KINDS, measures, station_names, systems
from .vocabulary import BASE, DBPEDIA, DBPEDIA_PROPERTY, GEO, GEONAMES, OM, OWL, RDF_TYPE, RDFS, WEATHER, YAGO, om
from .world import CODES, STATES, World

COUNTIES = 4
"""The number in each state."""
HURRICANES = 24
CATEGORY_WINDS = (74, 96, 111, 130, 157)
"""Lower bounds of the categories, in miles an hour."""

_SUBCLASS = f"<{RDFS}subClassOf>"
_PARENT = f"<{GEONAMES}parentFeature>"
_FIRST = re.findall("...", "BelCorDunElmFalGarHolKinLarMarNorOakPelQuaRosSalTarVerWesYar")
_SECOND = re.findall("....", "burydalefordgatehillholtkeyslandmereportsidetownviewwellwickwood")


def static(world: World) -> bytes:
    """The static data as N-Triples."""
    return ntriples([*_classes(), *_stations(world), *_geonames(world), *_dbpedia(world)])


def _classes() -> list[Statement]:
    kinds = sorted({kind.type for kind in KINDS} - {"RainfallObservation", "SnowfallObservation"})
    precipitation = ["RainfallObservation", "SnowfallObservation"]
    return [
        Statement(iris(WEATHER, pa.array(kinds)), _SUBCLASS, _all(f"<{WEATHER}WeatherObservation>", len(kinds))),
        Statement(
            iris(WEATHER, pa.array([*precipitation, "PrecipitationObservation"])),
            _SUBCLASS,
            iris(WEATHER, pa.array(["PrecipitationObservation", "PrecipitationObservation", "WeatherObservation"])),
        ),
        Statement(
            iris(YAGO, pa.array([f"Category{category}AtlanticHurricanes" for category in range(1, 6)])),
            _SUBCLASS,
            _all(f"<{YAGO}AtlanticHurricanes>", 5),
        ),
        Statement(
            iris(YAGO, pa.array(["AtlanticHurricanes", "Hurricane111467018"])),
            _SUBCLASS,
            iris(YAGO, pa.array(["Hurricane111467018", "Cyclone111481554"])),
        ),
        Statement(
            iris(BASE, pa.array(["OldTown", "NatureReserve"])), _SUBCLASS, _all(f"<{DBPEDIA}WorldHeritageSite>", 2)
        ),
    ]


# --- LinkedSensorData ---------------------------------------------------------------------------------------------


def _stations(world: World) -> list[Statement]:
    system, name = systems(world), station_names(world)
    point, relation = iris(BASE + "point_", name), iris(BASE + "LocatedNearRel", name)
    near = np.array(_near(world), dtype=object)
    town = world.town
    away = np.hypot(world.latitude - world.town_latitude[town], world.longitude - world.town_longitude[town]) * 60
    kind, measured_by = np.nonzero(measures(world))
    parameter = pa.array([f"<{WEATHER}_{each.property}>" for each in KINDS]).take(pa.array(kind))
    size = world.stations
    return [
        Statement(system, RDF_TYPE, _all(f"<{OM}System>", size)),
        Statement(system, om("ID"), strings(name)),
        Statement(system.take(pa.array(measured_by)), om("parameter"), parameter),
        Statement(system, om("processLocation"), point),
        Statement(point, RDF_TYPE, _all(f"<{GEO}Point>", size)),
        Statement(point, f"<{GEO}lat>", decimals(world.latitude, 4, "float")),
        Statement(point, f"<{GEO}long>", decimals(world.longitude, 4, "float")),
        Statement(point, f"<{GEO}alt>", decimals(world.altitude, 0, "float")),
        Statement(system, om("hasLocatedNearRel"), relation),
        Statement(relation, RDF_TYPE, _all(f"<{OM}LocatedNearRel>", size)),
        Statement(relation, om("distance"), decimals(away, 2, "double")),
        Statement(relation, om("hasLocation"), pa.array(near.tolist())),
        Statement(relation, om("uom"), _all(f"<{WEATHER}miles>", size)),
    ]


def _near(world: World) -> list[str]:
    kinds = ("town", "section", "shore")
    return [f"<{BASE}place/{kinds[near]}{town}>" for near, town in zip(world.near, world.town, strict=True)]


# --- GeoNames -----------------------------------------------------------------------------------------------------


def _geonames(world: World) -> list[Statement]:
    """Places by kind, from the country downwards."""
    number = np.arange(world.towns)
    county = world.town_region * COUNTIES + number // 2 % COUNTIES
    used = np.unique(county)
    names = _names(world.seed, world.towns + 2 * COUNTIES)
    towns = _places("town", number)
    statements = [
        *_features(_places("country", np.zeros(1, np.int64)), ["United States"], "A", "PCLI", None),
        *_features(
            _places("state", np.arange(2)),
            list(STATES),
            "A",
            "ADM1",
            _places("country", np.zeros(2, np.int64)),
        ),
        *_features(
            _places("county", used),
            [f"{names[world.towns + each]} County" for each in used],
            "A",
            "ADM2",
            _places("state", used // COUNTIES),
        ),
        *_features(towns, _named(names, number % 5 != 3), "P", "PPL", _places("county", county)),
        Statement(towns, f"<{GEONAMES}officialName>", strings(pa.array(_named(names, number % 5 > 2), pa.string()))),
        Statement(towns, f"<{GEONAMES}population>", typed(pa.array(_populations(world)), "integer")),
        Statement(towns, f"<{GEO}lat>", decimals(world.town_latitude, 4)),
        Statement(towns, f"<{GEO}long>", decimals(world.town_longitude, 4)),
    ]
    sections, shores = np.flatnonzero(world.has_section), np.flatnonzero(world.has_shore)
    statements += _features(
        _places("section", sections), [f"Old {names[i]}" for i in sections], "P", "PPLX", _places("town", sections)
    )
    statements += _features(
        _places("shore", shores), [f"{names[i]} Shore" for i in shores], "T", "SHOR", _places("county", county[shores])
    )
    airports = np.flatnonzero(number % 4 < 2)
    inside = pa.array(
        [f"<{BASE}place/{'section' if world.has_section[i] else 'town'}{i}>" for i in airports], pa.string()
    )
    return statements + _features(
        _places("airport", airports), [f"{names[i]} Airport" for i in airports], "S", "AIRP", inside
    )


def _features(
    place: pa.Array, names: list[str | None], feature_class: str, code: str, parent: pa.Array | None
) -> list[Statement]:
    size = len(place)
    statements = [
        Statement(place, RDF_TYPE, _all(f"<{GEONAMES}Feature>", size)),
        Statement(place, f"<{GEONAMES}name>", strings(pa.array(names, pa.string()))),
        Statement(place, f"<{GEONAMES}featureClass>", _all(f"<{GEONAMES}{feature_class}>", size)),
        Statement(place, f"<{GEONAMES}featureCode>", _all(f"<{GEONAMES}{feature_class}.{code}>", size)),
        Statement(place, f"<{GEONAMES}countryCode>", _all('"US"', size)),
    ]
    return statements if parent is None else [*statements, Statement(place, _PARENT, parent)]


def _places(kind: str, numbers: npt.NDArray[np.int64]) -> pa.Array:
    return iris(f"{BASE}place/{kind}", pa.array(numbers))


def _named(names: list[str], where: npt.NDArray[np.bool_]) -> list[str | None]:
    return [name if has else None for name, has in zip(names, where, strict=False)]


def _populations(world: World) -> npt.NDArray[np.int64]:
    drawn = np.random.default_rng((world.seed, 9)).lognormal(np.log(40_000), 1.2, world.towns)
    # The first town of each region is always a large city.
    return np.where(np.arange(world.towns) < 2, np.maximum(drawn, 250_000), drawn).astype(np.int64)


def _names(seed: int, number: int) -> list[str]:
    """Names of places, all different."""
    both = [first + second for first in _FIRST for second in _SECOND]
    order = np.random.default_rng((seed, 10)).permutation(len(both))
    rounds = [f" {1 + number // len(both)}" if number >= len(both) else "" for number in range(number)]
    return [both[order[i % len(both)]] + rounds[i] for i in range(number)]


# --- DBpedia ------------------------------------------------------------------------------------------------------


def _dbpedia(world: World) -> list[Statement]:
    number = np.arange(world.towns)
    here, there = _places("town", number), _resources("town", number)
    even = pa.array(number % 2 == 0)
    state_here, state_there = _places("state", np.arange(2)), iris(BASE + "resource/", pa.array(CODES))
    return [
        Statement(here.filter(even), f"<{OWL}sameAs>", there.filter(even)),
        Statement(_not(there, even), f"<{OWL}sameAs>", _not(here, even)),
        Statement(state_there, f"<{OWL}sameAs>", state_here),
        Statement(there, RDF_TYPE, _all(f"<{DBPEDIA}City>", world.towns)),
        *_heritage(world),
        *_hurricanes(world),
    ]


def _heritage(world: World) -> list[Statement]:
    """In two of three towns, and in the first of each region."""
    towns = np.flatnonzero((np.arange(world.towns) % 3 > 0) | (np.arange(world.towns) < 2))
    names = _names(world.seed, world.towns)
    site = _resources("site", towns)
    kinds = np.array([f"{BASE}OldTown", f"{DBPEDIA}WorldHeritageSite", f"{BASE}NatureReserve"])[towns % 3]
    return [
        Statement(site, RDF_TYPE, iris("", pa.array(kinds))),
        Statement(site, f"<{RDFS}label>", strings(pa.array([f"Old {names[town]}" for town in towns]))),
        Statement(site, f"<{DBPEDIA}location>", _resources("town", towns)),
    ]


def _hurricanes(world: World) -> list[Statement]:
    """Past hurricanes; each hit a few towns of Florida, and the state."""
    random = np.random.default_rng((world.seed, 11))
    number = np.arange(HURRICANES)
    winds = random.integers(75, 175, HURRICANES)
    winds[0] = 78
    damages = (winds**3 * random.lognormal(0, 0.6, HURRICANES) * 300).astype(np.int64) * 10
    category = np.searchsorted(CATEGORY_WINDS, winds, side="right")
    hurricane = _resources("hurricane", number)
    kinds = pa.array([f"Category{each}AtlanticHurricanes" for each in category])
    towns = np.flatnonzero(world.town_region == 0)
    hit = random.integers(0, len(towns), (HURRICANES, 5))
    hit[: len(towns) + 1, 0] = np.arange(min(HURRICANES, len(towns) + 1)) % len(towns)
    which, _ = np.nonzero(np.ones_like(hit, np.bool_))
    areas = np.unique(np.stack((which, towns[hit.ravel()])), axis=1)
    return [
        Statement(hurricane, RDF_TYPE, iris(YAGO, kinds)),
        Statement(hurricane, f"<{RDFS}label>", strings(pa.array([f"Hurricane {chr(65 + n)}" for n in number]))),
        Statement(hurricane, f"<{DBPEDIA_PROPERTY}1MinWinds>", typed(pa.array(winds), "integer")),
        Statement(hurricane, f"<{DBPEDIA_PROPERTY}damages>", typed(pa.array(damages), "integer")),
        Statement(hurricane.take(pa.array(areas[0])), f"<{DBPEDIA_PROPERTY}areas>", _resources("town", areas[1])),
        Statement(hurricane, f"<{DBPEDIA_PROPERTY}areas>", _all(f"<{BASE}resource/{CODES[0]}>", HURRICANES)),
    ]


def _resources(kind: str, numbers: npt.NDArray[np.int64]) -> pa.Array:
    return iris(f"{BASE}resource/{kind}", pa.array(numbers))


def _all(term: str, length: int) -> pa.Array:
    return pa.repeat(pa.scalar(term), length)


def _not(terms: pa.Array, chosen: pa.Array) -> pa.Array:
    return terms.filter(pa.compute.invert(chosen))
