"""Algebra as text: expressions in SPARQL's syntax, patterns as an indented tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rdflib import XSD, BNode, Literal, Variable

from cqels_py.algebra.nodes import (
    BGP,
    AggregateCall,
    Call,
    Constant,
    ContinuousQuery,
    Distinct,
    EachInstant,
    ElementCount,
    Event,
    EventAlternatives,
    EventConjunction,
    EventJoin,
    EventPattern,
    EventRepetition,
    Everything,
    Exists,
    Expression,
    Extend,
    Extent,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Match,
    Minus,
    NaryJoin,
    OrderBy,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathPattern,
    PathRepeat,
    PathSequence,
    Pattern,
    Planned,
    Project,
    Reduced,
    Service,
    Session,
    Slice,
    State,
    Term,
    TermOrVariable,
    TimeRange,
    TripleCount,
    TriplePattern,
    Union,
    Values,
    VariableRef,
    Window,
    WindowDefinition,
    WindowVariable,
)

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"})
_BARE = {
    XSD.integer: re.compile(r"[+-]?[0-9]+"),
    XSD.decimal: re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD.double: re.compile(r"[+-]?([0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    XSD.boolean: re.compile("true|false"),
}
"""Lexical forms that need neither quotes nor a datatype."""
_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))

_LOOSEST, _COMPARED, _TIGHTEST = 1, 3, 7
_PRECEDENCE = {
    "||": _LOOSEST,
    "&&": 2,
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">=", "IN", "NOT-IN"), _COMPARED),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/"), 5),
    **dict.fromkeys(("!", "unary-", "unary+"), 6),
}
_SIGNS = {"!": "!", "unary-": "-", "unary+": "+"}


# --- terms and expressions ---------------------------------------------------------------------------------------


def term_text(term: TermOrVariable) -> str:
    """A term or variable in SPARQL's syntax; variables made of blank nodes as "_:label"."""
    if isinstance(term, Variable):
        return str(term) if term.startswith("_:") else f"?{term}"
    if not isinstance(term, Literal):
        return f"<{term}>"
    bare = _BARE.get(term.datatype) if term.datatype is not None else None
    if bare is not None and bare.fullmatch(str(term)):
        return str(term)
    text = f'"{str(term).translate(_ESCAPES)}"'
    if term.language:
        return f"{text}@{term.language}"
    return text if term.datatype in (None, XSD.string) else f"{text}^^<{term.datatype}>"


def expression_text(expression: Expression) -> str:
    """An expression as SPARQL: it reads back as the same expression.

    >>> from rdflib import Variable
    >>> x = VariableRef(Variable("x"))
    >>> expression_text(Call("*", (Call("+", (x, x)), x)))
    '(?x + ?x) * ?x'
    """
    return _expression(expression, _LOOSEST)


def _expression(expression: Expression, least: int) -> str:
    """`least`: the weakest precedence that needs no parentheses here."""
    match expression:
        case VariableRef(variable):
            return term_text(variable)
        case Constant(term):
            return term_text(term)
        case Exists(pattern, negated):
            return f"{'NOT ' if negated else ''}EXISTS {{ {_inline(pattern)} }}"
        case Call(function, arguments) if function in _PRECEDENCE:
            text = _operation(function, arguments)
            return f"({text})" if _PRECEDENCE[function] < least else text
        case Call(function, arguments):
            name = f"<{function}>" if ":" in function else function
            return f"{name}({', '.join(map(expression_text, arguments))})"


def _operation(function: str, arguments: tuple[Expression, ...]) -> str:
    precedence = _PRECEDENCE[function]
    if function in _SIGNS:
        operand = _expression(arguments[0], _TIGHTEST)
        # A sign that touches its number is part of it.
        space = " " if operand[0].isdigit() or operand[0] in "+-." else ""
        return f"{_SIGNS[function]}{space}{operand}"
    if function in ("IN", "NOT-IN"):
        choices = ", ".join(map(expression_text, arguments[1:]))
        return f"{_expression(arguments[0], _COMPARED + 1)} {function.replace('-', ' ')} ({choices})"
    # Comparisons do not chain; the others group to the left.
    first = precedence + 1 if precedence == _COMPARED else precedence
    texts = [_expression(arguments[0], first), *(_expression(each, precedence + 1) for each in arguments[1:])]
    return f" {function} ".join(texts)


