"""The drawn spread over partitions agrees with the planner's formulas, where values are even, and with runs."""

from __future__ import annotations

import pytest

from cqels_py.cli.main import main
from cqels_py.engine.compile import compile_query
from cqels_py.runners.spark.describe import describe
from cqels_py.runners.spark.forecast import spread
from cqels_py.spark import loads, prepare, stages, statistics
from tests.runners.spark import simulation
from tests.runners.spark.test_simulated import EX, drawn

S = "STREAM :s [RANGE 1h]"
SHAPES = {
    "star": f"SELECT ?a ?b ?c ?d WHERE {{ {S} {{ ?a :p ?b . ?a :q ?c . ?a :r ?d }} }}",
    "chain": f"SELECT ?a ?b ?c ?d WHERE {{ {S} {{ ?a :p ?b . ?b :q ?c . ?c :r ?d }} }}",
    "triangle": f"SELECT ?a ?b ?c WHERE {{ {S} {{ ?a :p ?b . ?b :p ?c . ?c :p ?a }} }}",
    "graphs": f"SELECT ?g ?b ?c WHERE {{ {S} {{ GRAPH ?g {{ ?a :p ?b . ?a :q ?c }} }} }}",
}


@pytest.mark.parametrize("partitions", [16, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_copies(shape: str, partitions: int) -> None:
    text = f"PREFIX : <{EX}> {SHAPES[shape]}"
    found, first = (
        spread(compile_query(text, changelog=True).plan, partitions),
        stages(text, partitions, changelog=True)[0],
    )
    assert found is not None and first.shares is not None
    assert found.parts == first.parts
    # One triple matches all patterns of the triangle, and has the parts of each.
    expected = float(first.shares.replication) * (3 if shape == "triangle" else 1)
    assert found.copies == pytest.approx(expected, rel=0.2)
    assert found.busiest >= found.copies / found.parts
    assert found.busiest < 3 * found.copies / found.parts + 0.002
    assert found.half > 2 * found.busiest or shape != "star"


def test_a_heavy_value_of_a_star() -> None:
    """The bar: with half of the triples on one value the busiest of 16 tasks gets less than a third of them."""
    found = spread(compile_query(f"PREFIX : <{EX}> {SHAPES['star']}", changelog=True).plan, 16)
    assert found is not None and found.heavy is not None
    assert found.half > 0.5
    assert found.heavy < 1 / 3


def test_it_is_shown() -> None:
    plan = compile_query(f"PREFIX : <{EX}> {SHAPES['star']}", changelog=True).plan
    lines = [line.split() for line in describe(plan, 1000).splitlines()]
    assert ["partitions", "copies", "bytes", "busiest", "one", "value", "heavy"] in lines
    assert [line[0] for line in lines if line[1:3] == ["1", "52"]] == ["10", "100", "1,000"]
    counted = compile_query(f"PREFIX : <{EX}> SELECT (COUNT(*) AS ?n) WHERE {{ {S} {{ ?a :p+ ?b }} }}").plan
    assert spread(counted, 16) is None
    assert "busiest" not in describe(counted, 16)


def test_explain_shows_the_partitions_of_a_heavy_value(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"PREFIX : <{EX}> {SHAPES['star']}"
    variable = stages(text, 4)[0].shares.axes[0][0]  # type: ignore[union-attr]
    options = ["explain", "-q", text, "--runner", "spark", "--partitions", "4"]
    assert main([*options, "--heavy", f"{variable}=<{EX}a>"]) == 0
    told = capsys.readouterr().out
    assert f"mappings whose ?{variable} is <{EX}a> have 4 partitions of their own" in told
    assert main(options) == 0
    assert "of their own" not in capsys.readouterr().out.replace("its own elements", "")
    assert main([*options, "--heavy", f"{variable}=a"]) == 2
    assert "N-Triples texts" in capsys.readouterr().err


def test_a_run_agrees() -> None:
    text = f"PREFIX : <{EX}> SELECT ?c ?v ?w WHERE {{ STREAM :s [NOW] {{ ?c :v ?v . ?c :w ?w }} }}"
    elements = [each for each in drawn(5, 3000, subjects=1000) if str(each.stream) == EX + "s"]
    with simulation.scratch() as place:
        job, plan = prepare(text, state=place, partitions=4, changelog=True)
        simulation.Cluster(job).run(
            0, [simulation.rows_of(elements, plan.streams, [f"g{i}" for i in range(len(elements))])]
        )
        rows, needed = [part.rows for part in loads(place)[0]], statistics(place).triples
        found = spread(plan, 4)
    assert found is not None
    assert sum(rows) == needed * found.copies
    assert max(rows) / needed == pytest.approx(found.busiest, abs=0.05)
