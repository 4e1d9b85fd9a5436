"""Prepares the parse tree for rdflib's `translateQuery`, which has preconditions and loses some details.

Names become IRIs and literals keep their lexical form; blank nodes become variables; paths become rdflib's path
objects; patterns of EXISTS and SERVICE are translated wherever they stand; `SELECT *` and grouping expressions get
variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rdflib import XSD, BNode, Literal, URIRef, Variable
from rdflib.paths import InvPath
from rdflib.plugins.sparql.algebra import translateGroupGraphPattern, translatePath, traverse
from rdflib.plugins.sparql.parserutils import CompValue

from cqels_py.parser.grammar import Nil
from cqels_py.parser.prologue import Prologue
from cqels_py.parser.source import unsupported, wrong
from cqels_py.terms.rdf import exact_literal

STAR = Variable("*")
"""The selection of `SELECT *` until the variables of its pattern are known."""

NOTHING = Variable("()")
"""The variable of VALUES without any."""

ALIAS = "alias"
"""Where an aggregate that is selected by itself keeps the name it is selected as."""


class UnseenAlias(Variable):
    """A variable in HAVING that SELECT computes: HAVING is evaluated before, and there it is unbound (SPARQL 1.1, 18.2.4)."""

    __slots__ = ()


CONDITION = "Condition"
"""A node around the condition of a filter, which is true in Python."""

RawTriple = tuple[Any, Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """The pattern of an EXISTS, translated: above a group, rdflib would take its variables for the group's."""

    graph: CompValue
    translated: bool = True
    name: str = "Hidden"


