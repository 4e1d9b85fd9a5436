"""Joins and unions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from rdflib import Variable

from cqels_py.algebra.mentions import aggregate_arguments
from cqels_py.algebra.nodes import (
    BGP,
    EventJoin,
    Expression,
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
    PathPattern,
    Pattern,
    Planned,
    Service,
    State,
    Union,
    Values,
    Window,
    WindowVariable,
)
from cqels_py.algebra.variables import certain_variables, exists_patterns, possible_variables
from cqels_py.plan.nodes import (
    DistinctRowsOf,
    ExtendRows,
    FilterRows,
    GraphNames,
    JoinAll,
    Node,
    Once,
    ProjectRows,
    Scan,
    StaticScan,
    UnionRows,
    is_variable,
)
from cqels_py.plan.order import expires_fifo
from cqels_py.planner.boundness import split_by_boundness
from cqels_py.planner.connected import (
    MOST_FOR_HUBS,
    MOST_JOINED,
    beside,
    components,
    first_inputs_first,
    stages_of_join,
)
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import is_static, once, project, short_text, without_ids

_MANY_JOINED = 6


def maybe_unbound(pattern: Pattern) -> frozenset[Variable]:
    return possible_variables(pattern) - certain_variables(pattern)


def join(planner: Planning, parts: tuple[Pattern, ...], needed: Needed) -> Node:
    """One n-ary join; its static parts are joined first, and evaluated once."""
    split = None if "split_by_boundness" in planner.without else split_by_boundness(planner, parts, needed)
    if split is not None:
        return union(planner, tuple(NaryJoin(branch) for branch in split), needed)
    nodes: list[Node] = []
    uncertain: list[frozenset[Variable]] = []
    parts = tuple(piece for part in parts for piece in pieces(part))
    static = [part for part in parts if reads_no_stream(part)]
    flowing = [part for part in parts if not reads_no_stream(part)]
    # One static relation for each connected component: the cross product of components may be large, and streams connect them.
    together = [places for places in components(list(map(possible_variables, static))) if flowing and len(places) > 1]
    for relation in [[static[place] for place in places] for places in together]:
        parts = tuple(part for part in parts if not any(part is one for one in relation))
        others = [*flowing, *(part for part in static if not any(part is one for one in relation))]
        nodes.append(once(join(planner, tuple(relation), shared_with(relation, others) | needed)))
        uncertain.append(maybe_unbound(NaryJoin(tuple(relation))))
    # The number of parts with each variable: comparing thousands of parts pairwise would take too long.
    mentions = Counter(v for part in (*flowing, *static) for v in possible_variables(part))
    for part in parts:
        shared = frozenset(v for v in possible_variables(part) if mentions[v] > 1)
        nodes.append(once(planner.plan(part, shared | needed)))
        uncertain.append(maybe_unbound(part))
    return join_nodes(planner, nodes, uncertain, needed)


def pieces(part: Pattern) -> Iterator[Pattern]:
    """Static triple patterns in connected components."""
    match part:
        case BGP(triples) | Graph(_, BGP(triples)) if len(triples) > 1:
            if isinstance(part, Graph) and isinstance(part.name, Variable):
                yield part
                return
            for places in components([possible_variables(BGP((triple,))) for triple in triples]):
                piece = BGP(tuple(triples[place] for place in places))
                yield replace(part, pattern=piece) if isinstance(part, Graph) else piece
        case _:
            yield part


def is_product(pattern: Pattern) -> bool:
    """Does a join have parts that share no variables?"""
    match pattern:
        case Filter(inner) | Window(pattern=inner):
            return is_product(inner)
        case Graph(name, inner) if not isinstance(name, Variable):
            return is_product(inner)
        case BGP(triples):
            return len(components([possible_variables(BGP((triple,))) for triple in triples])) > 1
        case Join(left, right):
            return _is_product_of((left, right))
        case NaryJoin(parts):
            return _is_product_of(parts)
        case _:
            return False


def _is_product_of(parts: tuple[Pattern, ...]) -> bool:
    return len(components(list(map(possible_variables, parts)))) > 1 or any(map(is_product, parts))


def joined(*patterns: Pattern) -> Pattern:
    """The flat join of patterns, without empty groups."""
    parts: list[Pattern] = []
    for pattern in patterns:
        match pattern:
            case NaryJoin(inner):
                parts += inner
            case Join(left, right):
                parts += [left, right]
            case BGP(()) | Window(pattern=BGP(()), graph=None):
                continue
            case _:
                parts.append(pattern)
    if not parts:
        return BGP(())
    return parts[0] if len(parts) == 1 else NaryJoin(tuple(parts))


def shared_with(mine: list[Pattern], others: list[Pattern]) -> Needed:
    here = frozenset().union(*(possible_variables(part) for part in mine))
    return here & frozenset().union(*(possible_variables(part) for part in others))


def reads_no_stream(pattern: Pattern) -> bool:
    """Is a pattern over static data alone?"""
    match pattern:
        case Window() | WindowVariable() | Match() | EventJoin() | State():
            return False
        case BGP() | PathPattern() | Values() | Service():
            return True
        case Planned():
            return not pattern.reads_stream
        case Join(left, right) | Minus(left, right):
            return reads_no_stream(left) and reads_no_stream(right)
        case LeftJoin(left, right, condition):
            return (
                reads_no_stream(left) and reads_no_stream(right) and (condition is None or _asks_no_stream(condition))
            )
        case NaryJoin(parts) | Union(parts):
            return all(map(reads_no_stream, parts))
        case Filter(inner, expression) | Extend(inner, _, expression):
            return reads_no_stream(inner) and _asks_no_stream(expression)
        case Group(inner, _, aggregates):
            return reads_no_stream(inner) and all(map(_asks_no_stream, aggregate_arguments(aggregates)))
        case OrderBy(inner, conditions):
            return reads_no_stream(inner) and all(_asks_no_stream(expression) for expression, _ in conditions)
        case _:
            return reads_no_stream(pattern.pattern)


def _asks_no_stream(expression: Expression) -> bool:
    return all(reads_no_stream(pattern) for pattern in exists_patterns(expression))


def join_nodes(planner: Planning, nodes: list[Node], uncertain: list[frozenset[Variable]], needed: Needed) -> Node:
    may_be_unbound = frozenset().union(*uncertain)
    entities = None if may_be_unbound or "join_entities_first" in planner.without else _entities(nodes)
    if entities is not None:
        heads = [_join_of_entity(planner, entity, nodes, needed) for entity in entities]
        return join_nodes(planner, heads, [frozenset()] * len(heads), needed)
    if len(nodes) > MOST_JOINED:
        # The possible probing sequences grow exponentially with the inputs: join in stages.
        return _join_in_stages(planner, nodes, uncertain, needed)
    warn_of_products(planner, nodes)
    seen = dict.fromkeys(v for node in nodes for v in node.variables)
    columns = tuple(v for v in seen if Variable(v) in needed)
    shared = {v for v in seen if sum(v in node.variables for node in nodes) > 1}
    compared = frozenset(map(str, may_be_unbound)) & shared
    if all(is_static(node) for node in nodes):
        inputs = tuple(map(_without_retractions, nodes))
        return once(JoinAll(inputs, columns, (True,) * len(nodes), compared, retract=False))
    return JoinAll(tuple(map(without_ids, nodes)), columns, tuple(map(expires_fifo, nodes)), compared)


def _join_in_stages(planner: Planning, nodes: list[Node], uncertain: list[frozenset[Variable]], needed: Needed) -> Node:
    """Join more inputs than one operator takes: groups of inputs first, then the groups' results."""
    if "cut_joins_by_variables" in planner.without:
        parts = first_inputs_first(len(nodes))
    else:
        about = [_about(node) for node in nodes]
        parts = stages_of_join(
            [frozenset(node.variables) for node in nodes], [each for each, _ in about], [each for _, each in about]
        )
    heads: list[Node] = []
    uncertain_heads: list[frozenset[Variable]] = []
    mentions = Counter(v for node in nodes for v in node.variables)
    for part in parts:
        chosen = [nodes[place] for place in part]
        theirs = [uncertain[place] for place in part]
        if len(part) == 1:
            heads.append(chosen[0])
            uncertain_heads.append(theirs[0])
            continue
        inside = Counter(v for node in chosen for v in node.variables)
        outside = frozenset(Variable(v) for v, count in inside.items() if count < mentions[v])
        heads.append(join_nodes(planner, chosen, theirs, needed | outside))
        bound = frozenset(
            Variable(v)
            for node, some in zip(chosen, theirs, strict=True)
            for v in node.variables
            if Variable(v) not in some
        )
        uncertain_heads.append(frozenset().union(*theirs) - bound)
    return join_nodes(planner, heads, uncertain_heads, needed)


