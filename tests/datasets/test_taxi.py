"""Generated taxi rides."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from cqels_py.datasets import taxi
from cqels_py.errors import UsageError


def column(name: str, days: int = 2, seed: int = 1) -> npt.NDArray[np.float64]:
    blocks = taxi.generate(rides_per_day=20_000, taxis=1_000, seed=seed, days=days)
    return np.concatenate([getattr(block, name) for block in blocks])


def test_the_same_seed_gives_the_same_rides_and_another_seed_others() -> None:
    assert (column("fare") == column("fare")).all()
    assert not np.array_equal(column("fare")[:1000], column("fare", seed=2)[:1000])


def test_a_shorter_stream_is_the_beginning_of_a_longer_one() -> None:
    for name in ("pickup", "dropoff", "taxi", "fare", "tip", "dropoff_area"):
        short, long = column(name, days=1), column(name, days=2)
        assert 0 < len(short) < len(long)
        assert np.array_equal(short, long[: len(short)])


def test_rides_follow_the_clock() -> None:
    pickup = column("pickup", days=5)
    assert (np.diff(pickup) >= 0).all()
    assert len(pickup) == pytest.approx(100_000, rel=0.02)
    by_hour = np.bincount((pickup // 3_600 % 24).astype(int), minlength=24) / len(pickup) * 24
    assert by_hour == pytest.approx(taxi.RATE_BY_HOUR / taxi.RATE_BY_HOUR.mean(), abs=0.08)


def test_prices_are_those_of_a_city() -> None:
    fare, tip, distance = column("fare"), column("tip"), column("distance")
    assert 5 < np.median(fare) < 15
    assert fare.min() >= 2.5
    assert np.array_equal(fare * 2, np.round(fare * 2))
    assert np.corrcoef(fare, distance)[0, 1] > 0.8
    assert 0.4 < (tip == 0).mean() < 0.6
    assert (tip[~column("by_card").astype(bool)] == 0).all()


def test_some_areas_are_far_more_popular_than_others() -> None:
    rides = np.sort(np.bincount(column("pickup_area").astype(int), minlength=taxi.AREAS))[::-1]
    assert rides[0] > 20 * rides[100] > 0


def test_taxis_keep_their_shifts() -> None:
    hour = (column("pickup") // 3_600 % 24).astype(int)
    number = column("taxi").astype(int)
    by_day = set(number[(hour >= 5) & (hour < 17)])
    by_night = set(number[(hour < 5) | (hour >= 17)])
    assert len(by_day & by_night) == 100
    assert len(by_day | by_night) == 1_000


def test_a_ride_is_one_element_of_nine_triples() -> None:
    table = taxi.streams(days=1, rides_per_day=500)[taxi.RIDES].read_all()
    rides = len(table["graph"].unique())
    assert table.num_rows == 9 * rides
    run_ends = pa.compute.run_end_encode(table["graph"].combine_chunks())
    assert len(run_ends.values) == rides


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(UsageError, match="0 days"):
        taxi.streams(days=0)
    with pytest.raises(UsageError, match="fleet of 3"):
        next(taxi.generate(rides_per_day=10, taxis=3, seed=1))
