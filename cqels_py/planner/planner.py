"""Algebra to physical plan.

Every pattern becomes plan nodes that deliver the variables that are read above it (projection is pushed down on the way).
Constructs that cannot be evaluated exactly and incrementally are refused by name.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from rdflib import Variable

from cqels_py.algebra.nodes import (
    BGP,
    ContinuousQuery,
    Distinct,
    EventJoin,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Match,
    Minus,
    NaryJoin,
    OrderBy,
    Output,
    PathPattern,
    Pattern,
    Planned,
    Project,
    Reduced,
    Slice,
    State,
    Union,
    Values,
    Window,
)
from cqels_py.plan.nodes import TRIPLE, AddedColumn, Node, Plan
from cqels_py.plan.traverse import scans_of
from cqels_py.planner.descriptions import as_construct, description
from cqels_py.planner.event_joins import event_join, passes_rows
from cqels_py.planner.filters import extended, filter_rows
from cqels_py.planner.grouping import grouped
from cqels_py.planner.joins import join, union
from cqels_py.planner.leaves import inline_rows, static_bgp, template_triple, window_bgp
from cqels_py.planner.matches import match_rows, without_retractions
from cqels_py.planner.negation import without
from cqels_py.planner.optional import left_join
from cqels_py.planner.paths import path_pattern
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import once, project
from cqels_py.planner.slices import distinct_rows, projection, reported, sliced, unordered
from cqels_py.planner.states import planned_rules, state_rows
from cqels_py.planner.texts import position_text
from cqels_py.planner.volatile import with_volatile_columns
from cqels_py.planner.windows import StreamTable


def plan_query(query: ContinuousQuery, without: Collection[str] = ()) -> Plan:
    """The physical plan of a rewritten query, `without` the choices of these names (`rules.CHOICES`).

    Raises UnsupportedQuery, naming the construct, for a query that cannot be evaluated exactly.
    """
    streams = StreamTable(query)
    planner = _Planner(query, streams, without)
    if query.form == "DESCRIBE":
        query = replace(as_construct(query), pattern=description(planner, query))
    columns = () if query.form == "ASK" else tuple(str(v) for v in query.variables)
    pattern, kept = query.pattern, tuple(map(Variable, columns))
    added: tuple[AddedColumn, ...] = ()
    if query.output is Output.RSTREAM:
        pattern, kept, added = with_volatile_columns(planner, pattern, kept)
        if query.form == "CONSTRUCT":
            # Results of CONSTRUCT are ordered by their last columns first: volatile columns only decide between equal results.
            volatile = {column.variable for column in added}
            columns = tuple(sorted(columns, key=lambda name: name not in volatile))
    needed = frozenset(kept)
    planner.once = query.form == "ASK" and passes_rows(pattern)
    order = None
    if query.form == "SELECT" and query.output is Output.RSTREAM and not added:
        root, order = reported(planner, pattern, needed)
    else:
        root = planner.plan(pattern, needed)
    root = once(root if order else project(root, tuple(map(str, kept))))
    if query.output is Output.ISTREAM and query.form != "ASK":
        root, streams.windows = without_retractions(root, streams.windows)
    return Plan(
        root=root,
        form=query.form,
        variables=("boolean",) if query.form == "ASK" else columns,
        output=query.output.value,
        streams=tuple(streams.streams),
        windows=tuple(streams.windows),
        time_predicates=streams.time_predicates,
        graphs=_graphs_asked(root, streams),
        template=tuple(template_triple(triple) for triple in query.template),
        static_default=tuple(map(str, query.static_from)),
        static_named=tuple(map(str, query.static_named)),
        name=query.name,
        warnings=tuple(planner.warnings),
        order=order,
        added=added,
        event_memory=tuple(planner.event_memory),
        kept_events=tuple(sorted(planner.kept_events)),
        rules=planned_rules(planner, query),
    )


def _graphs_asked(root: Node, streams: StreamTable) -> tuple[bool, ...]:
    """For each stream: does the query ask for the named graphs of its elements?"""
    patterns = [(streams.windows[scan.window].stream, scan.pattern) for scan in scans_of(root)]
    for window in streams.windows:
        if window.partition is not None:
            patterns += [(window.stream, each) for those in window.partition.alternatives for each in those]
    asked = {stream for stream, pattern in patterns if len(pattern) > len(TRIPLE)}
    return tuple(number in asked for number in range(len(streams.streams)))


class _Planner(Planning):
    def plan(self, pattern: Pattern, needed: Needed) -> Node:
        """A plan that delivers at least the needed variables of the pattern, each mapping as often as the pattern does."""
        match pattern:
            case BGP(triples):
                return static_bgp(self, "", triples, needed)
            case Window(_, BGP() as bgp):
                return window_bgp(self, pattern, bgp, needed)
            case Graph(name, BGP(triples)):
                return static_bgp(self, position_text(name), triples, needed, name)
            case PathPattern():
                return path_pattern(self, pattern, None, needed)
            case Window(_, PathPattern() as path) | Graph(_, PathPattern() as path):
                return path_pattern(self, path, pattern, needed)
            case NaryJoin(parts):
                return join(self, parts, needed)
            case Join(left, right):
                return join(self, (left, right), needed)
            case Filter(inner, condition):
                return filter_rows(self, inner, condition, needed)
            case Union(parts):
                return union(self, parts, needed)
            case LeftJoin():
                return left_join(self, pattern, needed)
            case Planned():
                node = self.node_of(pattern)
                return project(node, tuple(v for v in node.variables if Variable(v) in needed))
            case Minus():
                return without(self, pattern, needed)
            case Extend():
                return extended(self, pattern, needed)
            case Values():
                return inline_rows(pattern)
            case State():
                return state_rows(self, pattern, needed)
            case Match():
                return match_rows(self, pattern, needed)
            case EventJoin():
                return event_join(self, pattern, needed)
            case Group():
                return grouped(self, pattern)
            case Project():
                return projection(self, pattern, needed)
            case Distinct(inner):
                self.once = passes_rows(inner)
                try:
                    return distinct_rows(self, inner)
                finally:
                    self.once = False
            case Reduced(inner):
                return self.plan(inner, needed)
            case OrderBy():
                return unordered(self, pattern, needed)
            case Slice():
                return sliced(self, pattern)
            case _:
                raise AssertionError(pattern)
