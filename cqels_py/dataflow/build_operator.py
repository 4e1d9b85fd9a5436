"""A plan's node as an operator: columns by place, terms as ids, expressions as evaluators."""

from __future__ import annotations

from collections.abc import Iterable

from cqels_py.batches.delta import TickSigns
from cqels_py.dataflow.expressions import EvaluatorBuilder
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dataflow.volatile import VolatileFunction, VolatileValues
from cqels_py.dictionary import Dictionary
from cqels_py.operators.operator import Operator
from cqels_py.operators.r2r.aggregate import Aggregate, GroupBy
from cqels_py.operators.r2r.distinct import DistinctRows
from cqels_py.operators.r2r.factorised import FactorisedGroupBy
from cqels_py.operators.r2r.group_by_key import GroupByKey
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.operators.r2r.joined_rows import JoinedAggregate, JoinedInput
from cqels_py.operators.r2r.numbering import NumberRows
from cqels_py.operators.r2r.rows import Extend, Filter, Project, UnionAll
from cqels_py.operators.r2r.semi_anti_join import SemiAntiJoin
from cqels_py.operators.r2r.timed import TimedExtend, TimedFilter
from cqels_py.operators.r2r.top import TopRows
from cqels_py.operators.r2r.transitive_closure import TransitiveClosure
from cqels_py.operators.r2s.added import AddedColumns, AddedStep
from cqels_py.operators.r2s.ask import Ask
from cqels_py.operators.r2s.ordered import OrderedAnswers
from cqels_py.operators.r2s.streams import Answers, Changes
from cqels_py.plan import nodes as plan
from cqels_py.plan.nodes import WITHOUT_TERMS, Node, Plan
from cqels_py.plan.order import expires_fifo, is_timed, never_expires


def build_operator(
    node: Node, dictionary: Dictionary, values: DictionaryValues, evaluators: EvaluatorBuilder
) -> Operator:
    """The operator of a node that reads others. `evaluators` builds those of its expressions."""
    match node:
        case plan.JoinAll(inputs, variables, fifo, maybe_unbound, retract):
            names = [child.variables for child in inputs]
            return MultiwayJoin(names, fifo, variables, maybe_unbound=maybe_unbound, retract=retract)
        case plan.FilterRows(inner, condition) if is_timed(node):
            return TimedFilter(evaluators.build(condition), _places(inner, condition.inputs), len(inner.variables))
        case plan.ExtendRows(inner, _, expression) if is_timed(node):
            return TimedExtend(evaluators.build(expression), _places(inner, expression.inputs), len(inner.variables))
        case plan.FilterRows(inner, condition):
            return Filter(evaluators.build(condition), _places(inner, condition.inputs))
        case plan.ExtendRows(inner, _, expression):
            return Extend(evaluators.build(expression), _places(inner, expression.inputs))
        case plan.ProjectRows(inner, variables):
            return Project(_places(inner, variables))
        case plan.UnionRows(_, variables):
            return UnionAll(len(variables))
        case plan.DistinctRowsOf(inner):
            return DistinctRows(len(inner.variables))
        case plan.ClosureRows(inner, edge, _, source, loops):
            number = None if source is None else dictionary.encode_one(source)
            return TransitiveClosure(_places(inner, edge), source=number, loops=loops)
        case plan.Negate(left, _, key, fifo, exists):
            return SemiAntiJoin(left.variables, key, fifo, exists=exists)
        case plan.NumberRows(inner, of):
            return NumberRows(_places(inner, of))
        case plan.GroupRows():
            return _group_by(node, values)
        case plan.FactorisedGroups():
            return _factorised_groups(node, values)
        case plan.TopRows(inner, order, offset, limit, by):
            places = [(inner.variables.index(name), descending) for name, descending in order]
            return TopRows(len(inner.variables), places, offset, limit, values, _places(inner, by))
        case _:
            raise AssertionError(node)


def _group_by(node: plan.GroupRows, values: DictionaryValues) -> Operator:
    columns = node.input.variables
    aggregates = [
        Aggregate(a.function, None if a.argument is None else columns.index(a.argument), a.distinct, a.separator)
        for a in node.aggregates
    ]
    # In FIFO input each mapping waits for its expiry in a queue: where none expires, only terms to be compared need its order.
    keep_terms = not all(a.function in WITHOUT_TERMS for a in node.aggregates)
    fifo = expires_fifo(node.input) and (keep_terms or not never_expires(node.input))
    return GroupBy(_places(node.input, node.keys), aggregates, values, expires_fifo=fifo)


def _factorised_groups(node: plan.FactorisedGroups, values: DictionaryValues) -> Operator:
    inputs = [
        JoinedInput(len(each.variables), tuple(_places(each, node.key)), expires_fifo(each)) for each in node.inputs
    ]
    aggregates = []
    for a in node.aggregates:
        source = node.source(a)
        column = None if a.argument is None else node.inputs[source].variables.index(a.argument)
        aggregates.append(JoinedAggregate(a.function, source, column))
    columns = (*node.key, *node.own)
    groups = [columns.index(name) for name in node.keys]
    if node.by_key:
        return GroupByKey(inputs, groups, aggregates, values)
    own = _places(node.inputs[node.carrier], node.own)
    return FactorisedGroupBy(inputs, node.carrier, own, groups, aggregates, values)


def make_output(
    query: Plan,
    dictionary: Dictionary,
    values: DictionaryValues,
    signs: TickSigns,
    evaluators: EvaluatorBuilder,
    seed: str,
) -> Answers | AddedColumns | OrderedAnswers | Changes | Ask:
    """The operator that turns changes of the answer into results. `signs`: those of the answer's changes in the current step.

    `evaluators` builds those of the expressions that are evaluated with the results; `seed`: of their random values.
    """
    insertions = query.output in ("ISTREAM", "CHANGELOG")
    deletions = query.output in ("DSTREAM", "CHANGELOG")
    if query.form == "ASK":
        return Ask(query.variables, insertions=insertions, deletions=deletions, every_tick=query.output == "RSTREAM")
    if query.order is not None:
        columns = query.root.variables
        keys = [(columns.index(name), descending) for name, descending in query.order.keys]
        return OrderedAnswers(query.variables, len(columns), keys, values, distinct=query.order.distinct)
    if query.output == "RSTREAM":
        answers = Answers(query.root.variables)
        return _with_columns(query, answers, dictionary, evaluators, seed) if query.added else answers
    return Changes(query.variables, insertions=insertions, deletions=deletions, signs=signs)


def _with_columns(
    query: Plan, answers: Answers, dictionary: Dictionary, evaluators: EvaluatorBuilder, seed: str
) -> AddedColumns:
    values, steps = VolatileValues(dictionary, seed), []
    for added in query.added:
        match added:
            case plan.ComputedColumn(name, expression):
                steps.append(AddedStep(name, expression.inputs, evaluators.build(expression)))
            case plan.VolatileColumn(name, function, argument):
                inputs = () if argument is None else (argument,)
                steps.append(AddedStep(name, inputs, VolatileFunction(values, function, name, bool(inputs))))
    return AddedColumns(query.variables, answers, steps, values)


def _places(node: Node, names: Iterable[str]) -> list[int]:
    """Columns by name; -1 for one the node does not have."""
    return [node.variables.index(name) if name in node.variables else -1 for name in names]
