"""SRBench's generated data, and the loader of the official dumps."""

from __future__ import annotations

import gzip
import os
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph
import pytest

from cqels_py.datasets import srbench
from cqels_py.datasets.__main__ import write
from cqels_py.datasets.srbench.observations import BLOCK, KINDS, _reports, _values
from cqels_py.datasets.srbench.vocabulary import BASE, DBPEDIA_PROPERTY, GEONAMES, OM, OWL
from cqels_py.datasets.srbench.world import World, world
from cqels_py.errors import DataError, UsageError

SHARED = Path(os.environ.get("CQELS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data")) / "srbench"
KIND = {kind.property: number for number, kind in enumerate(KINDS)}


def table(triples: int, **options: float) -> pa.Table:
    return srbench.streams(triples, **options)[srbench.OBSERVATIONS].read_all()  # type: ignore[arg-type]


# --- the stream ---------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_stream_and_another_seed_another() -> None:
    assert table(5_000).equals(table(5_000))
    assert not table(5_000, seed=2).equals(table(5_000))


@pytest.mark.parametrize("triples", [1, 2, 3, 11, 2_000, 30_000])
def test_a_shorter_stream_is_the_beginning_of_a_longer_one(triples: int) -> None:
    short, long = table(triples), table(50_000)
    assert triples <= short.num_rows < triples + 9
    assert short.equals(long.slice(0, short.num_rows))


def test_it_is_made_while_it_is_read() -> None:
    reader = srbench.streams(10**12)[srbench.OBSERVATIONS]
    first, second = islice(reader, 2)
    assert first.num_rows > 1_000
    assert second["time"][0].as_py() > first["time"][-1].as_py()


def test_an_element_is_an_instant_or_an_observation() -> None:
    made = table(30_000)
    time = made["time"].to_numpy()
    assert (np.diff(time) >= 0).all()
    runs = pc.run_end_encode(made["graph"].combine_chunks())
    assert len(runs.values) == len(pc.unique(runs.values))
    sizes = np.diff(np.concatenate(([0], runs.run_ends.to_numpy())))
    instants = pc.match_substring(runs.values, "/Instant_").to_numpy(zero_copy_only=False)
    assert (sizes[instants] == 2).all()
    # Some stations give no unit.
    assert set(sizes[~instants]) == {8, 9}
    assert (sizes == 8).sum() < len(sizes) / 50
    assert instants.sum() == len(np.unique(time))


def test_every_term_is_well_formed() -> None:
    made = table(5_000)
    lines = pc.binary_join_element_wise(made["subject"], made["predicate"], made["object"], made["graph"], ".\n", " ")
    text = "".join(lines.to_pylist()).encode()
    assert sum(1 for _ in pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_QUADS)) == made.num_rows


def test_an_observation_is_described_as_in_linked_observation_data() -> None:
    first = table(40).slice(2, 9).to_pylist()
    described = {row["predicate"].rsplit("#", 1)[-1].rstrip(">"): row for row in first}
    assert described["observedProperty"]["object"].endswith("weather.owl#_AirTemperature>")
    assert described["generatedObservation"]["subject"] == described["procedure"]["object"]
    assert described["generatedObservation"]["object"] == described["procedure"]["subject"]
    assert described["floatValue"]["subject"] == described["result"]["object"]
    assert described["floatValue"]["object"].endswith('"^^<http://www.w3.org/2001/XMLSchema#float>')
    assert described["uom"]["object"].endswith("weather.owl#fahrenheit>")


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(UsageError, match="0 triples"):
        srbench.streams(0)
    with pytest.raises(UsageError, match="1 stations"):
        srbench.streams(10, stations=1)
    with pytest.raises(UsageError, match="not every 7"):
        srbench.streams(10, minutes=7)


# --- the weather --------------------------------------------------------------------------------------------------


def two_days(there: World) -> npt.NDArray[np.float64]:
    """Values by kind, instant and station."""
    fallen = np.zeros(there.stations)
    blocks = []
    for first in range(0, 2 * 288, BLOCK):
        values, fallen = _values(there, np.arange(first, first + BLOCK), 1.0, fallen)
        blocks.append(values)
    return np.concatenate(blocks, axis=1)


def test_a_hurricane_is_all_of_its_signs_at_once() -> None:
    there = world(60, 1)
    values = two_days(there)[:, :, there.region == 0]
    wind, gust, pressure, sight = (values[KIND[name]] for name in ("WindSpeed", "WindGust", "Pressure", "Visibility"))
    assert wind.max() > 100
    assert np.median(wind) < 50
    blowing = wind > 74
    assert 0.05 < blowing.mean() < 0.6
    assert np.nanmin(gust / wind) > 1.2
    assert pressure[blowing].mean() < pressure[~blowing].mean() - 10
    assert np.median(sight[blowing]) < np.median(sight[~blowing]) / 10
    # It comes and goes, and is not everywhere at once.
    assert 0 < blowing.any(axis=1).mean() < 1
    assert 0 < blowing.mean(axis=1).max() < 1


