"""Algebra to physical plan.

Every pattern node becomes plan nodes that deliver the variables somebody above needs (projection is pushed down on the way).
What cannot be evaluated exactly and incrementally is refused here, by name.
"""

from __future__ import annotations

from dataclasses import replace

from rdflib import Variable

from cqels_py.algebra.nodes import (
    BGP,
    AggregateCall,
    ContinuousQuery,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    NaryJoin,
    OrderBy,
    PathPattern,
    Pattern,
    Project,
    Reduced,
    Service,
    Slice,
    TermOrVariable,
    TriplePattern,
    Union,
    Values,
    VariableRef,
    Window,
    WindowVariable,
)
from cqels_py.algebra.variables import (
    certain_variables,
    expression_variables,
    has_exists,
    possible_variables,
)
from cqels_py.dictionary.rdf import from_rdflib
from cqels_py.errors import UnsupportedQuery
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import (
    DistinctRowsOf,
    ExtendRows,
    FilterRows,
    GroupRows,
    JoinAll,
    Negate,
    Node,
    Once,
    Plan,
    PlannedAggregate,
    ProjectRows,
    Rows,
    Scan,
    StaticScan,
    TemplateTriple,
    TopRows,
    UnionRows,
    inputs_of,
)
from cqels_py.planner.expressions import compile_expression
from cqels_py.planner.windows import StreamTable

Needed = frozenset[Variable]

_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_MOST_JOINED = 10


def plan_query(query: ContinuousQuery) -> Plan:
    """The physical plan of an optimized query.

    Raises UnsupportedQuery, naming the construct, for what cannot be evaluated exactly.
    """
    if query.form == "DESCRIBE":
        raise UnsupportedQuery("DESCRIBE is not supported yet: write a CONSTRUCT with the triples you want")
    streams = StreamTable(query)
    planner = _Planner(query, streams)
    wanted = frozenset() if query.form == "ASK" else frozenset(query.variables)
    root = planner.plan(query.pattern, wanted)
    columns = () if query.form == "ASK" else tuple(str(v) for v in query.variables)
    root = once(project(root, columns))
    return Plan(
        root=root,
        form=query.form,
        variables=("boolean",) if query.form == "ASK" else columns,
        output=query.output.value,
        streams=tuple(streams.streams),
        windows=tuple(streams.windows),
        time_predicates=streams.time_predicates,
        template=tuple(_template(triple) for triple in query.template),
        static_default=tuple(map(str, query.static_from)),
        static_named=tuple(map(str, query.static_named)),
        name=query.name,
        warnings=tuple(planner.warnings),
    )


def position_text(position: TermOrVariable) -> str:
    if isinstance(position, Variable):
        return f"?{position}"
    text: str = from_rdflib(position)
    return text


def _template(triple: TriplePattern) -> TemplateTriple:
    positions = []
    for position in (triple.subject, triple.predicate, triple.object):
        if isinstance(position, Variable) and position.startswith("_:"):
            positions.append(str(position))
        else:
            positions.append(position_text(position))
    return TemplateTriple(*positions)


def is_static(node: Node) -> bool:
    """Does a sub-plan read no stream?"""
    return not isinstance(node, Scan) and all(is_static(child) for child in inputs_of(node))


def once(node: Node) -> Node:
    """Mark a static sub-plan as answered once."""
    return Once(node) if is_static(node) and not isinstance(node, Once | Rows) else node


def expires_in_order(node: Node) -> bool:
    """Do the negative mappings of a node come in the order of the positive ones? Static data has none."""
    match node:
        case Scan() | Once() | Rows():
            return True
        case FilterRows(inner) | ProjectRows(inner):
            return expires_in_order(inner)
        case ExtendRows(inner):
            return expires_in_order(inner)
        case _:
            return False


def without_ids(node: Node) -> Node:
    """A scan for a consumer that keeps its own leaves: what expires need not say what it was."""
    return replace(node, keep_ids=False) if isinstance(node, Scan) else node


def project(node: Node, variables: tuple[str, ...]) -> Node:
    """Columns in this order; nothing where they stand so already."""
    if node.variables == variables:
        return node
    if isinstance(node, JoinAll) and set(variables) <= set(node.variables):
        return replace(node, variables=variables)
    if isinstance(node, Scan | StaticScan) and set(variables) <= set(node.variables):
        return replace(node, variables=variables)
    return ProjectRows(node, variables)