class FreshVariables:
    """Variables that the text does not contain."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._taken = set(taken)

    def make(self, stem: str) -> Variable:
        number = 1
        while f"{stem}{number}" in self._taken:
            number += 1
        self._taken.add(f"{stem}{number}")
        return Variable(f"{stem}{number}")


@dataclass(slots=True)
class Prepared:
    """A tree for `translateQuery`, and facts that this would lose.

    `order`: triples by their place in the text. `template`: CONSTRUCT's triples. `describe`: DESCRIBE's terms.
    """

    tree: CompValue
    order: dict[RawTriple, int] = field(default_factory=dict)
    template: tuple[RawTriple, ...] = ()
    describe: tuple[Any, ...] = ()


def prepare(query: CompValue, prologue: Prologue, labels: frozenset[str], fresh: FreshVariables) -> Prepared:
    """Prepare a query's tree, in place. `labels`: the blank nodes' labels that the text has.

    Raises Unplaced.
    """
    return _Preparation(query, prologue, labels, fresh).run()


class _Preparation:
    def __init__(self, query: CompValue, prologue: Prologue, labels: frozenset[str], fresh: FreshVariables) -> None:
        self._result = Prepared(query)
        self._prologue = prologue
        self._labels = labels
        self._fresh = fresh
        self._blanks: dict[BNode, Variable] = {}
        self._label_groups: dict[Variable, int] = {}
        self._groups = 0
        self._visitors: dict[str, Callable[[CompValue], Any]] = {
            "pname": self._name,
            "literal": self._literal,
            "InversePath": lambda n: InvPath(n.part),
            "DistinctPath": self._distinct_path,
            "PathNegatedPropertySet": self._negated,
            "GroupGraphPatternSub": self._group,
            "Filter": self._keep_filter,
            "TriplesBlock": self._remember_order,
            "Builtin_EXISTS": self._exists,
            "Builtin_NOTEXISTS": self._exists,
            "ServiceGraphPattern": self._translate_inner,
            "InlineData": _check_rows,
            "ValuesClause": _check_rows,
            **dict.fromkeys(("SelectQuery", "SubSelect", "AskQuery", "ConstructQuery"), self._select),
            "DescribeQuery": self._describe,
            **dict.fromkeys(("Builtin_IRI", "Builtin_URI"), self._give_base),
        }

    def run(self) -> Prepared:
        query = self._result.tree
        template = self._own_template(query)
        query = traverse(query, visitPost=self._visit)
        if template is None and query.name == "ConstructQuery":
            template = query.where.part[0].triples
        # A blank node of the template is a new one in every solution, whatever the pattern calls so.
        self._blanks = {}
        self._result.template = tuple(self._template_triples(template or []))
        self._result.tree = query
        return self._result

    @staticmethod
    def _own_template(query: CompValue) -> list[Any] | None:
        """CONSTRUCT's template, taken out of the tree; None for CONSTRUCT WHERE, whose pattern it is."""
        template: list[Any] | None = query.pop("template", None)
        if template is None and query.name == "ConstructQuery" and _has_own_pattern(query):
            return []
        return template

    def _template_triples(self, template: list[Any]) -> Iterator[RawTriple]:
        yield from _triples(traverse(template, visitPost=self._visit))

    # --- terms -----------------------------------------------------------------------------------------------------

    def _visit(self, node: Any) -> Any:
        if isinstance(node, BNode):
            return self._blank(node)
        if isinstance(node, Nil):
            return None
        if isinstance(node, URIRef):
            return self._prologue.iri(str(node))
        if isinstance(node, CompValue):
            visitor = self._visitors.get(node.name)
            return visitor(node) if visitor else translatePath(node)
        return None

    def _blank(self, node: BNode) -> Variable:
        if node not in self._blanks:
            label = f"_:{node}"
            self._blanks[node] = Variable(label) if label in self._labels else self._fresh.make("_:")
        return self._blanks[node]

    def _name(self, node: CompValue) -> URIRef:
        prefix = str(node.prefix or "")
        if prefix not in self._prologue.prefixes:
            raise wrong(f"the prefix '{prefix}:' is not declared: add PREFIX {prefix}: <…>", f"{prefix}:")
        return self._prologue.name(prefix, str(node.localname or ""))

    def _give_base(self, node: CompValue) -> None:
        """IRI() makes absolute IRIs, in queries that have a base: its second argument."""
        if self._prologue.base is not None:
            node["arg2"] = self._prologue.base

    def _literal(self, node: CompValue) -> Literal:
        # RDF 1.1: a string with and without its datatype is one term.
        datatype = None if node.datatype in (None, XSD.string) else node.datatype
        return exact_literal(str(node.string), node.lang, datatype)

    # --- paths -----------------------------------------------------------------------------------------------------

    @staticmethod
    def _distinct_path(_node: CompValue) -> None:
        raise unsupported("DISTINCT in a property path is not part of SPARQL 1.1", "DISTINCT")

    @staticmethod
    def _negated(node: CompValue) -> Any:
        if not node.part:
            raise wrong("a negated property set '!()' without a property: write !(ex:p) or a variable ?p", "!")
        return translatePath(node)

    # --- patterns --------------------------------------------------------------------------------------------------

    def _remember_order(self, node: CompValue) -> None:
        for triple in _triples(node.triples):
            self._result.order.setdefault(triple, len(self._result.order))

    def _group(self, node: CompValue) -> None:
        """A label names a blank node within one basic graph pattern (SPARQL 1.1, 5.1.1)."""
        self._groups += 1
        for part in node.part or []:
            if part.name == "TriplesBlock":
                for triple in _triples(part.triples):
                    self._check_labels(triple)
            elif part.name != "Filter":
                self._groups += 1

    def _check_labels(self, triple: RawTriple) -> None:
        for term in triple:
            if not isinstance(term, Variable) or str(term) not in self._labels:
                continue
            if self._label_groups.setdefault(term, self._groups) != self._groups:
                raise wrong(
                    f"the blank node {term} is used in two groups of triples, where it is not the same: use a variable",
                    str(term),
                )

    @staticmethod
    def _keep_filter(node: CompValue) -> None:
        """rdflib drops a filter whose condition is false in Python: FILTER(false), FILTER(0), FILTER(NOW())."""
        node["expr"] = CompValue(CONDITION, expr=node.expr)

    def _exists(self, node: CompValue) -> None:
        self._translate_inner(node)
        node["graph"] = Hidden(node.graph)

    @staticmethod
    def _translate_inner(node: CompValue) -> None:
        graph = translateGroupGraphPattern(node.graph)
        graph.translated = True
        node["graph"] = graph

    # --- SELECT and its like -----------------------------------------------------------------------------------------

    def _describe(self, node: CompValue) -> None:
        if node.var is None:
            node["var"] = [STAR]
        self._result.describe = tuple(node.var)
        self._select(node)

    def _select(self, node: CompValue) -> None:
        if node.name in ("SelectQuery", "SubSelect") and not node.projection:
            node["projection"] = [CompValue("vars", var=STAR)]
        aggregating = _contains([node.projection, node.having, node.orderby], "Aggregate_")
        if node.having and not node.groupby and not aggregating:
            raise wrong("HAVING needs GROUP BY or an aggregate: use FILTER for single solutions", "HAVING")
        if node.groupby or aggregating:
            self._check_grouped(node)
        hidden = self._hide_aliases(node)
        for column in node.projection or []:
            expression = _unwrapped(column.expr)
            is_aggregate = isinstance(expression, CompValue) and expression.name.startswith("Aggregate_")
            if is_aggregate and column.evar not in hidden:
                expression[ALIAS] = column.evar
        if node.groupby:
            node.groupby["condition"] = [self._condition(each) for each in node.groupby.condition]

    @staticmethod
    def _hide_aliases(node: CompValue) -> frozenset[Variable]:
        """Variables that SELECT computes are marked in HAVING, which does not see them. Returns those that it may name."""
        if not node.having:
            return frozenset()
        keys = node.groupby.condition if node.groupby else []
        aliases = frozenset(c.evar for c in node.projection or [] if c.evar is not None and c.evar not in keys)
        named: set[Variable] = set()

        def mark(each: Any) -> Variable | None:
            if not isinstance(each, Variable) or each not in aliases:
                return None
            named.add(each)
            return UnseenAlias(each)

        node["having"] = traverse(node.having, visitPost=mark)
        # A pattern within is translated already; its variables are not marked, and must not meet an aggregate's name.
        return aliases if _contains(node.having, "Builtin_EXISTS", "Builtin_NOTEXISTS") else frozenset(named)

    @staticmethod
    def _check_grouped(node: CompValue) -> None:
        if node.projection and any(column.var == STAR for column in node.projection):
            raise wrong("SELECT * with GROUP BY or an aggregate: name the grouping variables and aggregates", "*")

    def _condition(self, condition: Any) -> Any:
        """Grouping by an expression: give it a variable."""
        if isinstance(condition, Variable):
            return condition
        if condition.name == "GroupAs":
            if condition.var is None:
                plain = _unwrapped(condition.expr)
                if isinstance(plain, Variable):
                    return plain
                condition["var"] = self._fresh.make("key")
            return condition
        return CompValue("GroupAs", expr=condition, var=self._fresh.make("key"))


