"""Joins of many patterns and joins with many results: their stages, and the results that are in memory at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import cqels_py as cqels
from cqels_py.batches.delta import BLOCK_ROWS, Delta
from cqels_py.batches.results import ResultBatch
from cqels_py.cli.main import main
from cqels_py.operators.r2r import leaf_join
from cqels_py.operators.r2r.leaf_join import LeafRows
from cqels_py.state.join_state import JoinState

EX = "http://ex.org/"
KINDS = ("Pressure", "Noise", "Light", "Flow")
MOST_MEMORY = 400 << 20


def quads_of(station: str, elements: int) -> str:
    """An element a second, with an observation of each of the station's four sensors."""
    lines = []
    for i in range(elements):
        graph = f"<{EX}{station}/{i}>"
        time = np.datetime64("2024-03-01T00:00:00") + i
        lines.append(
            f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{time}Z"'
            "^^<http://www.w3.org/2001/XMLSchema#dateTime> ."
        )
        for kind in KINDS:
            one = f"<{EX}{station}/{i}/{kind}>"
            lines.append(f"{one} <{EX}observes> <{EX}{station}/{kind}> {graph} .")
            lines.append(f'{one} <{EX}reads> "{i}"^^<http://www.w3.org/2001/XMLSchema#integer> {graph} .')
            lines.append(f"{one} <{EX}at> <{EX}{station}> {graph} .")
    return "\n".join(lines) + "\n"


FOUR_OBSERVATIONS = f"""
PREFIX : <{EX}>
REGISTER QUERY Four AS
SELECT ?v1 ?v2 ?v3 ?v4
FROM STREAM :north [RANGE 7s STEP 1s]
FROM STREAM :south [RANGE 7s STEP 1s]
WHERE {{
  {" ".join(f"?s{n} a :{kind} . ?o{n} :observes ?s{n} ; :reads ?v{n} ; :at ?p{n} ." for n, kind in enumerate(KINDS, 1))}
}}
"""
"""The pairs of the two stations' last observations: of 14 observations of each kind, 38,416 at each step."""


def test_four_observations_of_two_stations_take_little_memory(tmp_path: Path) -> None:
    for station in ("north", "south"):
        (tmp_path / f"{station}.nq").write_text(quads_of(station, 800))
    sensors = [f"<{EX}{s}/{kind}> a <{EX}{kind}> ." for s in ("north", "south") for kind in KINDS]
    (tmp_path / "sensors.ttl").write_text("\n".join(sensors))
    (tmp_path / "four.rq").write_text(FOUR_OBSERVATIONS)
    streams = [f"--stream={EX}{station}={tmp_path}/{station}.nq" for station in ("north", "south")]
    command = [sys.executable, "-m", "cqels_py", "run", tmp_path / "four.rq", *streams]
    command += ["--static", tmp_path / "sensors.ttl", "--limit", "10"]
    # Once before it is measured: kernels are compiled.
    subprocess.run(command, check=True, capture_output=True)
    results, kilobytes = measured(command)
    lines = results.splitlines()
    assert len(lines) == 10
    assert all(len(json.loads(line)["bindings"]) == 4 for line in lines)
    assert kilobytes << 10 < MOST_MEMORY


