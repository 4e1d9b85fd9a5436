"""Rules that were read from a text of their own, for the STATEs of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cqels_py.algebra.nodes import RuleSet
from cqels_py.algebra.temporal_rules import CLASS, Atom, atoms_of
from cqels_py.errors import UsageError
from cqels_py.parser.meteor_triples import meteor_iri, meteor_rule_set
from cqels_py.suggestions import similar

if TYPE_CHECKING:
    from cqels_py.engine.query import Query

NAMESPACE = "urn:meteor:"
"""Of the names in a program, where no other is given."""
FACTS = "urn:meteor:facts"
"""The stream whose triples are facts, where no other is given."""
_COLUMNS = ("x", "y")
_NOT_IN_IRIS = set('<>"{}|\\^` \n\t')


class RegisteredRules:
    """A program of temporal rules. `Engine.register(text, rules=…)` makes it that of a query's STATEs."""

    def __init__(
        self, rule_set: RuleSet, namespace: str, register: Callable[..., Query], given: Mapping[str, Any]
    ) -> None:
        self.rule_set = rule_set
        self.given = given
        """The arguments of `read_rules`, but for `register`, as plain data."""
        self._namespace = namespace
        self._register = register
        heads = [rule.head for rule in rule_set.rules]
        bodies = [atom for rule in rule_set.rules for formula in rule.body for atom in atoms_of(formula)]
        atoms = [*heads, *bodies, *(atom for atom, _ in rule_set.facts)]
        self._widths = dict.fromkeys((_iri_of(atom), len(atom.terms)) for atom in atoms)

    @property
    def streams(self) -> tuple[str, ...]:
        """IRIs of the streams whose triples are facts."""
        return tuple(map(str, self.rule_set.streams))

    def iri(self, name: str) -> str:
        """The IRI of a predicate or constant of the program."""
        return meteor_iri(name, self._namespace)

    def state(self, predicate: str, arguments: int | None = None, **options: Any) -> Query:
        """Register a query for the facts of a predicate, by its name in the program: its columns are `x`, and `y` for the second
        argument.

        `arguments`: how many it has, where the program has predicates of one name with one and with two. `options`: those of
        `Engine.register`. UsageError for a predicate that STATE cannot ask.
        """
        width = self._width(predicate, arguments)
        iri = self.iri(predicate)
        pattern = f"?x a <{iri}>" if width == 1 else f"?x <{iri}> ?y"
        columns = " ".join(f"?{name}" for name in _COLUMNS[:width])
        return self._register(f"SELECT {columns} WHERE {{ STATE {{ {pattern} }} }}", rules=self, **options)

    def _width(self, predicate: str, arguments: int | None) -> int:
        iri = self.iri(predicate)
        widths = sorted(width for name, width in self._widths if name == iri)
        if arguments is not None and arguments not in widths:
            widths = []
        if not widths:
            known = {name.removeprefix(self._namespace) for name, _ in self._widths}
            nearest = similar(predicate, known)
            meant = (
                f": did you mean {nearest}?"
                if nearest and nearest != predicate
                else f": it has {', '.join(sorted(known))}"
            )
            raise UsageError(
                f"the program has no predicate {predicate}"
                f"{'' if arguments is None else f' with {arguments} arguments'}{meant}"
            )
        asked = [width for width in widths if width in (1, 2) and arguments in (None, width)]
        if not asked:
            raise UsageError(
                f"{predicate} has {widths[0] or 'no'} arguments, and STATE asks for triples, which have one or two: add a rule "
                "for those to be asked, as in Seen(X):-Seen3(X,Y,Z)"
            )
        if len(asked) > 1:
            raise UsageError(f"{predicate} has one argument and two: say which, as in state({predicate!r}, 2)")
        return asked[0]


def read_rules(
    text: str,
    syntax: str,
    facts: str | Iterable[str],
    streams: str | Iterable[str],
    namespace: str,
    sources: Sequence[str],
    register: Callable[..., Query],
) -> RegisteredRules:
    """See `Engine.register_rules`."""
    if syntax != "meteor":
        raise UsageError(f"syntax is 'meteor', not {syntax!r}: RULES stand in front of a query, in its own text")
    if not isinstance(text, str):
        raise UsageError(f"a program is a text, not {text!r}")
    streams = (streams,) if isinstance(streams, str) else tuple(streams)
    for name in (namespace, *streams):
        if not isinstance(name, str) or ":" not in name or _NOT_IN_IRIS.intersection(name):
            raise UsageError(f"the namespace and the streams are IRIs, such as 'http://ex.org/facts', not {name!r}")
    if not streams:
        raise UsageError("streams: at least one, whose triples are facts")
    lines = facts.splitlines() if isinstance(facts, str) else list(facts)
    source, facts_source = sources
    rule_set = meteor_rule_set(text, lines, streams, namespace, source=source, facts_source=facts_source)
    if not rule_set.rules:
        raise UsageError("there are no rules here: write one a line, such as Alarm(X):-Boxminus[0,2]Hot(X)")
    given = {
        "text": text,
        "syntax": syntax,
        "facts": lines,
        "streams": list(streams),
        "namespace": namespace,
        "sources": list(sources),
    }
    return RegisteredRules(rule_set, namespace, register, given)


def rule_set_of(rules: RegisteredRules | None) -> RuleSet | None:
    """The rules for a query's STATEs. UsageError for anything but `register_rules` returns."""
    if rules is None:
        return None
    if not isinstance(rules, RegisteredRules):
        raise UsageError(f"rules are those of register_rules, not {rules!r}: engine.register(text, rules=rules)")
    return rules.rule_set


def _iri_of(atom: Atom) -> str:
    return atom.predicate.removeprefix(CLASS)