def _has_own_pattern(query: CompValue) -> bool:
    if query.where is None:
        raise wrong("CONSTRUCT WHERE {} without triples makes nothing", "CONSTRUCT")
    return bool(query.where.name != "FakeGroupGraphPatten")


def _triples(lists: list[Any]) -> Iterator[RawTriple]:
    terms = [term for each in lists for term in each]
    for at in range(0, len(terms) - 2, 3):
        yield terms[at], terms[at + 1], terms[at + 2]


def _check_rows(node: CompValue) -> None:
    """rdflib would cut the longer one of a row and its variables, and lose VALUES () { () }."""
    variables, rows = node.var or [], node.value or []
    if len(set(variables)) < len(variables):
        raise wrong("VALUES names a variable twice", "VALUES")
    for row in rows:
        found = (0 if row and isinstance(row[0], Nil) else len(row)) if isinstance(row, list) else 1
        if found != len(variables):
            raise wrong(
                f"VALUES has {len(variables)} variables, but a row of {found}: write UNDEF for no value", "VALUES"
            )
    if not variables:
        node["var"], node["value"] = [NOTHING], [["UNDEF"] for _ in rows]


def _unwrapped(expression: Any) -> Any:
    """Without the levels of precedence that hold nothing but the next one."""
    while isinstance(expression, CompValue) and expression.name.endswith("Expression") and expression.other is None:
        expression = expression.expr
    return expression


def _contains(tree: Any, *prefixes: str) -> bool:
    """Is there a node of such a name? Not within subqueries and patterns."""
    if isinstance(tree, CompValue):
        if tree.name.startswith(prefixes):
            return True
        if tree.name.endswith("EXISTS"):
            return False
        return any(_contains(value, *prefixes) for value in tree.values())
    if isinstance(tree, list | tuple):
        return any(_contains(each, *prefixes) for each in tree)
    return False
