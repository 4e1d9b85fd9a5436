"""RDFS entailment by query rewriting: a triple pattern is extended by the patterns whose matches, with the ontology, entail its own.

The ontology are the triples of the static default graph with rdfs:subClassOf, rdfs:subPropertyOf, rdfs:domain and rdfs:range when
the query is registered. A graph or window then counts as the RDF graph of its own triples and of all that follows from each of
them; a triple that follows from several is there once. Hierarchies are transitive in the static default graph; axiomatic
triples and reflexive ones (every class is a subclass of itself) are not added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from rdflib import RDF, RDFS, Literal, URIRef, Variable
from rdflib.term import Node

from cqels_py.algebra.nodes import (
    BGP,
    Call,
    Constant,
    ContinuousQuery,
    Distinct,
    EventJoin,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Match,
    Minus,
    NaryJoin,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathPattern,
    PathRepeat,
    PathSequence,
    Pattern,
    Project,
    Reduced,
    State,
    TermOrVariable,
    TriplePattern,
    Union,
    Values,
    VariableRef,
    Window,
    WindowVariable,
)
from cqels_py.algebra.paths import may_have_no_steps
from cqels_py.algebra.printer import path_text
from cqels_py.algebra.traverse import map_children, map_exists
from cqels_py.algebra.variables import certain_variables
from cqels_py.errors import Place, UnsupportedQuery

Above = Mapping[URIRef, tuple[URIRef, ...]]
_NONE: frozenset[Variable] = frozenset()
_HIERARCHIES = (RDFS.subClassOf, RDFS.subPropertyOf)
SCHEMA = (RDFS.subClassOf, RDFS.subPropertyOf, RDFS.domain, RDFS.range)


@dataclass(frozen=True, slots=True)
class Ontology:
    """The transitive superclasses and superproperties, and the classes that the subjects and objects of properties have."""

    classes: Above
    properties: Above
    domains: Above
    ranges: Above

    @staticmethod
    def of(triples: Iterable[tuple[Node, Node, Node]]) -> Ontology:
        """Read from the triples of a schema; others are ignored. Classes without a name (blank nodes) only connect other classes."""
        said: dict[Node, dict[Node, list[Node]]] = {predicate: {} for predicate in SCHEMA}
        for subject, predicate, object_ in triples:
            if predicate in said:
                _check_statement(subject, predicate, object_)
                said[predicate].setdefault(subject, []).append(object_)
        classes = _closure(said[RDFS.subClassOf])
        properties = _closure(said[RDFS.subPropertyOf])
        domains = _inherited(said[RDFS.domain], properties, classes)
        ranges = _inherited(said[RDFS.range], properties, classes)
        return Ontology(_named(classes), _named(properties), _named(domains), _named(ranges))

    def below(self, term: TermOrVariable, above: Above) -> list[URIRef]:
        """The subclasses or subproperties of `term`."""
        return [lower for lower, uppers in above.items() if term in uppers and lower != term]


def _check_statement(subject: Node, predicate: Node, object_: Node) -> None:
    """UnsupportedQuery for triples about the RDFS vocabulary itself, by which all else is entailed."""
    of_type = subject == RDF.type and predicate in (RDFS.domain, RDFS.range)
    if of_type or (predicate == RDFS.subPropertyOf and not {subject, object_}.isdisjoint((RDF.type, *SCHEMA))):
        raise UnsupportedQuery(
            f"<{subject}> <{predicate}> <{object_}> of the static data is about the RDFS vocabulary by which all else is entailed: "
            "its consequences are not supported, leave it out"
        )


def _closure(direct: Mapping[Node, list[Node]]) -> dict[Node, set[Node]]:
    found: dict[Node, set[Node]] = {}
    for term in direct:
        reached: set[Node] = set()
        waiting = list(direct[term])
        while waiting:
            upper = waiting.pop()
            if upper not in reached:
                reached.add(upper)
                waiting += direct.get(upper, [])
        found[term] = reached
    return found


def _inherited(
    said: Mapping[Node, list[Node]], properties: Mapping[Node, set[Node]], classes: Mapping[Node, set[Node]]
) -> dict[Node, set[Node]]:
    """The classes of a property's subjects (or objects): those of the property, its superproperties, and their superclasses."""
    found: dict[Node, set[Node]] = {}
    for property_ in dict.fromkeys([*said, *properties]):
        direct = [c for p in (property_, *properties.get(property_, ())) for c in said.get(p, [])]
        found[property_] = {upper for c in direct for upper in (c, *classes.get(c, ()))}
    return found