def test_a_blizzard_is_cold_wind_with_snow() -> None:
    there = world(60, 1)
    values = two_days(there)
    snow, temperature, wind = (values[KIND[name]] for name in ("SnowInterval", "AirTemperature", "WindSpeed"))
    falling = ~np.isnan(snow)
    assert not falling[:, there.region == 0].any()
    here = falling[:, there.region == 1]
    assert 0.1 < here.mean() < 0.9
    cold, windy = temperature[:, there.region == 1], wind[:, there.region == 1]
    assert cold[here].mean() < cold[~here].mean() - 8
    assert windy[here].mean() > windy[~here].mean() + 15


def test_weather_is_alike_nearby_and_soon_after() -> None:
    there = world(60, 1)
    pressure = two_days(there)[KIND["Pressure"]]
    assert np.abs(np.diff(pressure, axis=0)).max() < 6
    town = pressure[:, there.town == 0]
    assert np.abs(town - town[:, :1]).max() < 10
    assert np.ptp(pressure, axis=1).max() > 30


def test_gauges_fill_until_midnight() -> None:
    rain = two_days(world(60, 1))[KIND["PrecipitationAccumulated"]]
    assert (np.diff(rain[:288], axis=0) >= 0).all()
    assert (np.diff(rain[288:], axis=0) >= 0).all()
    assert (rain[288] <= rain[287]).all()
    assert rain.max() > 30


def test_a_faster_pace_brings_the_same_weather_sooner() -> None:
    there = world(20, 1)
    slow, _ = _values(there, np.arange(48, 60), 1.0, np.zeros(20))
    fast, _ = _values(there, np.arange(12, 24), 4.0, np.zeros(20))
    assert np.allclose(slow[KIND["Pressure"]][0], fast[KIND["Pressure"]][0])


def test_stations_take_turns_and_fall_silent() -> None:
    there = world(100, 1)
    reports = np.concatenate([_reports(there, np.arange(start, start + 12), 20) for start in range(0, 288, 12)])
    in_an_hour = reports.reshape(24, 12, 100).sum(axis=1)
    assert set(np.unique(in_an_hour)) <= {0, 1, 2, 3}
    assert 0.01 < (in_an_hour == 0).mean() < 0.2
    assert reports.sum(axis=1).max() <= 26


# --- what is known ------------------------------------------------------------------------------------------------


def test_static_data_hangs_together() -> None:
    graph = pyoxigraph.Store()
    graph.load(srbench.static(), pyoxigraph.RdfFormat.N_TRIPLES)
    prefixes = (
        f"PREFIX om: <{OM}> PREFIX gn: <{GEONAMES}> PREFIX owl: <{OWL}> PREFIX dbp: <{DBPEDIA_PROPERTY}> "
        f"PREFIX : <{BASE}place/> "
    )

    def count(pattern: str) -> int:
        (row,) = graph.query(f"{prefixes} SELECT (COUNT(*) AS ?n) WHERE {{ {pattern} }}")  # type: ignore[misc]
        return int(row["n"].value)

    assert count("?s a om:System") == 100
    assert count("?s om:hasLocatedNearRel/om:hasLocation/gn:parentFeature* :country0") == 100
    assert count("?s om:hasLocatedNearRel/om:hasLocation/gn:featureCode gn:T.SHOR") > 5
    assert count("?s om:hasLocatedNearRel/om:hasLocation/gn:featureCode gn:P.PPLX") > 5
    towns = count("?t gn:featureCode gn:P.PPL")
    assert count("?t gn:featureCode gn:P.PPL; owl:sameAs|^owl:sameAs ?r") == towns
    assert 0 < count("?t gn:featureCode gn:P.PPL; owl:sameAs ?r") < towns
    assert 0 < count("?t gn:featureCode gn:P.PPL; gn:population ?p FILTER(?p > 50000)") < towns
    assert count("?h dbp:damages ?d; dbp:1MinWinds ?w FILTER(?w >= 75)") == 24


def test_static_data_is_that_of_the_stream() -> None:
    stations = pc.unique(table(60_000, seed=3)["subject"])
    named = {iri for iri in stations.to_pylist() if "/System_" in iri}
    assert len(named) > 90
    known = srbench.static(seed=3).decode()
    assert all(f"{iri} <{OM}processLocation>" in known for iri in named)
    assert known != srbench.static(seed=4).decode()


