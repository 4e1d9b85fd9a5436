"""Events of five domains for event patterns: card payments, sensors in rooms, a stock market, a hospital ward, vehicles.

A seeded generator, day by day, so that a shorter stream is the beginning of a longer one. Kinds, keys and values are drawn
independently; each domain has rare kinds, which its pattern is about:

* payments: 100 cards, amounts log-normal with a median of 30; one in 50 is below 2, one in 100 above 500;
* rooms: 300 rooms report smoke, heat and doors that open;
* trades: symbols that are bought and sold, prices log-normal around 100;
* ward: 40 patients, potassium values around 4.2, orders of an electrocardiogram, infusions;
* road: 400 vehicles pass sensors, and sometimes stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cqels_py.errors import UsageError

from .tables import SCHEMA, Statement, decimals, iris, rows, strings

BASE = "http://cqels.example/patterns/"
TERMS = BASE + "terms#"
SECOND = 1_000_000
DAY = 24 * 3_600
FIRST_INSTANT = 1_704_067_200
"""2024-01-01T00:00Z, in seconds."""
EVENTS_PER_DAY = 4_000

Columns = list[tuple[str, pa.Array]]


def streams(
    days: int | None = None, *, per_day: int = EVENTS_PER_DAY, seed: int = 1
) -> dict[str, pa.RecordBatchReader]:
    """A stream for each domain, for a number of days or unbounded."""
    if days is not None and days < 1:
        raise UsageError(f"{days} days make no stream; ask for 1 or more")
    domains: dict[str, Callable[[np.random.Generator, int], Columns]] = {
        "payments": _payments, "rooms": _rooms, "trades": _trades, "ward": _ward, "road": _road,
    }  # fmt: skip
    return {
        BASE + name: pa.RecordBatchReader.from_batches(SCHEMA, _days(name, number, columns, days, per_day, seed))
        for number, (name, columns) in enumerate(domains.items())
    }


def static() -> bytes:
    """There is none."""
    return b""


def _days(
    name: str,
    domain: int,
    columns: Callable[[np.random.Generator, int], Columns],
    days: int | None,
    per_day: int,
    seed: int,
) -> Iterator[pa.RecordBatch]:
    day = 0
    while days is None or day < days:
        random = np.random.default_rng((seed, domain, day))
        seconds = np.sort(random.integers(0, DAY, per_day)) + FIRST_INSTANT + day * DAY
        event = iris(f"{BASE}{name}/", pa.array(np.arange(per_day) + day * per_day))
        statements = [Statement(event, f"<{TERMS}{term}>", values) for term, values in columns(random, per_day)]
        yield rows(seconds * SECOND, event, statements)
        day += 1


def _things(random: np.random.Generator, kind: str, many: int, count: int) -> pa.Array:
    return iris(f"{BASE}{kind}/", pa.array(random.integers(0, many, count)))


def _kinds(random: np.random.Generator, shares: dict[str, float], count: int) -> npt.NDArray[np.str_]:
    return random.choice(np.array(list(shares)), count, p=np.array(list(shares.values())))


def _only(mask: npt.NDArray[np.bool_], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(mask, values, np.nan)


def _payments(random: np.random.Generator, count: int) -> Columns:
    amount = np.clip(random.lognormal(np.log(30), 0.8, count), 2, 450)
    rare = random.random(count)
    amount = np.where(
        rare < 0.02, random.uniform(0.5, 1.99, count), np.where(rare > 0.99, random.uniform(500, 3_000, count), amount)
    )
    return [("card", _things(random, "card", 100, count)), ("amount", decimals(amount, 2))]


def _rooms(random: np.random.Generator, count: int) -> Columns:
    kind = _kinds(random, {"smoke": 0.3, "heat": 0.3, "door": 0.4}, count)
    return [("room", _things(random, "room", 300, count)), ("reports", strings(pa.array(kind)))]


def _trades(random: np.random.Generator, count: int) -> Columns:
    side = _kinds(random, {"buy": 0.5, "sell": 0.5}, count)
    symbol = _kinds(random, {"INTC": 0.05, "RIMM": 0.05, "AMZN": 0.05, "MSFT": 0.4, "ORCL": 0.45}, count)
    price = random.lognormal(np.log(100), 0.1, count)
    return [("side", strings(pa.array(side))), ("symbol", strings(pa.array(symbol))), ("price", decimals(price, 2))]


def _ward(random: np.random.Generator, count: int) -> Columns:
    kind = _kinds(random, {"potassium": 0.7, "electrocardiogram": 0.2, "infusion": 0.1}, count)
    value = _only(kind == "potassium", random.normal(4.2, 0.5, count))
    return [
        ("patient", _things(random, "patient", 40, count)),
        ("does", strings(pa.array(kind))),
        ("value", decimals(value, 1)),
    ]


def _road(random: np.random.Generator, count: int) -> Columns:
    kind = _kinds(random, {"passes": 0.9, "stops": 0.1}, count)
    sensor = pa.array(random.integers(0, 30, count), mask=kind == "stops")
    return [
        ("vehicle", _things(random, "vehicle", 400, count)),
        ("does", strings(pa.array(kind))),
        ("sensor", iris(f"{BASE}sensor/", sensor)),
    ]