def _named(above: Mapping[Node, set[Node]]) -> Above:
    """The named terms, without blank nodes, in an order that is equal from run to run."""
    named = {
        lower: tuple(sorted(upper for upper in uppers if isinstance(upper, URIRef)))
        for lower, uppers in above.items()
        if isinstance(lower, URIRef)
    }
    return {lower: named[lower] for lower in sorted(named) if named[lower]}


def entail(query: ContinuousQuery, ontology: Ontology, place: Callable[[int], Place | None]) -> ContinuousQuery:
    """The query over its windows and static graphs with all triples that they entail. Windows are RDF graphs in every dialect.

    `place`: that of an offset into the query's text. Raises UnsupportedQuery for DESCRIBE, for events and STATE, and for property
    paths that would need the classes of a node.
    """
    if query.form == "DESCRIBE":
        raise UnsupportedQuery(
            "DESCRIBE under entailment is not supported, as it describes stated triples alone: write a CONSTRUCT with the "
            "triples you want"
        )
    rewriting = _Rewriting(ontology, place)
    return replace(query, pattern=rewriting.rewrite(query.pattern, static=True), bag_windows=False)


class _Rewriting:
    def __init__(self, ontology: Ontology, place: Callable[[int], Place | None]) -> None:
        self._ontology = ontology
        self._place = place
        above = (*ontology.classes.values(), *ontology.domains.values(), *ontology.ranges.values())
        self._entailed = {class_ for classes in above for class_ in classes}
        self._numbers = count(1)

    def rewrite(
        self, pattern: Pattern, *, static: bool, merged: bool = False, stated: frozenset[Variable] = _NONE
    ) -> Pattern:
        """`static`: the active graph is the static default graph, which has the hierarchies.

        `merged`: it is merged with the contents of windows, which add nothing to the hierarchies.

        `stated`: variables whose values are in stated triples of the same graph, by the patterns that are joined with this one:
        their values are not entailed classes alone.
        """

        def under(known: frozenset[Variable]) -> Callable[[Pattern], Pattern]:
            return lambda child: self.rewrite(child, static=static, merged=merged, stated=known)

        match pattern:
            case BGP(triples):
                return self._basic(triples, static)
            case PathPattern(subject, path, object_):
                if not static:
                    self._check_nodes(pattern, stated)
                return PathPattern(subject, self._path(path, self._hierarchies(path, static, merged)), object_)
            case State():
                raise UnsupportedQuery(
                    "STATE with entailment is not supported: rules see the triples of elements as they are; leave the entailment "
                    "out, or write rules for the classes and properties that are meant",
                    self._place(pattern.offset),
                )
            case Match() | EventJoin():
                word = "MATCH" if isinstance(pattern, Match) else "EVENT"
                raise UnsupportedQuery(
                    f"{word} with entailment is not supported: an event's patterns are asked of the triples of one element, as they "
                    "are; leave the entailment out, or ask for each class and property that is meant, with OR",
                    self._place(pattern.offset if isinstance(pattern, Match) else pattern.events[0].offset),
                )
            case Join() | NaryJoin() | Union():
                return map_children(
                    pattern, under(stated if isinstance(pattern, Union) else self._stated(pattern, stated))
                )
            case LeftJoin(left, right, condition):
                # Not by the patterns around: if the right side lost mappings, the left one's would appear without a match.
                given = self._stated(left, stated) & certain_variables(left)
                both = given | self._seen(right, given)
                met = None if condition is None else map_exists(condition, under(both))
                return LeftJoin(under(stated)(left), under(given)(right), met)
            case Filter(inner, condition):
                return Filter(under(stated)(inner), map_exists(condition, under(self._seen(inner, stated))))
            case Extend(inner, variable, expression):
                return Extend(under(stated)(inner), variable, map_exists(expression, under(self._seen(inner, stated))))
            case Minus(left, right):
                return replace(pattern, left=under(stated)(left), right=under(_NONE)(right))
            case Project(inner, variables):
                return replace(pattern, pattern=under(stated.intersection(variables))(inner))
            case Distinct() | Reduced():
                return map_children(pattern, under(stated))
            case Window() | WindowVariable() | Graph():
                with_static = isinstance(pattern, Window) and pattern.with_static
                return map_children(pattern, self._rewriter(static=with_static, merged=with_static))
            case _:
                return map_children(pattern, self._rewriter(static=static, merged=merged))

    def _check_nodes(self, pattern: PathPattern, stated: frozenset[Variable]) -> None:
        """UnsupportedQuery for a path of no length between free ends: it also leads from each entailed class to itself.

        (In the static default graph these classes are stated, by the ontology.)
        """
        ends = (pattern.subject, pattern.object)
        if not self._entailed or not may_have_no_steps(pattern.path):
            return
        if all(isinstance(end, Variable) and end not in stated for end in ends):
            raise UnsupportedQuery(
                f"the path {path_text(pattern.path)} may have no length, and under entailment would lead from each "
                "entailed class to itself too, which is not supported: use + instead of * or ?, or bind one of its ends in another "
                "pattern"
            )

    def _stated(self, pattern: Pattern, known: frozenset[Variable]) -> frozenset[Variable]:
        """The known variables, and those of the pattern whose values are in stated triples."""
        match pattern:
            case BGP(triples):
                objects = (t.object for t in triples if isinstance(t.predicate, URIRef) and t.predicate != RDF.type)
                return known.union(v for v in (*(t.subject for t in triples), *objects) if isinstance(v, Variable))
            case PathPattern(subject, path, object_):
                ends = (subject, object_)
                if may_have_no_steps(path) and not any(
                    end in known or not (isinstance(end, Variable) or end in self._entailed) for end in ends
                ):
                    return known
                return known.union(end for end in ends if isinstance(end, Variable))
            case Join() | NaryJoin():
                found = known
                for part in pattern.parts if isinstance(pattern, NaryJoin) else (pattern.left, pattern.right):
                    found = self._stated(part, found)
                # The right side's variables may help the left side, as in a chain of paths.
                return found if found == known else self._stated(pattern, found)
            case Union(parts):
                return frozenset.intersection(*(self._stated(part, known) for part in parts))
            case Values(variables, rows):
                columns = zip(variables, zip(*rows, strict=True), strict=True) if rows else ()
                return known.union(v for v, terms in columns if self._entailed.isdisjoint(terms) and None not in terms)
            case LeftJoin(inner) | Minus(inner) | Filter(inner) | Extend(inner) | Distinct(inner) | Reduced(inner):
                return self._stated(inner, known)
            case Project(inner, variables):
                return known.union(self._stated(inner, known.intersection(variables)).intersection(variables))
            case _:
                return known

    def _seen(self, pattern: Pattern, stated: frozenset[Variable]) -> frozenset[Variable]:
        """The stated variables that are always bound: EXISTS has their values in the variables' place."""
        return self._stated(pattern, stated) & certain_variables(pattern)

    def _rewriter(self, *, static: bool, merged: bool) -> Callable[[Pattern], Pattern]:
        return lambda pattern: self.rewrite(pattern, static=static, merged=merged)

    def _basic(self, triples: tuple[TriplePattern, ...], static: bool) -> Pattern:
        plain: list[TriplePattern] = []
        parts: list[Pattern] = []
        for triple in triples:
            ways = list(self._ways(triple, static))
            if len(ways) == 1:
                plain.append(triple)
            else:
                parts.append(Distinct(Project(Union(tuple(ways)), _variables(triple))))
        if plain or not parts:
            parts.insert(0, BGP(tuple(plain)))
        return parts[0] if len(parts) == 1 else NaryJoin(tuple(parts))

    def _ways(self, triple: TriplePattern, static: bool) -> Iterator[Pattern]:
        """Patterns whose distinct solutions together are the entailed ones of the triple pattern; the pattern itself is first."""
        yield BGP((triple,))
        subject, predicate, object_ = triple.subject, triple.predicate, triple.object
        if isinstance(predicate, Variable):
            yield from self._any_property(subject, predicate, object_)
            for way in self._types(subject, object_):
                yield from self._bound(way, predicate, RDF.type)
            if static:
                for hierarchy in _HIERARCHIES:
                    for way in self._hierarchy(subject, hierarchy, object_):
                        yield from self._bound(way, predicate, hierarchy)
            return
        for lower in self._ontology.below(predicate, self._ontology.properties):
            yield BGP((TriplePattern(subject, lower, object_),))
        if predicate == RDF.type:
            yield from self._types(subject, object_)
        elif static:
            yield from self._hierarchy(subject, predicate, object_)

    def _any_property(self, subject: TermOrVariable, predicate: Variable, object_: TermOrVariable) -> Iterator[Pattern]:
        for lower, uppers in self._ontology.properties.items():
            for upper in uppers:
                if upper != lower:
                    yield from self._bound(BGP((TriplePattern(subject, lower, object_),)), predicate, upper)

    def _types(self, subject: TermOrVariable, object_: TermOrVariable) -> Iterator[Pattern]:
        """Patterns by which the subject is an instance of the object, except for its own rdf:type triple."""
        ontology = self._ontology
        kinds: list[tuple[Pattern, tuple[URIRef, ...]]] = [
            (BGP((TriplePattern(subject, RDF.type, lower),)), uppers) for lower, uppers in ontology.classes.items()
        ]
        for property_, classes in ontology.domains.items():
            kinds.append((BGP((TriplePattern(subject, property_, self._fresh()),)), classes))
        for property_, classes in ontology.ranges.items():
            if not isinstance(subject, Literal):
                kinds.append((_no_literal(BGP((TriplePattern(self._fresh(), property_, subject),)), subject), classes))
        for way, classes in kinds:
            for class_ in classes:
                if isinstance(object_, Variable):
                    yield from self._bound(way, object_, class_)
                elif object_ == class_:
                    yield way

    def _hierarchy(
        self, subject: TermOrVariable, predicate: TermOrVariable, object_: TermOrVariable
    ) -> Iterator[Pattern]:
        above: Above = {}
        if predicate in _HIERARCHIES:
            above = self._ontology.classes if predicate == RDFS.subClassOf else self._ontology.properties
        for lower, uppers in above.items():
            for upper in uppers:
                found: dict[Variable, URIRef] = {}
                if all(
                    found.setdefault(position, term) == term if isinstance(position, Variable) else position == term
                    for position, term in ((subject, lower), (object_, upper))
                ):
                    yield Values(tuple(found), (tuple(found.values()),))

    def _bound(self, way: Pattern, variable: Variable, term: URIRef) -> Iterator[Pattern]:
        """The pattern with a variable bound to the term: where it occurs in the pattern itself, it must have that value."""
        if variable in _pattern_variables(way):
            yield NaryJoin((way, Values((variable,), ((term,),))))
        else:
            yield Extend(way, variable, Constant(term))

    def _fresh(self) -> Variable:
        return Variable(f"_:entailed{next(self._numbers)}")

    def _hierarchies(self, path: Path, static: bool, merged: bool) -> bool:
        """Has the path to take a hierarchy's steps for transitive, as they are in the static default graph?

        UnsupportedQuery where only those are that the static data makes, and the path takes others too.
        """
        if not static or (isinstance(path, PathRepeat) and path.unbounded and _of_single_steps(path.path)):
            return False
        named = [step for step in _steps(path) if step in _HIERARCHIES]
        if merged and named:
            raise UnsupportedQuery(
                f"the path {path_text(path)} under RDFS entailment, over windows and static data together: only the static "
                f"data's hierarchies are transitive, so <{named[0]}> may be repeated with + or * only, by itself or as one of "
                "alternatives"
            )
        return bool(named)

    def _path(self, path: Path, transitive: bool) -> Path:
        match path:
            case PathInverse(inner):
                return PathInverse(self._path(inner, transitive))
            case PathSequence(parts):
                return PathSequence(tuple(self._path(part, transitive) for part in parts))
            case PathAlternative(parts):
                return PathAlternative(tuple(self._path(part, transitive) for part in parts))
            case PathRepeat(inner):
                repeated = self._path(inner, transitive)
                if isinstance(repeated, PathRepeat) and repeated.minimum == 1 and repeated.unbounded:
                    # (p+)? and (p+)* are p*, (p+)+ is p+.
                    return replace(repeated, minimum=path.minimum)
                return replace(path, path=repeated)
            case PathNegated():
                raise UnsupportedQuery(
                    "a negated property set !(…) under RDFS entailment is not supported: name the properties"
                )
            case _:
                step = self._step(path)
                return PathRepeat(step, 1, True) if transitive and path in _HIERARCHIES else step

    def _step(self, step: URIRef) -> Path:
        if step == RDF.type:
            raise UnsupportedQuery("rdf:type inside a repeated property path is not supported under RDFS entailment")
        below = [lower for lower in self._ontology.below(step, self._ontology.properties) if isinstance(lower, URIRef)]
        return PathAlternative((step, *below)) if below else step