_STARTER = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(done.returncode)
"""


def measured(command: Sequence[str | Path]) -> tuple[str, int]:
    """The standard output of a command, and its greatest resident memory in kilobytes.

    The command's memory counts from the fork, so it is started by a small process, and not by this one.
    """
    done = subprocess.run([sys.executable, "-c", _STARTER, *command], check=True, capture_output=True, text=True)
    return done.stdout, int(done.stderr.split()[-1])


# --- blocks -------------------------------------------------------------------------------------------------------

PAIRS = f"""
PREFIX : <{EX}>
SELECT ?a ?b WHERE {{ STREAM :left [RANGE 10s] {{ ?a :p ?x }} STREAM :right [RANGE 20s] {{ ?b :q ?y }} }}
"""
LEFT, RIGHT = 1000, 600


def pushed(text: str, **options: bool) -> tuple[cqels.Engine, list[ResultBatch]]:
    """An engine after two arrivals, of which the second has all the results, and the delivered batches."""
    engine = cqels.Engine()
    batches: list[ResultBatch] = []
    engine.register(text, **options).subscribe_batches(batches.append, ids=True)
    engine.push(f"{EX}left", [(f"<{EX}l{i}>", f"<{EX}p>", f"<{EX}x>") for i in range(LEFT)], time=1_000_000)
    engine.push(f"{EX}right", [(f"<{EX}r{i}>", f"<{EX}q>", f"<{EX}x>") for i in range(RIGHT)], time=2_000_000)
    return engine, batches


def test_the_results_of_one_arrival_come_in_blocks() -> None:
    _, batches = pushed(PAIRS)
    assert sum(map(len, batches)) == LEFT * RIGHT
    assert max(map(len, batches)) <= 3 * BLOCK_ROWS
    assert len({pair for b in batches for pair in zip(*(c.tolist() for c in b.columns), strict=True)}) == LEFT * RIGHT


def test_expiries_of_one_instant_are_processed_in_blocks() -> None:
    engine, batches = pushed(PAIRS, changelog=True)
    batches.clear()
    engine.advance(12_000_000)
    assert sum(map(len, batches)) == LEFT * RIGHT and {s for b in batches for s in b.sign.tolist()} == {-1}
    assert max(map(len, batches)) <= 3 * BLOCK_ROWS


@pytest.mark.parametrize(
    "modified",
    [
        "SELECT DISTINCT ?a ?b WHERE { %s }",
        "SELECT ?a ?b WHERE { { %s } UNION { STREAM :right [RANGE 20s] { ?b :q ?none . ?a :none ?b } } }",
        "SELECT ?a ?b WHERE { %s STREAM :left [RANGE 10s] { ?a :p ?z } }",
        "SELECT ?a ?b WHERE { %s FILTER EXISTS { ?a :named ?b } }",
    ],
)
def test_other_operators_hand_on_blocks_too(modified: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = [(f"<{EX}l{i}>", f"<{EX}named>", f"<{EX}r{j}>") for i in range(LEFT) for j in range(0, RIGHT, 2)]
    static = [named] if "EXISTS" in modified else []
    patterns = PAIRS.partition("WHERE {")[2].rpartition("}")[0]
    sizes: list[int] = []
    merged_rows = leaf_join.merged_rows

    def counted(state: JoinState, deltas: Sequence[Delta]) -> LeafRows:
        sizes.extend(map(len, deltas))
        return merged_rows(state, deltas)

    monkeypatch.setattr(leaf_join, "merged_rows", counted)
    engine = cqels.Engine()
    batches: list[ResultBatch] = []
    query = engine.register(f"PREFIX : <{EX}>\n" + modified % patterns, static=static)
    sizes.clear()
    query.subscribe_batches(batches.append, ids=True)
    engine.push(f"{EX}left", [(f"<{EX}l{i}>", f"<{EX}p>", f"<{EX}x>") for i in range(LEFT)], time=1_000_000)
    sizes.clear()
    engine.push(f"{EX}right", [(f"<{EX}r{i}>", f"<{EX}q>", f"<{EX}x>") for i in range(RIGHT)], time=2_000_000)
    assert sum(map(len, batches)) == LEFT * RIGHT // (2 if static else 1)
    assert max(map(len, batches)) <= 3 * BLOCK_ROWS
    assert max(sizes) <= 2 * BLOCK_ROWS


def test_a_limit_is_reached_in_the_middle_of_an_arrival(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = ["time,graph,subject,predicate,object"]
    rows += [f"1000000,,<{EX}l{i}>,<{EX}p>,<{EX}x>" for i in range(LEFT)]
    (tmp_path / "left.csv").write_text("\n".join(rows))
    rows[1:] = [f"2000000,,<{EX}r{i}>,<{EX}q>,<{EX}x>" for i in range(RIGHT)]
    (tmp_path / "right.csv").write_text("\n".join(rows))
    streams = [f"--stream={EX}{side}={tmp_path}/{side}.csv" for side in ("left", "right")]
    assert main(["run", "-q", PAIRS, *streams, "--limit", "10", "--stats"]) == 0
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 10
    made = next(line for line in err.splitlines() if line.startswith("results"))
    assert 10 <= int(made.split()[1].replace(",", "")) <= 3 * BLOCK_ROWS


# --- static relations ---------------------------------------------------------------------------------------------

STATIC = [
    *((f"<{EX}s{i}>", f"<{EX}in>", f"<{EX}room{i}>") for i in range(500)),
    *((f"<{EX}t{i}>", f"<{EX}of>", f"<{EX}kind{i}>") for i in range(500)),
]
READ = "STREAM :s [RANGE 10s] { ?a :sees ?b }"


@pytest.mark.parametrize(
    ("text", "graph", "wanted"),
    [
        ("SELECT * { %s ?a :in ?r . ?b :of ?k }", False, {("s1", "t2", "room1", "kind2"): 1}),
        ("SELECT * { %s GRAPH :g { ?a :in ?r . ?b :of ?k } }", True, {("s1", "t2", "room1", "kind2"): 1}),
        (
            "SELECT * { %s OPTIONAL { ?a :in ?r . ?b :of ?k } }",
            False,
            {("s1", "t2", "room1", "kind2"): 1, ("s1", "none"): 1},
        ),
        ("SELECT * { %s FILTER EXISTS { ?a :in ?r . ?b :of ?k } }", False, {("s1", "t2"): 1}),
        ("SELECT * { %s FILTER NOT EXISTS { ?a :in ?r . ?b :of ?k } }", False, {("s1", "none"): 1}),
        ("SELECT * { %s MINUS { ?a :in ?r . ?b :of ?k } }", False, {("s1", "none"): 1}),
    ],
)
def test_static_patterns_are_not_multiplied_before_streams_come(
    text: str, graph: bool, wanted: dict[tuple[str, ...], int]
) -> None:
    data: dict[str, object] = {"static_graphs": {f"{EX}g": STATIC}} if graph else {"static": [STATIC]}
    engine = cqels.Engine()
    query = engine.register(f"PREFIX : <{EX}>\n" + text % READ, **data)
    assert query._dataflow is not None
    assert sum(constant.columns.shape[1] for constant in query._dataflow._constants) <= len(STATIC)
    sees = [(f"<{EX}s1>", f"<{EX}sees>", f"<{EX}{other}>") for other in ("t2", "none")]
    engine.push(f"{EX}s", sees, time=1_000_000)
    found = Counter(
        tuple(str(r.bindings[name]).removeprefix(EX) for name in query.variables if name in r.bindings)
        for r in query.results()
    )
    assert found == Counter(wanted)