def aggregate_text(call: AggregateCall) -> str:
    """An aggregate as SPARQL writes it."""
    distinct = "DISTINCT " if call.distinct else ""
    argument = "*" if call.argument is None else expression_text(call.argument)
    separator = "" if call.separator is None else f"; SEPARATOR = {term_text(Literal(call.separator))}"
    return f"{call.function}({distinct}{argument}{separator})"


def path_text(path: Path) -> str:
    """A property path in SPARQL's syntax."""
    match path:
        case PathInverse(inner):
            return f"^{_step(inner)}"
        case PathSequence(parts):
            return "/".join(map(_step, parts))
        case PathAlternative(parts):
            return "|".join(map(_step, parts))
        case PathRepeat(inner, minimum, unbounded):
            sign = ("*" if minimum == 0 else "+") if unbounded else "?"
            return f"{_step(inner)}{sign}"
        case PathNegated(forward, backward):
            return f"!({'|'.join([*map(term_text, forward), *(f'^{term_text(iri)}' for iri in backward)])})"
        case _:
            return term_text(path)


def _step(path: Path) -> str:
    text = path_text(path)
    return f"({text})" if isinstance(path, PathInverse | PathSequence | PathAlternative | PathRepeat) else text


def triple_text(triple: TriplePattern | PathPattern) -> str:
    verb = path_text(triple.path) if isinstance(triple, PathPattern) else term_text(triple.predicate)
    return f"{term_text(triple.subject)} {verb} {term_text(triple.object)}"


# --- patterns on one line, as inside EXISTS ------------------------------------------------------------------------


def _inline(pattern: Pattern) -> str:
    """The inside of a group in SPARQL's syntax (a window as WINDOW <name>)."""
    match pattern:
        case BGP(triples):
            return " . ".join(map(triple_text, triples))
        case PathPattern():
            return triple_text(pattern)
        case Join(left, right):
            return f"{_grouped(left)} {_grouped(right)}"
        case NaryJoin(parts):
            return " ".join(map(_grouped, parts))
        case LeftJoin(left, right, condition):
            test = "" if condition is None else f" FILTER({expression_text(condition)})"
            return f"{_grouped(left)} OPTIONAL {{ {_inline(right)}{test} }}"
        case Filter(inner, condition):
            return f"{_inline(inner)} FILTER({expression_text(condition)})"
        case Union(parts):
            return " UNION ".join(f"{{ {_inline(part)} }}" for part in parts)
        case Minus(left, right):
            return f"{_grouped(left)} MINUS {{ {_inline(right)} }}"
        case Extend(inner, variable, expression):
            return f"{_inline(inner)} BIND({expression_text(expression)} AS {term_text(variable)})"
        case Values():
            return _values(pattern)
        case Graph(name, inner):
            return f"GRAPH {term_text(name)} {{ {_inline(inner)} }}"
        case Window(windows, inner, with_static, graph):
            return f"WINDOW {_window_names(windows, with_static, graph)} {{ {_inline(inner)} }}"
        case State():
            return f"{_state_head(pattern)} {{ {' . '.join(map(triple_text, pattern.triples))} }}"
        case Match():
            return f"MATCH {_match_head(pattern)} {{ {_events(pattern.pattern)} }}"
        case EventJoin(events, others, conditions):
            of_events = [*map(_event, events), *map(_grouped, others)]
            return " ".join([*of_events, *(f"FILTER({expression_text(each)})" for each in conditions)])
        case WindowVariable(variable, inner):
            return f"WINDOW {term_text(variable)} {{ {_inline(inner)} }}"
        case Service(endpoint, inner, silent):
            return f"SERVICE {'SILENT ' if silent else ''}{term_text(endpoint)} {{ {_inline(inner)} }}"
        case _:
            return f"{{ {' '.join(line.strip() for line in _lines(pattern))} }}"


def _state_head(state: State) -> str:
    return "STATE" if state.step is None else f"STATE [STEP {_duration(state.step)}]"


def _match_head(match: Match) -> str:
    """The clauses between MATCH and its events."""
    within = [] if match.within is None else [_duration(match.within) if match.within else "0s"]
    within += [] if match.within_events is None else [f"{match.within_events} EVENTS"]
    words = ["" if match.policy == "ALL" else match.policy, "WITHIN", *within]
    words += ["STRICT TIME" if match.strict_time else "", "CONSUME" if match.consume else ""]
    return " ".join(word for word in words if word)


