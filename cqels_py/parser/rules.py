"""`RULES ON <s> { RULE { head } FOR [0s, 3s] WHERE { body } … }`: the block is read, and its groups become SPARQL's.

RULE { head } WHERE { a . ALWAYS [0s, 4s] { b } }  →  GRAPH <marker> { head } GRAPH <marker> { a . GRAPH <marker> { b } }
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from rdflib import RDF, Literal, URIRef, Variable

from cqels_py.algebra import nodes
from cqels_py.algebra import temporal_rules as rules
from cqels_py.algebra.nodes import BGP, Expression, Extend, Filter, Graph, Join, Pattern, RuleSet, TriplePattern
from cqels_py.algebra.temporal_rules import CLASS, FOREVER, Atom, Formula, Interval, Rule, bound_by
from cqels_py.algebra.variables import expression_variables, has_exists
from cqels_py.parser.replaced import until_replaced
from cqels_py.parser.rule_checks import check_positive, check_recursion, check_scopes
from cqels_py.parser.source import Edit, Source
from cqels_py.parser.times import read_duration, read_duration_or_zero
from cqels_py.parser.tokens import Cursor, Kind, Token
from cqels_py.terms.rdf import from_rdflib

_PATH = "a property path in a rule is not supported: write triple patterns, and rules for the rest"
_ONLY = "a rule's body takes triple patterns, ALWAYS, SOMETIME, SINCE, NOT, FILTER and BIND"
_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
_REFUSED = (
    *("OPTIONAL", "GRAPH", "SERVICE", "MINUS", "UNION", "SELECT", "VALUES", "EXISTS", "GROUP", "ORDER", "LIMIT"),
    *_AGGREGATES,
    *("STREAM", "WINDOW", "MATCH", "EVENT", "STATE", "RULE", "RULES"),
)
_INSTEAD = {
    "OPTIONAL": "write one rule with the pattern and one without it",
    "UNION": "write one rule for each branch",
    "MINUS": "write NOT { … }",
    "EXISTS": "write NOT { … } in the body, outside of FILTER",
    **dict.fromkeys(("GROUP", *_AGGREGATES), "aggregate over STATE: SELECT … WHERE { STATE { … } } GROUP BY ?x"),
}
_VOLATILE = ("NOW", "RAND", "UUID", "STRUUID", "BNODE")
_AHEAD = ("FUTURE", "NEXT", "EVENTUALLY", "UNTIL")
_LOOKS_BACK = "bodies look back: later conclusions are said in the head, FOR [0s, 3s]"


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of the text that an operator has: ALWAYS, SOMETIME, NOT or SINCE; `sides`: the markers of those of SINCE."""

    word: str
    interval: Interval | None
    start: int
    sides: tuple[URIRef, ...] = ()


@dataclass(frozen=True, slots=True)
class _Replacement:
    """UNTIL REPLACED BY: the key, and how long a head holds at most, in microseconds."""

    key: tuple[rules.Variable, ...]
    within: int | None


@dataclass(slots=True)
class _RuleText:
    """A rule, by the markers of its groups."""

    start: int
    head: URIRef
    body: URIRef
    spans: tuple[Interval, ...]
    replaced: _Replacement | None = None


@dataclass(slots=True)
class RulesBlock:
    """A RULES block. `start`, `end`: its place. `edits`: they make a query of it, with the text around cut out."""

    start: int
    end: int = 0
    streams: tuple[URIRef, ...] = ()
    edits: list[Edit] = field(default_factory=list)
    rules: list[_RuleText] = field(default_factory=list)
    groups: dict[URIRef, _Group] = field(default_factory=dict)