def _steps(path: Path) -> Iterator[URIRef]:
    """The properties that a path names; those of negated sets are none of its steps."""
    match path:
        case PathInverse(inner) | PathRepeat(inner):
            yield from _steps(inner)
        case PathSequence(parts) | PathAlternative(parts):
            for part in parts:
                yield from _steps(part)
        case PathNegated():
            return
        case _:
            yield path


def _of_single_steps(path: Path) -> bool:
    """Are there only single steps to take, so that the path repeated takes any number of each in a row?"""
    match path:
        case PathInverse(inner) | PathRepeat(inner):
            return _of_single_steps(inner)
        case PathAlternative(parts):
            return all(map(_of_single_steps, parts))
        case PathSequence() | PathNegated():
            return False
        case _:
            return True


def _no_literal(pattern: Pattern, position: TermOrVariable) -> Pattern:
    """The pattern without literals: they cannot be the subject of the triple that follows by rdfs:range."""
    if not isinstance(position, Variable):
        return pattern
    return Filter(pattern, Call("!", (Call("ISLITERAL", (VariableRef(position),)),)))


def _variables(triple: TriplePattern) -> tuple[Variable, ...]:
    positions = (triple.subject, triple.predicate, triple.object)
    return tuple(dict.fromkeys(position for position in positions if isinstance(position, Variable)))


def _pattern_variables(way: Pattern) -> set[Variable]:
    match way:
        case BGP(triples):
            return {variable for triple in triples for variable in _variables(triple)}
        case Filter(inner) | Extend(inner):
            extra = {way.variable} if isinstance(way, Extend) else set()
            return _pattern_variables(inner) | extra
        case Values(variables):
            return set(variables)
        case NaryJoin(parts):
            return set().union(*(_pattern_variables(part) for part in parts))
        case _:
            raise AssertionError(way)