def _events(pattern: EventPattern) -> str:
    """An event pattern as MATCH has it; an event with the name of its window."""
    match pattern:
        case Event():
            return _event(pattern)
        case EventRepetition(part):
            return f"{_unit(part)}+"
        case EventAlternatives(parts):
            return " OR ".join(map(_unit, parts))
        case EventConjunction(parts):
            return " AND ".join(map(_unit, parts))
        case _:
            text = _unit(pattern.parts[0])
            for part, absent in zip(pattern.parts[1:], pattern.absent, strict=True):
                text += "" if absent is None else f" SEQ NOT {_event(absent)}"
                text += f" SEQ {_unit(part)}"
            return text


def _unit(pattern: EventPattern) -> str:
    text = _events(pattern)
    return text if isinstance(pattern, Event | EventRepetition) else f"{{ {text} }}"


def _event(event: Event) -> str:
    time = "" if event.time is None else f" AT {term_text(event.time)}"
    inside = [" . ".join(map(triple_text, event.triples))] if event.triples else []
    inside += [f"BIND({expression_text(each)} AS {term_text(variable)})" for variable, each in event.bindings]
    inside += [f"FILTER({expression_text(condition)})" for condition in event.conditions]
    kept = " [ALL]" if event.keep_all else ""
    return f"EVENT ON {term_text(event.window)}{kept}{time} {{ {' '.join(inside)} }}"


def _grouped(pattern: Pattern) -> str:
    text = _inline(pattern)
    return (
        text
        if isinstance(pattern, BGP | PathPattern | Graph | Window | WindowVariable | Match | State | Values)
        else f"{{ {text} }}"
    )


# --- the tree ------------------------------------------------------------------------------------------------------


def algebra_text(query: ContinuousQuery) -> str:
    """A query as an indented tree: its form and columns, windows and pattern. Ends without a line break."""
    lines = [f"{query.form} {query.output.value} in {query.dialect.value}, windows are {_kind_of_windows(query)}"]
    if query.name is not None:
        lines.append(f"name {query.name}")
    if query.variables:
        lines.append(f"variables {_names(query.variables)}")
    lines += [f"describe {term_text(term)}" for term in query.describe]
    lines += [f"template {triple_text(triple)}" for triple in query.template]
    lines += [f"from {term_text(graph)}" for graph in query.static_from]
    lines += [f"from named {term_text(graph)}" for graph in query.static_named]
    lines += map(window_text, query.windows)
    return "\n".join([*lines, *_lines(query.pattern)])


def _kind_of_windows(query: ContinuousQuery) -> str:
    return "bags" if query.bag_windows else "sets"


def pattern_text(pattern: Pattern) -> str:
    """A pattern as an indented tree, one node a line."""
    return "\n".join(_lines(pattern))


def window_text(window: WindowDefinition) -> str:
    """A window's definition on one line."""
    text = f"window {term_text(window.name)} on {term_text(window.stream)} {extent_text(window.extent)}"
    if window.partition_by:
        text += f" partition by {_names(window.partition_by)}"
    return text if window.time_predicate is None else f"{text} @ {term_text(window.time_predicate)}"


def extent_text(extent: Extent) -> str:
    """A window's extent in brackets, times in the largest unit that divides them.

    >>> extent_text(TimeRange(90_000_000, 60_000_000))
    '[RANGE 90s STEP 1m]'
    """
    match extent:
        case TimeRange(width, step, start, delay):
            size = f"RANGE {_duration(width)}"
            if delay:
                size = f"FROM NOW-{_duration(delay + width)} TO NOW-{_duration(delay)}"
            every = "" if step is None else f" STEP {_duration(step)}"
            return f"[{size}{every}{f' START {start}' if start else ''}]"
        case Session(gap, step, start):
            every = "" if step is None else f" STEP {_duration(step)}"
            return f"[SESSION {_duration(gap)}{every}{f' START {start}' if start else ''}]"
        case ElementCount(count, step):
            return f"[COUNT {count}{'' if step is None else f' STEP {step}'}]"
        case TripleCount(count, step):
            return f"[TRIPLES {count}{'' if step is None else f' STEP {step}'}]"
        case Everything():
            return "[ALL]"
        case EachInstant():
            return "[ALL] by instants"