class _Planner:
    def __init__(self, query: ContinuousQuery, streams: StreamTable) -> None:
        self._bags = query.bag_windows
        self._streams = streams
        self._fresh = 0
        self.warnings: list[str] = []

    # --- dispatch -----------------------------------------------------------------------------------------------

    def plan(self, pattern: Pattern, needed: Needed) -> Node:
        """A plan that delivers at least the needed variables of the pattern, each mapping as often as the pattern does."""
        match pattern:
            case BGP(triples):
                return self._static_bgp("", triples, needed)
            case Window(_, BGP() as bgp):
                return self._window_bgp(pattern, bgp, needed)
            case Graph(name, BGP(triples)):
                return self._static_bgp(position_text(name), triples, needed, name)
            case NaryJoin(parts):
                return self._join(parts, needed)
            case Join(left, right):
                return self._join((left, right), needed)
            case Filter(inner, condition):
                return self._filter(inner, condition, needed)
            case Union(parts):
                return self._union(parts, needed)
            case Minus():
                return self._minus(pattern, needed)
            case Extend():
                return self._extend(pattern, needed)
            case Values(variables, rows):
                texts = tuple(tuple(None if term is None else str(from_rdflib(term)) for term in row) for row in rows)
                return Rows(tuple(str(v) for v in variables), texts)
            case Group():
                return self._group(pattern)
            case Project(inner, variables):
                node = self.plan(inner, frozenset(variables))
                return project(node, tuple(str(v) for v in variables if v in needed))
            case Distinct(inner):
                # Which rows are equal depends on all columns, needed or not.
                columns = _columns(inner)
                return DistinctRowsOf(project(self.plan(inner, frozenset(columns)), tuple(map(str, columns))))
            case Reduced(inner):
                return self.plan(Distinct(inner), needed)
            case Slice(OrderBy() as ordered, offset, limit):
                return self._top(ordered, offset, limit)
            case Slice(Project(OrderBy(inner, conditions), variables), offset, limit):
                return self._sliced_projection(inner, conditions, variables, offset, limit, distinct=False)
            case Slice(Distinct(Project(OrderBy(inner, conditions), variables)), offset, limit):
                return self._sliced_projection(inner, conditions, variables, offset, limit, distinct=True)
            case _:
                raise UnsupportedQuery(_refusal(pattern))

    # --- leaves --------------------------------------------------------------------------------------------------

    def _window_bgp(self, window: Window, bgp: BGP, needed: Needed) -> Node:
        if not bgp.triples:
            return Rows((), ((),))
        if len(bgp.triples) == 1:
            return self._leaf(window, bgp.triples[0], needed)
        return self._join(tuple(replace(window, pattern=BGP((triple,))) for triple in bgp.triples), needed)

    def _leaf(self, window: Window, triple: TriplePattern, needed: Needed) -> Node:
        """One triple pattern over one or more windows. Where a window is a graph, the same triple counts once."""
        pattern = _pattern_text(triple)
        variables = _pattern_variables(triple)
        names = tuple(map(str, variables))
        scans: list[Node] = [Scan(self._streams.number(name), pattern, names) for name in window.windows]
        if window.with_static:
            scans.append(Once(StaticScan("", pattern, names)))
        node = scans[0] if len(scans) == 1 else UnionRows(tuple(scans), names)
        if not self._bags or len(scans) > 1:
            node = DistinctRowsOf(node, "a window is a graph: the same triple counts once")
        return project(node, tuple(str(v) for v in variables if v in needed))

    def _static_bgp(
        self, graph: str, triples: tuple[TriplePattern, ...], needed: Needed, name: TermOrVariable | None = None
    ) -> Node:
        if not triples:
            if isinstance(name, Variable):
                raise UnsupportedQuery("GRAPH ?g {} without a triple pattern is not supported: ask for ?s ?p ?o in it")
            return Rows((), ((),))
        scans: list[Node] = []
        for triple in triples:
            variables = _pattern_variables(triple)
            if isinstance(name, Variable) and name not in variables:
                variables = (*variables, name)
            scans.append(StaticScan(graph, _pattern_text(triple), tuple(map(str, variables))))
        if len(scans) == 1:
            return once(scans[0])
        return self._join_nodes(scans, [frozenset()] * len(scans), needed)

    # --- joins ---------------------------------------------------------------------------------------------------

    def _join(self, parts: tuple[Pattern, ...], needed: Needed) -> Node:
        """One n-ary join; what is static in it is joined beforehand, and answered once."""
        nodes: list[Node] = []
        uncertain: list[frozenset[Variable]] = []
        static = [part for part in parts if self._reads_no_stream(part)]
        flowing = [part for part in parts if part not in static]
        if flowing and len(static) > 1:
            nodes.append(once(self._join(tuple(static), self._shared_with(static, flowing) | needed)))
            uncertain.append(_uncertain(NaryJoin(tuple(static))))
            parts = tuple(flowing)
        for part in parts:
            others = [other for other in (*flowing, *static) if other is not part]
            nodes.append(self.plan(part, self._shared_with([part], others) | needed))
            uncertain.append(_uncertain(part))
        return self._join_nodes(nodes, uncertain, needed)

    @staticmethod
    def _shared_with(mine: list[Pattern], others: list[Pattern]) -> Needed:
        here = frozenset().union(*(possible_variables(part) for part in mine))
        return here & frozenset().union(*(possible_variables(part) for part in others))

    def _reads_no_stream(self, pattern: Pattern) -> bool:
        return is_static(self.plan(pattern, frozenset()))

    def _join_nodes(self, nodes: list[Node], uncertain: list[frozenset[Variable]], needed: Needed) -> Node:
        loose = frozenset().union(*uncertain)
        if len(nodes) > _MOST_JOINED:
            # The choices of a probing sequence grow with the power set of the inputs: join in two stages.
            head = self._join_nodes(
                nodes[:_MOST_JOINED],
                uncertain[:_MOST_JOINED],
                needed | frozenset(Variable(v) for node in nodes[_MOST_JOINED:] for v in node.variables),
            )
            return self._join_nodes([head, *nodes[_MOST_JOINED:]], [loose, *uncertain[_MOST_JOINED:]], needed)
        self._warn_of_products(nodes)
        seen = dict.fromkeys(v for node in nodes for v in node.variables)
        columns = tuple(v for v in seen if Variable(v) in needed)
        shared = {v for v in seen if sum(v in node.variables for node in nodes) > 1}
        if all(is_static(node) for node in nodes):
            inputs = tuple(node.input if isinstance(node, Once) else node for node in nodes)
            return once(
                JoinAll(inputs, columns, (True,) * len(nodes), frozenset(map(str, loose)) & shared, retract=False)
            )
        return JoinAll(
            tuple(without_ids(node) for node in nodes),
            columns,
            tuple(expires_in_order(node) for node in nodes),
            frozenset(map(str, loose)) & shared,
        )

    def _warn_of_products(self, nodes: list[Node]) -> None:
        reached = set(nodes[0].variables)
        rest = list(nodes[1:])
        while rest:
            following = next((node for node in rest if reached & set(node.variables)), None)
            if following is None:
                self.warnings.append(
                    "cross product: no variable connects " + " with ".join(_short(node) for node in (nodes[0], rest[0]))
                )
                return
            rest.remove(following)
            reached |= set(following.variables)

    # --- filters and negation --------------------------------------------------------------------------------------

    def _filter(self, inner: Pattern, condition: Expression, needed: Needed) -> Node:
        if isinstance(condition, Exists):
            return self._exists(inner, condition, needed)
        if has_exists(condition):
            raise UnsupportedQuery(
                "EXISTS inside a larger expression is not supported yet: write FILTER EXISTS {…} or "
                "FILTER NOT EXISTS {…} by itself, or joined by &&"
            )
        node = self.plan(inner, needed | expression_variables(condition))
        program = _program(condition)
        if isinstance(node, Scan):
            return replace(node, conditions=(*node.conditions, program))
        return FilterRows(node, program)

    def _exists(self, inner: Pattern, exists: Exists, needed: Needed) -> Node:
        word = "NOT EXISTS" if exists.negated else "EXISTS"
        shared = possible_variables(inner) & _mentioned(exists.pattern)
        outer_only = shared - possible_variables(exists.pattern)
        if outer_only:
            raise UnsupportedQuery(
                f"{word}: its pattern uses ?{min(outer_only)} of the outer pattern in a filter or expression without "
                "binding it; that is not supported yet"
            )
        return self._negate(inner, exists.pattern, shared, needed, exists=not exists.negated, word=word)

    def _minus(self, minus: Minus, needed: Needed) -> Node:
        shared = possible_variables(minus.left) & possible_variables(minus.right)
        if not shared:
            self.warnings.append("MINUS shares no variable with what it is taken from: it removes nothing")
            return self.plan(minus.left, needed)
        return self._negate(minus.left, minus.right, shared, needed, exists=False, word="MINUS")

    def _negate(
        self, left: Pattern, right: Pattern, shared: Needed, needed: Needed, *, exists: bool, word: str
    ) -> Node:
        loose = shared - (certain_variables(left) & certain_variables(right))
        if loose:
            raise UnsupportedQuery(f"{word} over ?{min(loose)}, which may be unbound, is not supported yet")
        left_node = self.plan(left, needed | shared)
        key = tuple(v for v in left_node.variables if Variable(v) in shared)
        right_node = project(self.plan(right, shared), key)
        return Negate(
            without_ids(left_node),
            without_ids(right_node),
            key,
            (expires_in_order(left_node), expires_in_order(right_node)),
            exists,
            word,
        )

    # --- union, extend -----------------------------------------------------------------------------------------------

    def _union(self, parts: tuple[Pattern, ...], needed: Needed) -> Node:
        nodes = [self.plan(part, needed) for part in parts]
        columns = tuple(v for v in dict.fromkeys(v for n in nodes for v in n.variables) if Variable(v) in needed)
        return UnionRows(tuple(once(project(node, columns)) for node in nodes), columns)

    def _extend(self, extend: Extend, needed: Needed) -> Node:
        if has_exists(extend.expression):
            raise UnsupportedQuery("EXISTS in BIND or in a projected expression is not supported yet")
        if extend.variable not in needed:
            return self.plan(extend.pattern, needed)
        inner = (needed - {extend.variable}) | expression_variables(extend.expression)
        return ExtendRows(self.plan(extend.pattern, inner), str(extend.variable), _program(extend.expression))

    # --- grouping ------------------------------------------------------------------------------------------------------

    def _group(self, group: Group) -> Node:
        pattern = group.pattern
        aggregates: list[PlannedAggregate] = []
        for variable, call in group.aggregates:
            pattern, aggregate = self._aggregate(pattern, str(variable), call)
            aggregates.append(aggregate)
        arguments = {a.argument for a in aggregates if a.argument is not None}
        needed = frozenset(group.keys) | frozenset(Variable(a) for a in arguments)
        node = self.plan(pattern, needed)
        columns = tuple(str(v) for v in dict.fromkeys([*group.keys, *(Variable(a) for a in sorted(arguments))]))
        return GroupRows(project(node, columns), tuple(str(v) for v in group.keys), tuple(aggregates))

    def _aggregate(self, pattern: Pattern, name: str, call: AggregateCall) -> tuple[Pattern, PlannedAggregate]:
        if call.function not in _AGGREGATES:
            raise UnsupportedQuery(
                f"the aggregate {call.function} is not supported yet; there are {', '.join(_AGGREGATES)}"
            )
        if call.argument is None:
            if call.distinct:
                raise UnsupportedQuery("COUNT(DISTINCT *) is not supported yet: name the variables in a subquery")
            return pattern, PlannedAggregate(name, "COUNT(*)", None, False)
        if isinstance(call.argument, VariableRef):
            argument = call.argument.variable
        else:
            self._fresh += 1
            argument = Variable(f"_:argument{self._fresh}")
            pattern = Extend(pattern, argument, call.argument)
        distinct = call.distinct and call.function not in ("MIN", "MAX")
        return pattern, PlannedAggregate(name, call.function, str(argument), distinct)

    # --- order and slice ---------------------------------------------------------------------------------------------

    def _sliced_projection(
        self,
        inner: Pattern,
        conditions: tuple[tuple[Expression, bool], ...],
        variables: tuple[Variable, ...],
        offset: int,
        limit: int | None,
        *,
        distinct: bool,
    ) -> Node:
        """ORDER BY stands below the projection; its keys go through the projection, and are dropped after the slice."""
        hidden = frozenset().union(*(expression_variables(e) for e, _ in conditions)) - frozenset(variables)
        if distinct and hidden:
            raise UnsupportedQuery(
                f"DISTINCT with ORDER BY ?{min(hidden)}, which is not selected, has no defined order"
            )
        pattern: Pattern = Project(inner, (*variables, *sorted(hidden)))
        node = self._top(OrderBy(Distinct(pattern) if distinct else pattern, conditions), offset, limit)
        return project(node, tuple(map(str, variables)))

    def _top(self, ordered: OrderBy, offset: int, limit: int | None) -> Node:
        if limit is None:
            raise UnsupportedQuery("OFFSET without LIMIT is not supported yet: add a LIMIT")
        pattern = ordered.pattern
        order: list[tuple[str, bool]] = []
        columns = _columns(pattern)
        for expression, descending in ordered.conditions:
            if isinstance(expression, VariableRef):
                if expression.variable in possible_variables(pattern):
                    order.append((str(expression.variable), descending))
                continue
            self._fresh += 1
            key = Variable(f"_:order{self._fresh}")
            pattern = Extend(pattern, key, expression)
            order.append((str(key), descending))
        kept = (*columns, *(Variable(name) for name, _ in order if Variable(name) not in columns))
        node = project(self.plan(pattern, frozenset(kept)), tuple(map(str, kept)))
        return project(TopRows(node, tuple(order), offset, limit), tuple(map(str, columns)))