def _about(node: Node) -> tuple[str, str]:
    """The variable subject of a triple pattern, and its predicate; two empty texts for any other node."""
    match node:
        case Scan(pattern=(subject, predicate, *_)) | StaticScan(pattern=(subject, predicate, *_)):
            return (subject[1:], predicate) if is_variable(subject) else ("", "")
        case DistinctRowsOf(inner) | ProjectRows(inner) | FilterRows(inner) | ExtendRows(inner) | Once(inner):
            return _about(inner)
        case UnionRows(inputs) if len(found := set(map(_about, inputs))) == 1:
            return found.pop()
        case _:
            return "", ""


def _join_of_entity(planner: Planning, entity: list[Node], nodes: list[Node], needed: Needed) -> Node:
    if len(entity) == 1:
        return entity[0]
    outside = frozenset(Variable(v) for node in nodes if node not in entity for v in node.variables)
    return join_nodes(planner, entity, [frozenset()] * len(entity), needed | outside)


def _entities(nodes: list[Node]) -> list[list[Node]] | None:
    """The inputs in groups that only one variable connects, each about one entity, such as several observations of one sensor.

    Joined first, each entity has only the matches that its own conditions leave; in one join, probing by the shared variable would
    visit all entities. None: there are no such groups. It takes several with a condition (an input of one variable) each.
    """
    if not _MANY_JOINED <= len(nodes) <= MOST_FOR_HUBS or any(map(is_static, nodes)):
        return None
    found = (_entities_around(nodes, hub) for hub in dict.fromkeys(v for node in nodes for v in node.variables))
    return next((entities for entities in found if entities is not None), None)


