"""Query text → algebra: all steps of the parser, in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rdflib import URIRef, Variable
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parserutils import CompValue

from cqels_py.algebra import nodes
from cqels_py.algebra.nodes import ContinuousQuery, Dialect, Pattern, RuleSet, TriplePattern
from cqels_py.algebra.validate import MOST_NESTED, asks_windows, nesting
from cqels_py.errors import QueryError
from cqels_py.parser import dialects, grammar, syntax_errors
from cqels_py.parser.clauses import Lifted, lift
from cqels_py.parser.expressions import term_of
from cqels_py.parser.long_lists import LongLists, lift_long_lists
from cqels_py.parser.mapping_checks import check_mapping
from cqels_py.parser.matches import check_repeated
from cqels_py.parser.partitions import check_partitions
from cqels_py.parser.patterns import PatternReader, Surroundings
from cqels_py.parser.prepare import STAR, FreshVariables, Prepared, prepare
from cqels_py.parser.prologue import Prologue, check_names, read_prologue
from cqels_py.parser.rules import RuleBuilder, RulesBlock
from cqels_py.parser.source import Edit, EditedText, Source, Unplaced
from cqels_py.parser.tokens import Kind, Token, Tokens, check_brackets, tokenize
from cqels_py.rewrites.join_events import Misplaced, join_events

_FORMS = ("SELECT", "CONSTRUCT", "ASK", "DESCRIBE")
_BYTE_ORDER_MARK = "\ufeff"
_MOST_DIGITS = 4000
"""The most digits of an integer; Python's own limit is a little higher."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NO_WINDOW = (
    "the query reads no stream, so it would never have a result: put at least one pattern in a window, as in "
    "WHERE { STREAM <http://ex.org/stream> [RANGE 10s] { ?s ?p ?o } }"
)
_READS_STREAMS = (
    "a mapping reads columns, not streams: its WHERE holds BIND and FILTER, whose variables are the columns, as in "
    'CONSTRUCT { ?s :temperature ?t } WHERE { BIND(IRI(CONCAT("http://ex.org/", ?sensor)) AS ?s) }'
)
_NOT_ASKED = (
    "no pattern reads a window that the query declares, so it would never have a result: write WINDOW <name> { … } "
    "(RSP-QL), or GRAPH <stream> { … } of a FROM NAMED STREAM (C-SPARQL)"
)
_TOO_DEEP = "the query is nested too deeply: split it, or write long lists of alternatives with IN or VALUES"


def parse(
    text: str,
    *,
    source: str | None = None,
    dialect: Dialect | None = None,
    base: str | None = None,
    rules: RuleSet | None = None,
) -> ContinuousQuery:
    """The algebra of a query text.

    `source` names the text in errors (a file's name). `dialect`: None to detect it from the window clauses. `base`:
    for relative IRIs where the text has no BASE; without either they stay as they are. `rules`: those that STATE asks, where
    the text has no RULES.

    Raises QuerySyntaxError (with the place) and UnsupportedQuery. A byte order mark before the text is no part of it.
    """
    user_text = Source(text.removeprefix(_BYTE_ORDER_MARK), source)
    with grammar.room_for_nesting(), grammar.without_warnings():
        try:
            return _Parse(user_text, dialect, base, rules).run()
        except RecursionError:
            raise user_text.error(_TOO_DEEP, 0) from None


def parse_mapping(text: str, *, source: str | None = None) -> ContinuousQuery:
    """A CONSTRUCT whose WHERE holds BIND and FILTER alone: variables that nothing binds are columns. Errors as of `parse`."""
    user_text = Source(text.removeprefix(_BYTE_ORDER_MARK), source)
    with grammar.room_for_nesting(), grammar.without_warnings():
        try:
            return _Parse(user_text, None, None).mapping()
        except RecursionError:
            raise user_text.error(_TOO_DEEP, 0) from None