class RulesReader:
    """Reads the block at the cursor. Raises QuerySyntaxError and UnsupportedQuery, at the token."""

    def __init__(
        self, source: Source, cursor: Cursor, resolve: Callable[[Token], URIRef], markers: Iterator[URIRef]
    ) -> None:
        self._source = source
        self._cursor = cursor
        self._resolve = resolve
        self._markers = markers

    def read(self) -> RulesBlock:
        cursor = self._cursor
        self._block = block = RulesBlock(cursor.take().start)
        cursor.expect_word("ON", "RULES, and the streams whose triples are facts: RULES ON <stream> { … }")
        block.streams = tuple(dict.fromkeys(self._streams()))
        opened = cursor.expect_mark("{", "and rules after RULES ON <stream>")
        block.edits.append((block.start, opened.end, "SELECT * WHERE {"))
        while cursor.here.is_word("RULE"):
            self._rule()
        if not block.rules:
            cursor.fail("expected RULE { … } WHERE { … }")
        if not cursor.take_mark("}"):
            line = self._source.place(opened.start).line
            if cursor.here.is_word("FOR") or cursor.here.is_word("UNTIL"):
                raise self._source.error(
                    "how long a head holds stands in front of WHERE: RULE { … } FOR [0s, 5s] WHERE { … }",
                    cursor.here.start,
                )
            cursor.fail(f"expected RULE or the '}}' of the RULES that begin in line {line}")
        block.end = cursor.before.end
        block.edits.append((block.end, len(self._source.text), ""))
        return block

    def _streams(self) -> Iterator[URIRef]:
        cursor = self._cursor
        while True:
            token = cursor.here
            if token.kind is Kind.VARIABLE:
                raise self._source.refusal(f"a stream is an IRI, not a variable: '{token.text}'", token.start)
            if token.kind not in (Kind.IRI, Kind.NAME):
                cursor.fail("expected the stream's IRI after RULES ON, such as <http://ex.org/stream>")
            yield self._resolve(cursor.take())
            if cursor.here.is_mark("["):
                raise self._source.refusal(
                    "rules have no window: how far they look back is said by their operators, as in SOMETIME [0s, 10s] { … }",
                    cursor.here.start,
                )
            if not cursor.take_mark(","):
                return

    def _rule(self) -> None:
        cursor, block = self._cursor, self._block
        start = cursor.take().start
        head = next(self._markers)
        if not cursor.here.is_mark("{"):
            cursor.fail("expected '{' and the triple that the rule derives, as in RULE { ?x a :Hot } WHERE { … }")
        self._open(start, head)
        while not cursor.here.is_mark("}"):
            if cursor.at_end or cursor.here.is_mark("{"):
                cursor.fail("expected the '}' of the rule's head")
            token = cursor.take()
            self._refuse_path(token)
            if token.kind is Kind.BLANK or token.is_mark("["):
                raise self._source.refusal(
                    "a blank node in a rule's head would be another node at each time: write an IRI or a variable",
                    token.start,
                )
        after = cursor.take().end
        spans = []
        while cursor.take_word("FOR"):
            spans.append(self._interval("FOR"))
        replaced = self._until_replaced() if cursor.here.is_word("UNTIL") and not spans else None
        cursor.expect_word("WHERE", "the rule's head, or FOR and an interval such as [0s, 3s]")
        body = next(self._markers)
        self._open(after, body)
        self._body()
        block.rules.append(_RuleText(start, head, body, tuple(spans), replaced))

    def _until_replaced(self) -> _Replacement:
        cursor = self._cursor
        cursor.take()
        cursor.expect_word("REPLACED", "UNTIL, as in UNTIL REPLACED BY ?s")
        cursor.expect_word("BY", "UNTIL REPLACED")
        key: list[rules.Variable] = []
        while cursor.here.kind is Kind.VARIABLE:
            key.append(rules.Variable(cursor.take().text[1:]))
        if not key:
            cursor.fail("expected the variables whose next head replaces this one, as in UNTIL REPLACED BY ?s")
        within = read_duration(cursor) if cursor.take_word("WITHIN") else None
        return _Replacement(tuple(dict.fromkeys(key)), within)

    def _open(self, start: int, marker: URIRef) -> None:
        """The text between `start` and the brace here becomes GRAPH with this marker."""
        opened = self._cursor.expect_mark("{", "and a group")
        self._block.edits.append((start, opened.end, f" GRAPH <{marker}> {{"))

    def _body(self) -> None:
        """Through the group's closing brace."""
        cursor, opened = self._cursor, self._cursor.before
        while not cursor.here.is_mark("}"):
            token = cursor.here
            if cursor.at_end:
                raise self._source.error("the '{' of this group is never closed: expected '}'", opened.start)
            if token.is_word("ALWAYS", "SOMETIME"):
                self._looking_back()
            elif token.is_word("NOT"):
                self._not()
            elif token.is_mark("{"):
                self._since()
            elif token.is_word("SINCE"):
                cursor.fail("the left side of SINCE stands in braces: { … } SINCE [0s, 5s] { … }")
            elif token.is_mark("("):
                self._parentheses()
            else:
                self._refuse(token)
                self._refuse_path(token)
                cursor.take()
        cursor.take()

    def _refuse(self, token: Token) -> None:
        word = token.text.upper()
        if token.is_word(*_AHEAD):
            raise self._source.refusal(_LOOKS_BACK, token.start)
        if token.is_word(*_VOLATILE):
            instead = "use SOMETIME or ALWAYS" if word == "NOW" else "compute it beside STATE"
            raise self._source.refusal(
                f"{word}() in a rule is not supported: its value would change while its facts hold; {instead}",
                token.start,
            )
        if token.is_word(*_REFUSED):
            raise self._source.refusal(f"{_ONLY}, not {word}: {_INSTEAD.get(word, 'leave it out')}", token.start)

    def _refuse_path(self, token: Token) -> None:
        if token.is_mark("/") or token.is_mark("|"):
            raise self._source.refusal(_PATH, token.start)

    def _parentheses(self) -> None:
        cursor, depth = self._cursor, 0
        while True:
            token = cursor.take()
            depth += token.is_mark("(") - token.is_mark(")")
            if cursor.at_end or not depth:
                return
            self._refuse(token)

    def _looking_back(self) -> None:
        token = self._cursor.take()
        word, marker = token.text.upper(), next(self._markers)
        interval = self._interval(word)
        if word == "ALWAYS" and interval.hi >= FOREVER:
            raise self._source.refusal(
                "ALWAYS [0s, FOREVER): nothing is known of the time before the stream began; write an end, as in "
                "ALWAYS [0s, 1h]",
                token.start,
            )
        self._block.groups[marker] = _Group(word, interval, token.start)
        self._open(token.start, marker)
        self._body()

    def _not(self) -> None:
        token, marker = self._cursor.take(), next(self._markers)
        self._refuse(self._cursor.here)
        if not self._cursor.here.is_mark("{"):
            self._cursor.fail("expected '{' and triple patterns after NOT")
        self._block.groups[marker] = _Group("NOT", None, token.start)
        self._open(token.start, marker)
        self._body()

    def _since(self) -> None:
        cursor, marker, left, right = self._cursor, *(next(self._markers) for _ in range(3))
        opened = cursor.take()
        self._block.edits.append((opened.start, opened.end, f" GRAPH <{marker}> {{ GRAPH <{left}> {{"))
        self._body()
        token = cursor.here
        if not cursor.take_word("SINCE"):
            self._refuse(token)
            raise self._source.refusal(
                f"{_ONLY}; a group of its own is the left side of SINCE: {{ … }} SINCE [0s, 5s] {{ … }}", opened.start
            )
        self._block.groups[marker] = _Group("SINCE", self._interval("SINCE"), opened.start, (left, right))
        self._open(token.start, right)
        self._body()
        end = cursor.before.end
        self._block.edits.append((end, end, " }"))

    # --- intervals -----------------------------------------------------------------------------------------------

    def _interval(self, word: str) -> Interval:
        cursor, start = self._cursor, self._cursor.here.start
        if not (cursor.here.is_mark("[") or cursor.here.is_mark("(")):
            cursor.fail(f"expected an interval after {word}, such as [0s, 5s], (0s, 5s) or [2s]")
        closed_lo = cursor.take().text == "["
        lo = self._end(cursor.here)
        hi: int | None = lo
        if cursor.take_mark(","):
            hi = None if cursor.take_word("FOREVER") else self._end(cursor.here)
        if not (cursor.here.is_mark("]") or cursor.here.is_mark(")")):
            cursor.fail("expected ']' or ')' at the end of the interval")
        last = cursor.take()
        text = self._source.text[start : last.end]
        if hi is not None and hi < lo:
            first, _, second = text[1:-1].partition(",")
            raise self._source.error(
                f"{text}: the interval ends before it begins: write [{second.strip()}, {first.strip()}]", start
            )
        interval = Interval(2 * lo + (not closed_lo), FOREVER if hi is None else 2 * hi - (last.text == ")"))
        if interval.lo > interval.hi:
            raise self._source.error(f"{text}: this interval is empty", start)
        return interval

    def _end(self, here: Token) -> int:
        if here.is_word("FOREVER"):
            raise self._source.error("FOREVER is the end of an interval: [0s, FOREVER)", here.start)
        micros = read_duration_or_zero(self._cursor)
        if micros >= FOREVER >> 2:
            raise self._source.error("this is longer than times are: write FOREVER", here.start)
        return micros