def test_files(tmp_path: Path) -> None:
    write("srbench", 2_000, "parquet", tmp_path)
    assert pa.parquet.read_table(tmp_path / "observations.parquet").equals(table(2_000))
    assert (tmp_path / "static.nt").read_bytes() == srbench.static()


# --- the official dumps -------------------------------------------------------------------------------------------

MEASURED = f"""
@prefix _3: <http://ex.org/> .
@prefix _4: <{OM}> .
@prefix time: <http://www.w3.org/2006/time#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
_3:Observation_b _4:procedure _3:System_S; _4:result _3:Data_b; _4:samplingTime _3:Instant_2004_8_9_3_25_00 .
_3:Observation_a _4:procedure _3:System_S; _4:result _3:Data_a; _4:samplingTime _3:then .
_3:Data_a _4:floatValue "1.5"^^xsd:float .
_3:then a time:Instant; time:inXSDDateTime "2004-08-09T02:00:00-00:00^^http://www.w3.org/2001/XMLSchema#dateTime" .
_3:System_S _4:ID "S" .
"""


def test_files_of_the_dumps_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "S_2004_8_9.n3").write_text(MEASURED, encoding="utf-8")
    (tmp_path / "README.txt").write_text("no data", encoding="utf-8")
    found = srbench.official(tmp_path)[srbench.OBSERVATIONS].read_all()
    short = [(row["time"], row["graph"], row["subject"], row["predicate"]) for row in found.to_pylist()]
    two, later = 1_092_016_800_000_000, 1_092_021_900_000_000
    sizes = [(time, graph) for time, graph, _, _ in dict.fromkeys(short)]
    assert list(dict.fromkeys(sizes)) == [
        (two, "<http://ex.org/then>"),
        (two, "<http://ex.org/Observation_a>"),
        (later, "<http://ex.org/Observation_b>"),
    ]
    assert [graph for _, graph in sizes].count("<http://ex.org/Observation_a>") == 5
    assert (two, "<http://ex.org/Observation_a>", "<http://ex.org/Data_a>", f"<{OM}floatValue>") in short
    assert (later, "<http://ex.org/Observation_b>", "<http://ex.org/System_S>", f"<{OM}generatedObservation>") in short


def test_an_observation_without_a_time_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "S.ttl").write_text(f"<http://ex.org/o> <{OM}procedure> <http://ex.org/s> .", encoding="utf-8")
    with pytest.raises(DataError, match=r"S\.ttl: <http://ex\.org/o> has no om-owl:samplingTime"):
        srbench.official(tmp_path)[srbench.OBSERVATIONS].read_all()


def test_invalid_turtle_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "S.ttl").write_text("no turtle", encoding="utf-8")
    with pytest.raises(DataError, match=r"S\.ttl"):
        srbench.official(tmp_path)[srbench.OBSERVATIONS].read_all()


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no files of observations"):
        srbench.official(tmp_path)


@pytest.mark.skipif(not SHARED.is_dir(), reason="no part of the official dumps is here (CQELS_SHARED_DATA)")
def test_a_part_of_the_official_dumps(tmp_path: Path) -> None:
    (dump,) = SHARED.glob("charley*.nt.gz")
    with gzip.open(dump, "rb") as file:
        lines = list(islice(file, 40_000))
    # A reader of whole files sees the last observation in half.
    whole = max(i for i, line in enumerate(lines) if b"#uom>" in line) + 1
    (tmp_path / "part.nt.gz").write_bytes(gzip.compress(b"".join(lines[:whole]), 1))
    found = srbench.official(tmp_path)[srbench.OBSERVATIONS].read_all()
    inverse = pc.equal(found["predicate"], f"<{OM}generatedObservation>")
    observations = pc.sum(inverse).as_py()
    assert observations > 4_000
    assert found.num_rows == whole + observations
    rest = found.filter(pc.invert(inverse))
    written = pc.binary_join_element_wise(rest["subject"], rest["predicate"], rest["object"], ".\n", " ")
    assert sorted(written.to_pylist()) == sorted(line.decode() for line in lines[:whole])
    assert (np.diff(found["time"].to_numpy()) >= 0).all()
    stamps = np.array(found["time"].to_numpy(), "datetime64[us]").astype("datetime64[s]").astype(str)
    named = [graph[-20:-1] for graph in found["graph"].to_pylist()]
    assert named == [stamp.replace("-", "_").replace("T", "_").replace(":", "_") for stamp in stamps.tolist()]