def _entities_around(nodes: list[Node], hub: str) -> list[list[Node]] | None:
    """The groups that only `hub` connects; None if not all of several inputs have a condition."""
    groups = beside([frozenset(node.variables) for node in nodes], hub)
    if groups is None:
        return None
    entities = [[nodes[place] for place in group] for group in groups]
    large = [entity for entity in entities if len(entity) > 1]
    conditioned = [entity for entity in large if any(len(set(node.variables)) == 1 for node in entity)]
    return entities if len(large) > 1 and large == conditioned else None


def _without_retractions(node: Node) -> Node:
    """A static input of a join without retractions: nodes that retract mappings during evaluation are evaluated on their own."""
    if isinstance(node, Once) and isinstance(node.input, StaticScan | GraphNames | JoinAll):
        return node.input
    return once(node)


def warn_of_products(planner: Planning, nodes: list[Node]) -> None:
    reached = set(nodes[0].variables)
    rest = list(nodes[1:])
    while rest:
        following = next((node for node in rest if reached & set(node.variables)), None)
        if following is None:
            planner.warnings.append(
                "cross product: no variable connects " + " with ".join(short_text(node) for node in (nodes[0], rest[0]))
            )
            return
        rest.remove(following)
        reached |= set(following.variables)


def union(planner: Planning, parts: tuple[Pattern, ...], needed: Needed) -> Node:
    nodes = [planner.plan(part, needed) for part in parts]
    columns = tuple(v for v in dict.fromkeys(v for n in nodes for v in n.variables) if Variable(v) in needed)
    return UnionRows(tuple(once(project(node, columns)) for node in nodes), columns)
