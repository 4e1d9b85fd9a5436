"""Facts of four domains for temporal rules: a sensor network, vehicles, a hospital, payments.

A seeded generator, day by day, so that a shorter stream is the beginning of a longer one:

* network: signals are heard by one of the nodes of twelve sites, with readings about a second apart that sometimes pause;
* road: 20 vehicles report their speed each second of their trips, and sometimes stop for a short time;
* ward: the temperature of 24 patients every ten minutes, their pulse every half hour; some have a fever for hours;
* payments: 600 a day among 200 accounts; three a day are listed as fraudulent.

Static: which nodes are connected, within their sites; the sites of nodes, the wards of patients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cqels_py.errors import UsageError

from .tables import SCHEMA, Statement, decimals, iris, ntriples, rows, typed

BASE = "http://cqels.example/rules/"
TERMS = BASE + "terms#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SECOND = 1_000_000
DAY = 24 * 3_600
FIRST_INSTANT = 1_704_067_200
"""2024-01-01T00:00Z, in seconds."""

SITES = 12
NODES_PER_SITE = 2 + np.arange(SITES) % 5
SITE_OF_NODE = np.repeat(np.arange(SITES), NODES_PER_SITE)
PATIENTS, WARDS = 24, 4
ACCOUNTS = 200

Int64 = npt.NDArray[np.int64]
Facts = tuple[Int64, list[Statement]]
"""Milliseconds since the day's beginning, and the statements of the elements, in their order."""


def streams(days: int | None = None, *, seed: int = 1) -> dict[str, pa.RecordBatchReader]:
    """A stream for each domain, for a number of days or unbounded."""
    if days is not None and days < 1:
        raise UsageError(f"{days} days make no stream; ask for 1 or more")
    domains: dict[str, Callable[[np.random.Generator], Facts]] = {
        "network": _network, "road": _road, "ward": _ward, "payments": _payments,
    }  # fmt: skip
    return {
        BASE + name: pa.RecordBatchReader.from_batches(SCHEMA, _days(name, number, facts, days, seed))
        for number, (name, facts) in enumerate(domains.items())
    }


def static() -> bytes:
    """Connections, sites and wards as N-Triples. The nodes of a site are connected in a line."""
    node = np.arange(len(SITE_OF_NODE))
    left = np.flatnonzero(np.diff(SITE_OF_NODE) == 0)
    patient = np.arange(PATIENTS)
    return ntriples(
        [
            Statement(_named("node", left), f"<{TERMS}connected>", _named("node", left + 1)),
            Statement(_named("node", left + 1), f"<{TERMS}connected>", _named("node", left)),
            Statement(_named("node", node), f"<{TERMS}site>", _named("site", SITE_OF_NODE)),
            Statement(_named("patient", patient), f"<{TERMS}ward>", _named("ward", patient % WARDS)),
        ]
    )


def _days(
    name: str, domain: int, facts: Callable[[np.random.Generator], Facts], days: int | None, seed: int
) -> Iterator[pa.RecordBatch]:
    day, count = 0, 0
    while days is None or day < days:
        time, statements = facts(np.random.default_rng((seed, domain, day)))
        event = iris(f"{BASE}{name}/", pa.array(np.arange(len(time)) + count))
        yield rows((FIRST_INSTANT + day * DAY) * SECOND + time * 1_000, event, statements)
        day, count = day + 1, count + len(time)


def _named(kind: str, number: Int64, mask: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    return iris(f"{BASE}{kind}/", pa.array(number, mask=mask))


def _network(random: np.random.Generator) -> Facts:
    bursts = 40
    length = random.integers(3, 20, bursts)
    burst = np.repeat(np.arange(bursts), length)
    gap = random.integers(400, 1_600, len(burst)) * np.where(random.random(len(burst)) < 0.05, 3, 1)
    start = np.sort(random.integers(0, (DAY - 60) * 1_000, bursts))
    within = np.cumsum(gap) - np.repeat(np.cumsum(gap)[np.cumsum(length) - length], length)
    time = start[burst] + within
    order = np.argsort(time, kind="stable")
    signal = random.integers(0, 4, bursts)[burst][order]
    node = random.integers(0, len(SITE_OF_NODE), bursts)[burst][order]
    kind = pa.array([f"<{TERMS}Signal>"] * len(time))
    return time[order], [
        Statement(_named("signal", signal), RDF_TYPE, kind),
        Statement(_named("node", node), f"<{TERMS}monitors>", _named("signal", signal)),
    ]


def _road(random: np.random.Generator) -> Facts:
    vehicles, seconds = 20, 100
    speed = np.clip(random.normal(12, 3, (vehicles, seconds)), 1, None)
    for vehicle in range(vehicles):
        for stop in random.integers(5, seconds, random.integers(0, 4)):
            speed[vehicle, stop : stop + random.integers(1, 12)] = 0
    start = random.integers(6 * 3_600, 22 * 3_600, vehicles)
    time = ((start[:, None] + np.arange(seconds)) * 1_000).ravel()
    number = np.repeat(np.arange(vehicles), seconds)
    order = np.argsort(time, kind="stable")
    return time[order], [
        Statement(_named("vehicle", number[order]), f"<{TERMS}speed>", decimals(speed.ravel()[order], 1))
    ]


def _ward(random: np.random.Generator) -> Facts:
    readings = DAY // 600
    temperature = random.normal(36.9, 0.3, (PATIENTS, readings))
    for patient in random.choice(PATIENTS, 5, replace=False):
        first, length = random.integers(0, readings), random.integers(3, 30)
        temperature[patient, first : first + length] += 2
    pulse = np.rint(random.normal(75, 10, (PATIENTS, readings)) + 20 * (temperature > 38))
    patient = np.repeat(np.arange(PATIENTS), readings)
    minute = np.tile(np.arange(readings), PATIENTS) * 10
    time = (minute * 60 + patient * 2) * 1_000
    order = np.argsort(time, kind="stable")
    pulses = pulse.ravel()[order].astype(np.int64)
    return time[order], [
        Statement(_named("patient", patient[order]), f"<{TERMS}temperature>", decimals(temperature.ravel()[order], 1)),
        Statement(
            _named("patient", patient[order]),
            f"<{TERMS}pulse>",
            typed(pa.array(pulses, mask=minute[order] % 30 > 0), "integer"),
        ),
    ]


def _payments(random: np.random.Generator) -> Facts:
    count, listed = 600, 3
    time = np.sort(random.integers(0, DAY * 1_000, count))
    payer, payee = random.integers(0, ACCOUNTS, (2, count))
    is_listed = np.zeros(count, np.bool_)
    is_listed[random.choice(count, listed, replace=False)] = True
    kind = pa.array([f"<{TERMS}Listed>" if each else None for each in is_listed.tolist()])
    return time, [
        Statement(_named("account", payer), RDF_TYPE, kind),
        Statement(_named("account", payer), f"<{TERMS}pays>", _named("account", payee, is_listed)),
    ]