class RuleBuilder:
    """The rules of a block, from the pattern that its groups have become."""

    def __init__(self, block: RulesBlock, source: Source) -> None:
        self._block = block
        self._source = source
        self._expressions: list[Expression] = []
        self._replacements = 0

    def build(self, pattern: Pattern) -> RuleSet:
        """Raises QuerySyntaxError and UnsupportedQuery."""
        while isinstance(pattern, nodes.Project):
            pattern = pattern.pattern
        groups = dict(_graphs(pattern))
        found = [rule for text in self._block.rules for rule in self._rules(text, groups)]
        check_recursion([rule for rule, _ in found], [start for _, start in found], self._source)
        return RuleSet(self._block.streams, tuple(rule for rule, _ in found), tuple(self._expressions))

    def _rules(self, text: _RuleText, groups: dict[URIRef, Pattern]) -> Iterator[tuple[Rule, int]]:
        body = self._formulas(groups[text.body], text.start)
        check_positive(body, "the rule", self._source, text.start)
        check_scopes(body, self._source, text.start)
        head = groups[text.head]
        if not isinstance(head, BGP) or not head.triples:
            raise self._source.refusal("a rule's head is a triple, as in RULE { ?x a :Hot } WHERE { … }", text.start)
        bound = {variable for part in body for variable in bound_by(part)}
        for triple in head.triples:
            atom = self._atom(triple, text.start)
            if isinstance(triple.subject, Literal):
                raise self._source.refusal(
                    "the subject of a rule's head is an IRI or a variable, not a literal", text.start
                )
            for variable in atom.variables:
                if variable not in bound:
                    raise self._source.error(
                        f"?{variable.name} is not bound: a positive pattern has to have it", text.start
                    )
            if text.replaced is None:
                yield Rule(atom, text.spans, body, self._source.place(text.start)), text.start
                continue
            if not set(text.replaced.key) <= set(atom.variables):
                raise self._source.error("UNTIL REPLACED BY takes variables of the rule's head", text.start)
            self._replacements += 1
            for rule in until_replaced(atom, text.replaced.key, text.replaced.within, body, self._replacements):
                yield replace(rule, place=self._source.place(text.start)), text.start

    def _formulas(self, pattern: Pattern, start: int) -> tuple[Formula, ...]:
        match pattern:
            case BGP(triples):
                return tuple(self._atom(triple, start) for triple in triples)
            case Join(left, right):
                return (*self._formulas(left, start), *self._formulas(right, start))
            case Filter(inner, condition):
                return (*self._formulas(inner, start), self._condition(condition, start))
            case Extend(inner, variable, expression):
                found = self._formulas(inner, start)
                number, names = self._expression(expression, start)
                return (*found, rules.Computed(number, names, rules.Variable(str(variable))))
            case Graph(URIRef() as marker, inner) if marker in self._block.groups:
                group = self._block.groups[marker]
                return (self._operator(group, inner),)
            case nodes.PathPattern():
                raise self._source.refusal(_PATH, start)
            case _:
                raise self._source.refusal(_ONLY, start)

    def _operator(self, group: _Group, inner: Pattern) -> Formula:
        interval = group.interval
        if group.word == "SINCE":
            assert interval is not None
            sides = dict(_graphs(inner))
            left, right = (self._conjunction(sides[marker], "SINCE", group.start) for marker in group.sides)
            return rules.Since(left, interval, right)
        if interval is not None:
            operator = rules.Always if group.word == "ALWAYS" else rules.Sometime
            return operator(interval, self._conjunction(inner, group.word, group.start))
        atoms = self._formulas(inner, group.start)
        if not atoms or not all(isinstance(part, Atom) for part in atoms):
            raise self._source.refusal(
                "NOT takes triple patterns: write a rule for the rest, and NOT with its head", group.start
            )
        return rules.Not(tuple(part for part in atoms if isinstance(part, Atom)))

    def _conjunction(self, pattern: Pattern, word: str, start: int) -> Formula:
        parts = self._formulas(pattern, start)
        check_positive(parts, word, self._source, start)
        return parts[0] if len(parts) == 1 else rules.Conjunction(parts)

    def _condition(self, condition: Expression, start: int) -> rules.Condition:
        return rules.Condition(*self._expression(condition, start))

    def _expression(self, expression: Expression, start: int) -> tuple[int, tuple[rules.Variable, ...]]:
        if has_exists(expression):
            raise self._source.refusal(f"{_ONLY}: write NOT {{ … }} instead of NOT EXISTS", start)
        self._expressions.append(expression)
        names = sorted(str(variable) for variable in expression_variables(expression))
        return len(self._expressions) - 1, tuple(map(rules.Variable, names))

    def _atom(self, triple: TriplePattern, start: int) -> Atom:
        return atom_of(triple, self._source, start)


def atom_of(triple: TriplePattern, source: Source, start: int) -> Atom:
    """`?x a <c>` as a predicate with one argument, `?x <p> ?y` as one with two. Raises UnsupportedQuery."""
    if isinstance(triple.predicate, Variable):
        raise source.refusal(f"?{triple.predicate} as a predicate is not supported in rules: write an IRI", start)
    if triple.predicate != RDF.type:
        return Atom(str(triple.predicate), (_term(triple.subject), _term(triple.object)))
    if not isinstance(triple.object, URIRef):
        raise source.refusal("the class of ?x a … is an IRI in rules", start)
    return Atom(CLASS + str(triple.object), (_term(triple.subject),))


def _term(term: nodes.TermOrVariable) -> rules.Term:
    return rules.Variable(str(term)) if isinstance(term, Variable) else str(from_rdflib(term))


def _graphs(pattern: Pattern) -> Iterator[tuple[URIRef, Pattern]]:
    """The groups at the top, by their markers."""
    if isinstance(pattern, Join):
        yield from _graphs(pattern.left)
        yield from _graphs(pattern.right)
    elif isinstance(pattern, Graph) and isinstance(pattern.name, URIRef):
        yield pattern.name, pattern.pattern