def _program(expression: Expression) -> ExpressionProgram:
    program = compile_expression(expression)
    if not program.deterministic:
        raise UnsupportedQuery("NOW() changes at every tick; it is not supported yet: use the event time in the data")
    return program


def _columns(pattern: Pattern) -> tuple[Variable, ...]:
    """The columns of a sub-select, in order."""
    match pattern:
        case Project(_, variables):
            return variables
        case Distinct(inner) | Reduced(inner):
            return _columns(inner)
        case _:
            return tuple(sorted(possible_variables(pattern)))


def _pattern_text(triple: TriplePattern) -> tuple[str, str, str]:
    return position_text(triple.subject), position_text(triple.predicate), position_text(triple.object)


def _pattern_variables(triple: TriplePattern) -> tuple[Variable, ...]:
    positions = (triple.subject, triple.predicate, triple.object)
    return tuple(dict.fromkeys(position for position in positions if isinstance(position, Variable)))


def _uncertain(pattern: Pattern) -> frozenset[Variable]:
    return possible_variables(pattern) - certain_variables(pattern)


def _mentioned(pattern: Pattern) -> frozenset[Variable]:
    """Variables of a pattern and of every filter and expression inside it, where EXISTS substitutes outer values."""
    match pattern:
        case Filter(inner, condition):
            nested = _mentioned(condition.pattern) if isinstance(condition, Exists) else expression_variables(condition)
            return _mentioned(inner) | nested
        case Extend(inner, variable, expression):
            return _mentioned(inner) | expression_variables(expression) | {variable}
        case Join(left, right) | Minus(left, right) | LeftJoin(left, right):
            return _mentioned(left) | _mentioned(right)
        case NaryJoin(parts) | Union(parts):
            return frozenset().union(*(_mentioned(part) for part in parts))
        case _:
            return possible_variables(pattern)


_NAMES: dict[type, str] = {
    LeftJoin: "OPTIONAL is not supported yet: use UNION with FILTER NOT EXISTS for the missing part",
    PathPattern: "property paths with *, +, ?, ! or | are not supported yet: write the steps as triple patterns",
    WindowVariable: "WINDOW with a variable is not supported yet: name the window",
    Service: "SERVICE is not supported yet: load the data with --static",
    OrderBy: "ORDER BY without LIMIT is not supported yet: a stream of changes has no order; add a LIMIT",
    Slice: "LIMIT and OFFSET without ORDER BY are not supported: which rows they keep would be arbitrary; add ORDER BY",
}


def _refusal(pattern: Pattern) -> str:
    inner = pattern.pattern if isinstance(pattern, Window | Graph) else pattern
    found = _NAMES.get(type(inner))
    return found or f"{type(inner).__name__} is not supported here"


def _short(node: Node) -> str:
    if isinstance(node, Scan | StaticScan):
        return "{ " + " ".join(node.pattern) + " }"
    return "{ " + " ".join(f"?{v}" for v in node.variables) + " }"