class _Parse:
    def __init__(self, source: Source, dialect: Dialect | None, base: str | None, rules: RuleSet | None = None) -> None:
        self._source = source
        self._given_rules = rules
        self._tokens: Tokens = tokenize(source)
        tokens = self._tokens.tokens
        if len(tokens) == 1:
            raise source.error("there is no query here: expected SELECT, CONSTRUCT, ASK or DESCRIBE", 0)
        _check_counts(source, tokens)
        check_brackets(source, tokens)
        self._prologue: Prologue = read_prologue(source, tokens, base)
        self._dialect = dialects.detect(source, tokens, dialect)
        self._lifted: Lifted = lift(source, self._tokens, self._prologue, self._dialect)
        check_names(self._prologue, self._outside_of_clauses())
        self._lists: LongLists = lift_long_lists(self._outside_of_clauses(), self._prologue)
        self._lifted.edits.extend(self._lists.edits)

    def run(self) -> ContinuousQuery:
        self._check_rules()
        query = self._logical()
        if nesting(query.pattern) > MOST_NESTED:
            raise self._source.error(_TOO_DEEP, 0)
        # DESCRIBE asks all windows for the descriptions.
        if query.form != "DESCRIBE" and not asks_windows(query.pattern):
            raise self._source.error(_NOT_ASKED, self._form().start)
        check_partitions(self._source, query, self._lifted.partitions)
        try:
            join_events(query.pattern)
        except Misplaced as problem:
            raise self._source.refusal(problem.message, problem.offset) from None
        for block in self._lifted.matches.values():
            check_repeated(block, self._tokens.tokens, self._source)
        return query

    def mapping(self) -> ContinuousQuery:
        """The algebra of a query that reads no stream. QuerySyntaxError for one that does."""
        lifted = self._lifted
        if lifted.all_windows or lifted.rules is not None or lifted.states or lifted.matches or lifted.events:
            raise self._source.error(_READS_STREAMS, self._form().start)
        query = self._logical(windows=False)
        check_mapping(query, self._source, self._tokens.tokens)
        return query

    def _logical(self, *, windows: bool = True) -> ContinuousQuery:
        tree = self._tree([*self._lifted.edits, *self._blanked(self._lifted.edits)])
        if windows and not self._lifted.all_windows and self._lifted.rules is None and self._given_rules is None:
            raise self._source.error(_NO_WINDOW, self._form().start)
        try:
            return self._query(tree)
        except Unplaced as problem:
            raise problem.kind(problem.message, self._source.place(self._near(problem))) from None

    # --- to rdflib and back ------------------------------------------------------------------------------------------

    def _tree(self, edits: list[Edit]) -> CompValue:
        sparql = EditedText(self._source.text, edits)
        try:
            tree = grammar.parse_tree(sparql.text)
        except grammar.GrammarError as error:
            offset = sparql.origin(error.offset)
            raise syntax_errors.explain(self._source, self._tokens.tokens, offset, error.expected) from None
        syntax_errors.check_comparisons(self._source, self._outside_of_clauses())
        return tree

    def _blanked(self, lifted: list[Edit]) -> list[Edit]:
        """Comments are cut out, but not those inside of clauses; in strings, `\\'` where only `'` would do is `'`."""
        clauses = [(start, end) for start, end, _ in lifted]
        edits = [(start, end, " ") for start, end in self._tokens.comments if not _within(start, clauses)]
        for token in self._tokens.tokens:
            if token.kind is Kind.STRING and not _within(token.start, clauses):
                other = "'" if token.text[0] == '"' else '"'
                quotes = (match for match in _ESCAPED.finditer(token.text) if match[1] == other)
                edits += [(token.start + match.start(), token.start + match.end(), other) for match in quotes]
        return edits

    def _outside_of_clauses(self) -> list[Token]:
        clauses = [(start, end) for start, end, _ in self._lifted.edits]
        return [token for token in self._tokens.tokens if not _within(token.start, clauses)]

    def _query(self, tree: CompValue) -> ContinuousQuery:
        tokens = self._tokens.tokens
        labels = frozenset(token.text for token in tokens if token.kind is Kind.BLANK)
        names = frozenset(token.text[1:] for token in tokens if token.kind is Kind.VARIABLE)
        fresh = FreshVariables(labels | names)
        prepared = prepare(tree, self._prologue, labels, fresh)
        algebra = self._algebra(prepared.tree)
        around = Surroundings(
            self._source, self._lifted, prepared.order, self._appearance(), self._bound_at, fresh, self._lists.rows
        )
        reader = PatternReader(around)
        # DESCRIBE <iri> has no pattern.
        pattern = nodes.BGP(()) if algebra.p is None else reader.read(algebra.p)
        return self._assemble(algebra, pattern, prepared)

    def _check_rules(self) -> None:
        block, states, given = self._lifted.rules, self._lifted.states, self._given_rules
        if block is not None and given is not None:
            raise self._source.error(
                "the query has RULES of its own, and rules were given with it: leave one of them out", block.start
            )
        if given is not None and not states:
            raise self._source.error(
                "nothing asks what the given rules say: write STATE { … } in WHERE, as in SELECT ?x WHERE { STATE { ?x a :Hot } }",
                self._form().start,
            )
        if block is not None and not states:
            raise self._source.error(
                "nothing asks what the rules say: write STATE { … } in WHERE, as in SELECT ?x WHERE { STATE { ?x a :Hot } }",
                block.start,
            )
        if block is None and given is None and states:
            raise self._source.error(
                "STATE asks what rules say, and there are none: write RULES ON <stream> { RULE { … } WHERE { … } } in front of the "
                "query",
                next(iter(states.values())).start,
            )

    def _rules(self, block: RulesBlock) -> RuleSet:
        """The rules of a block: its groups are parsed as a query of their own."""
        clauses = [(start, end) for start, end, _ in block.edits]
        inside = [
            t for t in self._tokens.tokens if block.start <= t.start < block.end and not _within(t.start, clauses)
        ]
        check_names(self._prologue, inside)
        tree = self._tree([*block.edits, *self._blanked(block.edits)])
        labels = frozenset(token.text for token in inside if token.kind is Kind.BLANK)
        names = frozenset(token.text[1:] for token in self._tokens.tokens if token.kind is Kind.VARIABLE)
        fresh = FreshVariables(labels | names)
        prepared = prepare(tree, self._prologue, labels, fresh)
        around = Surroundings(
            self._source, Lifted(), prepared.order, self._appearance(), self._bound_at, fresh, self._lists.rows
        )
        return RuleBuilder(block, self._source).build(PatternReader(around).read(self._algebra(prepared.tree).p))

    def _algebra(self, tree: CompValue) -> CompValue:
        try:
            algebra: CompValue = translateQuery([[], tree]).algebra  # type: ignore[arg-type]
        except Exception as error:
            message = f"this is not a query that can be understood: {error}"
            raise self._source.error(message, self._form().start) from error
        return algebra

    # --- the result --------------------------------------------------------------------------------------------------

    def _assemble(self, algebra: CompValue, pattern: Pattern, prepared: Prepared) -> ContinuousQuery:
        form = algebra.name.removesuffix("Query").upper()
        if form == "DESCRIBE" and (self._lifted.matches or self._lifted.events):
            word = "MATCH" if self._lifted.matches else "EVENT"
            raise self._source.refusal(
                f"DESCRIBE with {word} is not supported: it keeps no triples; use SELECT or CONSTRUCT",
                self._form().start,
            )
        if form == "DESCRIBE" and self._lifted.states:
            raise self._source.refusal(
                "DESCRIBE with STATE is not supported: rules keep no triples; use SELECT or CONSTRUCT",
                self._form().start,
            )
        template = tuple(TriplePattern(*map(_template_term, triple)) for triple in prepared.template)
        if form in ("ASK", "CONSTRUCT"):
            pattern = _without_projection(pattern)
        elif form == "DESCRIBE":
            pattern = _without_distinct(pattern)
        sets = algebra.datasetClause or []
        named = [each.named for each in sets if each.named is not None]
        defaults = dialects.DEFAULTS[self._dialect]
        static_named = tuple(URIRef(name) for name in named if name not in self._lifted.sources)
        self._check_names(static_named)
        return ContinuousQuery(
            form=form,
            pattern=pattern,
            variables=_columns(pattern) if form in ("SELECT", "DESCRIBE") else _template_variables(template),
            windows=self._lifted.all_windows,
            output=self._lifted.output or defaults.output,
            dialect=self._dialect,
            bag_windows=defaults.bag_windows,
            name=self._lifted.name,
            template=template,
            static_from=tuple(URIRef(each.default) for each in sets if each.default is not None),
            static_named=static_named,
            describe=_described(prepared.describe, pattern),
            prefixes=tuple(self._prologue.prefixes.items()),
            rules=self._given_rules if self._lifted.rules is None else self._rules(self._lifted.rules),
        )

    def _check_names(self, static_named: Sequence[URIRef]) -> None:
        for name in static_named:
            if name in self._lifted.named:
                raise self._source.error(
                    f"<{name}> is named by FROM NAMED STREAM and by FROM NAMED, so that GRAPH <{name}> would mean both: "
                    "give the static data another name",
                    self._form().start,
                )

    # --- places ------------------------------------------------------------------------------------------------------

    def _form(self) -> Token:
        """SELECT, CONSTRUCT, ASK or DESCRIBE."""
        tokens = self._tokens.tokens
        return next((token for token in tokens if token.is_word(*_FORMS)), tokens[0])

    def _appearance(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for token in self._tokens.tokens:
            if token.kind is Kind.VARIABLE:
                found.setdefault(token.text[1:], token.start)
        return found

    def _bound_at(self, variable: Variable) -> int:
        tokens = self._tokens.tokens
        for word, token in pairwise(tokens):
            if word.is_word("AS") and token.kind is Kind.VARIABLE and token.text[1:] == str(variable):
                return token.start
        return self._form().start

    def _near(self, problem: Unplaced) -> int:
        near = problem.near
        tokens = self._outside_of_clauses()
        start = next((at for at, token in enumerate(tokens) if token.is_word(*problem.after)), 0)
        for token in tokens[start:]:
            same = token.text.upper() == near.upper()
            if same or (token.kind in (Kind.IRI, Kind.NAME) and self._iri(token) == near):
                return token.start
            if token.kind is Kind.VARIABLE and near == f"?{token.text[1:]}":
                return token.start
        return self._form().start

    def _iri(self, token: Token) -> str:
        try:
            return str(self._prologue.resolve(token))
        except QueryError:
            return ""


def _check_counts(source: Source, tokens: Sequence[Token]) -> None:
    """Raise QuerySyntaxError for a LIMIT or OFFSET with more digits than Python reads."""
    for word, count in pairwise(tokens):
        if word.is_word("LIMIT", "OFFSET") and count.kind is Kind.NUMBER and len(count.text) > _MOST_DIGITS:
            message = (
                f"{word.text.upper()} has a number of {len(count.text)} characters: write how many results, such as 10"
            )
            raise source.error(message, count.start)


def _within(offset: int, spans: list[tuple[int, int]]) -> bool:
    return bool(spans) and any(start <= offset < end for start, end in spans)


def _template_term(value: Any) -> nodes.TermOrVariable:
    return Variable(value) if isinstance(value, Variable) else term_of(value)


def _template_variables(template: tuple[TriplePattern, ...]) -> tuple[Variable, ...]:
    positions = [position for t in template for position in (t.subject, t.predicate, t.object)]
    return tuple(dict.fromkeys(p for p in positions if isinstance(p, Variable) and not p.startswith("_:")))


def _without_projection(pattern: Pattern) -> Pattern:
    """ASK and CONSTRUCT select nothing: rdflib's projection has no meaning there."""
    match pattern:
        case nodes.Project(inner, _):
            return inner
        case nodes.Slice(nodes.Project(inner, _), offset, limit):
            return nodes.Slice(inner, offset, limit)
        case _:
            return pattern


def _without_distinct(pattern: Pattern) -> Pattern:
    """rdflib takes DESCRIBE for SELECT DISTINCT, so that LIMIT would keep other solutions."""
    match pattern:
        case nodes.Distinct(inner):
            return inner
        case nodes.Slice(nodes.Distinct(inner), offset, limit):
            return nodes.Slice(inner, offset, limit)
        case _:
            return pattern


def _columns(pattern: Pattern) -> tuple[Variable, ...]:
    match pattern:
        case nodes.Project(_, variables):
            return variables
        case nodes.Distinct(inner) | nodes.Reduced(inner) | nodes.Slice(inner):
            return _columns(inner)
        case _:
            return ()


def _described(asked: tuple[Any, ...], pattern: Pattern) -> tuple[nodes.TermOrVariable, ...]:
    if STAR in asked:
        return _columns(pattern)
    return tuple(_template_term(each) for each in asked)