def _duration(micros: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if micros % size == 0)
    return f"{micros // size}{unit}"


def _lines(pattern: Pattern) -> Iterator[str]:
    title, children = _described(pattern)
    yield title
    for child in children:
        yield from (f"  {line}" for line in ([child] if isinstance(child, str) else _lines(child)))


def _described(pattern: Pattern) -> tuple[str, Iterable[Pattern | str]]:
    """A node's own line, and the patterns below it."""
    match pattern:
        case BGP(triples):
            return "bgp", map(triple_text, triples)
        case PathPattern():
            return f"path {triple_text(pattern)}", ()
        case Join(left, right):
            return "join", (left, right)
        case NaryJoin(parts):
            return "n-ary join", parts
        case LeftJoin(left, right, condition):
            return "left join" + ("" if condition is None else f" on {expression_text(condition)}"), (left, right)
        case Filter(inner, condition):
            return f"filter {expression_text(condition)}", (inner,)
        case Union(parts):
            return "union", parts
        case Minus(left, right, uncounted):
            return "minus" + (f" not counting {_names(sorted(uncounted))}" if uncounted else ""), (left, right)
        case Extend(inner, variable, expression):
            return f"extend {term_text(variable)} = {expression_text(expression)}", (inner,)
        case Values():
            return _values(pattern), ()
        case Graph(name, inner, in_window):
            return f"graph {term_text(name)}{' of the window' if in_window else ''}", (inner,)
        case Window(windows, inner, with_static, graph):
            return f"window {_window_names(windows, with_static, graph)}", (inner,)
        case State(triples):
            return f"{_state_head(pattern).lower()}: {' . '.join(map(triple_text, triples))}", ()
        case Match(events):
            return f"match {_match_head(pattern)}: {_events(events)}", ()
        case EventJoin(events, others, conditions):
            tests = f" where {' && '.join(map(expression_text, conditions))}" if conditions else ""
            return f"join of events{tests}", (*map(_event, events), *others)
        case Planned(number):
            return f"planned {number}", ()
        case WindowVariable(variable, inner):
            return f"each window {term_text(variable)}", (inner,)
        case Service(endpoint, inner, silent):
            return f"service {'silent ' if silent else ''}{term_text(endpoint)}", (inner,)
        case _:
            return _described_modifier(pattern)


def _described_modifier(
    pattern: Group | Project | Distinct | Reduced | OrderBy | Slice,
) -> tuple[str, Iterable[Pattern | str]]:
    match pattern:
        case Group(inner, keys, aggregates):
            calls = [f"{term_text(variable)} = {aggregate_text(call)}" for variable, call in aggregates]
            return f"group by {_names(keys) or '()'}: {', '.join(calls)}".removesuffix(": "), (inner,)
        case Project(inner, variables):
            return f"project {_names(variables)}", (inner,)
        case Distinct(inner):
            return "distinct", (inner,)
        case Reduced(inner):
            return "reduced", (inner,)
        case OrderBy(inner, conditions):
            texts = [f"{'DESC' if descending else 'ASC'}({expression_text(key)})" for key, descending in conditions]
            return f"order by {' '.join(texts)}", (inner,)
        case Slice(inner, offset, limit, by):
            each = f" for each {_names(by)}" if by else ""
            return f"slice offset {offset}{'' if limit is None else f' limit {limit}'}{each}", (inner,)


def _values(values: Values) -> str:
    rows = "".join(f" ({' '.join(map(_cell, row))})" for row in values.rows)
    return f"VALUES ({_names(values.variables)}) {{{rows} }}"


def _cell(term: Term | BNode | None) -> str:
    if isinstance(term, BNode):
        return f"_:{term}"
    return "UNDEF" if term is None else term_text(term)


def _names(variables: Iterable[Variable]) -> str:
    return " ".join(map(term_text, variables))


def _window_names(windows: Iterable[Term], with_static: bool, graph: Term | Variable | None) -> str:
    within = [] if graph is None else [f"GRAPH {term_text(graph)}"]
    return " ".join([*map(term_text, windows), *(["and static data"] if with_static else []), *within])
