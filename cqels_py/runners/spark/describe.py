"""How a plan is distributed on Spark, in words, and how the load was distributed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from cqels_py.distribution.heavy_values import Block, HeavyValue
from cqels_py.distribution.hypercube import HypercubeShares
from cqels_py.distribution.partitioning import variables_of
from cqels_py.distribution.rule_keys import TYPE, FactPattern, fact_patterns
from cqels_py.distribution.stages import PlannedStage, keeps_to_own_elements, received_by, stages_of
from cqels_py.plan.nodes import (
    ChangelogRead,
    DistinctRowsOf,
    ExtendRows,
    FactorisedGroups,
    FilterRows,
    GroupRows,
    JoinAll,
    Node,
    Plan,
    Scan,
    TopRows,
    inputs_of,
)
from cqels_py.plan.traverse import scans_of, states_of
from cqels_py.runners.spark.folder import PartLoad
from cqels_py.runners.spark.forecast import bytes_of_triple, table
from cqels_py.runners.spark.frequent import Frequent

_PLACES = ("subject", "predicate", "object")


def describe(plan: Plan, partitions: int, heavy: Sequence[HeavyValue] = ()) -> str:
    """The variables by which the state is partitioned, or why it is not; where triples and changes go; the stages of a
    micro-batch."""
    first, *later = stages_of(plan, partitions, heavy)
    lines = list(_first(plan, first, partitions))
    before = first
    for number, stage in enumerate(later, 2):
        lines += _later(number, before, stage)
        before = stage
    lines += _as_elements(plan)
    lines += [_elements(plan, (first, *later)), *table(plan, partitions), _micro_batch([first, *later])]
    return "\n".join(["on Spark", *(f"  {line}" for line in lines)]) + "\n"


def _as_elements(plan: Plan) -> Iterator[str]:
    """How the results become a stream."""
    if plan.form == "CONSTRUCT" and plan.output in ("ISTREAM", "RSTREAM"):
        yield (
            "as a stream for another query (cqels_py.spark.constructed) results pass one partition at the end, where those of a "
            "tick become one element"
        )


def _elements(plan: Plan, stages: Sequence[PlannedStage]) -> str:
    first = stages[0]
    copies = 1.0 if first.shares is None else float(first.shares.replication)
    if keeps_to_own_elements(plan, stages):
        which = (
            f"a partition gets its own elements, {'the first ones' if len(stages) == 1 else 'all'} of their times, and the "
            "first and the last of all; the first partition counts all by their times"
        )
    else:
        which = "every partition gets the times of all elements"
    size = bytes_of_triple(plan, stages, copies)
    return (
        f"{which}: about {size:,.0f} bytes for a triple in an element of its own, before compression and without terms"
    )


def _first(plan: Plan, stage: PlannedStage, partitions: int) -> Iterator[str]:
    if stage.shares is None:
        yield f"the state is in one partition: {stage.reason or 'no more partitions are asked for'}"
        yield "triples of all streams go there"
        return
    of = f" of {partitions}" if stage.shares.cells < partitions else ""
    yield f"the state is partitioned by {_axes(stage.shares)}: {_counted(stage.shares.cells, 'partition')}{of}"
    yield from dict.fromkeys(_route(plan, scan, stage.shares) for scan in scans_of(stage.root))
    facts = fact_patterns(plan.rules, states_of(stage.root), [name for name, _ in stage.shares.axes])
    yield from (_facts(plan, each, stage.shares) for each in facts)
    if stage.shares.replication > 1:
        yield (
            f"if equally many triples match each pattern there are {float(stage.shares.replication):.3g} copies of a triple, and "
            f"each partition has {float(stage.shares.load):.0%} of the triples"
        )
    yield from map(_block, stage.blocks)


def _block(block: Block) -> str:
    value = block.value
    return (
        f"mappings whose ?{value.variable} is {value.text} have {_counted(block.shares.cells, 'partition')} of their own, by "
        f"{_axes(block.shares)}: each has {float(block.shares.load):.0%} of them"
    )


def _axes(shares: HypercubeShares) -> str:
    if len(shares.axes) == 1:
        return f"?{shares.axes[0][0]}"
    return " x ".join(f"?{name} ({share})" for name, share in shares.axes)


def _route(plan: Plan, scan: Scan, shares: HypercubeShares) -> str:
    stream = plan.streams[plan.windows[scan.window].stream]
    places = [_PLACES[scan.pattern.index(f"?{name}")] for name, _ in shares.axes if f"?{name}" in scan.pattern]
    return f"<{stream}>: triples {' '.join(scan.pattern)} go to {_where(places, shares.copies(variables_of(scan)))}"


def _facts(plan: Plan, facts: FactPattern, shares: HypercubeShares) -> str:
    places = [_PLACES[place] for _, place in facts.keys]
    where = _where(places, shares.copies(facts.variables))
    subject, predicate, object_ = facts.pattern
    pattern = f"{subject} {'a' if predicate == TYPE else predicate} {object_}"
    return f"<{plan.streams[facts.stream]}>: facts {pattern} go to {where}"


def _where(places: Sequence[str], copies: int) -> str:
    """`places`: the positions of a triple that say where it belongs."""
    if not places:
        return "every partition"
    which = "the partition" if copies == 1 else f"the {copies} partitions"
    return f"{which} of their {' and '.join(places)}"


def _later(number: int, before: PlannedStage, stage: PlannedStage) -> Iterator[str]:
    by = " ".join(f"?{name}" for name in stage.by)
    where = (
        f"partitioned by {by}: {_counted(stage.parts, 'partition')}"
        if stage.by
        else f"in one partition: {stage.reason}"
    )
    works = " and ".join(dict.fromkeys(_works(stage.root))) or "changes of different partitions that cancel are removed"
    yield f"stage {number}, {where}"
    sent = " ".join(f"?{name}" for name in received_by(stage.root).variables) or "no columns"
    yield f"  gets the changes of {sent}, after {' and '.join(dict.fromkeys(_works(before.root))) or 'its windows'}"
    yield f"  evaluates {works}" if any(_works(stage.root)) else f"  {works}"


def _works(node: Node) -> Iterator[str]:
    """The operators of a stage that are worth mentioning, in the order of evaluation."""
    for child in inputs_of(node):
        yield from _works(child)
    match node:
        case JoinAll():
            yield "join"
        case FactorisedGroups():
            yield "aggregates below a join"
        case GroupRows():
            yield "aggregates"
        case DistinctRowsOf():
            yield "distinct"
        case TopRows():
            yield "the first rows"
        case FilterRows():
            yield "filter"
        case ExtendRows():
            yield "bind"
        case ChangelogRead() | _:
            return


def _micro_batch(stages: list[PlannedStage]) -> str:
    # A task of the first stage gets a part of each heavy value.
    tasks = [stages[0].shares.cells if stages[0].shares else 1, *(stage.parts for stage in stages[1:])]
    first, *later = [_counted(number, "task") for number in tasks]
    more = "".join(f" ─ shuffle ─ stage {number} ({tasks})" for number, tasks in enumerate(later, 2))
    return (
        f"a micro-batch: route (a task for each piece of its input) ─ shuffle by partition ─ evaluate ({first}){more}"
    )


def heavy_in_words(found: Frequent) -> str:
    """A line for each variable that has values in very many triples; empty if none has.

    >>> print(heavy_in_words({"sensor": {"<http://ex.org/s1>": 0.5}}))
    ?sensor has values in very many triples: <http://ex.org/s1> 50%; --heavy 'sensor=<http://ex.org/s1>' divides them
    """
    return "\n".join(
        f"?{name} has values in very many triples: {', '.join(f'{text} {share:.0%}' for text, share in values.items())}; "
        f"{' '.join(_declared(name, text) for text in values)} divides them"
        for name, values in found.items()
    )


def _declared(variable: str, text: str) -> str:
    return f"--heavy {shlex.quote(f'{variable}={text}')}"


def loads_in_words(loads: Sequence[Sequence[PartLoad]]) -> str:
    """A line for each stage: how many rows its partitions got, and how many times the mean the largest of them.

    >>> print(loads_in_words([[PartLoad(30, 5, 1), PartLoad(90, 7, 2)]]))
    stage 1: 120 rows to 2 partitions, the largest got 90 (1.5 times the mean); states were restored 3 times
    >>> print(loads_in_words([[PartLoad(30, 5, 1, 4)]]))
    stage 1: 30 rows to 1 partition; states were restored 1 time, and caught up 4 times
    """
    return "\n".join(_load(number, parts) for number, parts in enumerate(loads, 1) if parts)


def _load(number: int, parts: Sequence[PartLoad]) -> str:
    rows, most = sum(part.rows for part in parts), max(part.rows for part in parts)
    line = f"stage {number}: {_counted(rows, 'row')} to {_counted(len(parts), 'partition')}"
    if len(parts) > 1 and rows:
        line += f", the largest got {most:,} ({most * len(parts) / rows:.2g} times the mean)"
    line += f"; states were restored {_counted(sum(part.rebuilt for part in parts), 'time')}"
    caught_up = sum(part.caught_up for part in parts)
    return f"{line}, and caught up {_counted(caught_up, 'time')}" if caught_up else line


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
