"""The columns by which the facts of temporal rules are divided, so that each part derives the answers about its own values.

Of a predicate that is asked in one of its columns, each part derives the facts whose value there is its own. It needs, for each
rule that derives them, those facts of the body's atoms that have the same value: so the atoms are asked in the columns of the same
variable, from the predicates of STATE back to the facts of the streams. An atom that lacks the variable is needed whole in all
parts, which is worth while only if it is made of given facts alone.

>>> from cqels_py.plan.temporal_rules import Index, Kind, Predicate, RuleProgram, RuleRow
>>> near, hot, alarm = (Predicate(name, 1 if name[0] == "a" else 2, False, True) for name in ("near", "hot", "a alarm"))
>>> row = RuleRow(Kind.JOIN, body=1, head=2, lo=0, hi=0, head_columns=(0,), index=0, probe_columns=(1,))
>>> program = RuleProgram((near, hot, alarm), (row,), (Index(0, (0,)),), ())
>>> keys = fact_keys(program, {2: 0})
>>> keys.columns, keys.everywhere
((frozenset(), frozenset({0}), frozenset({0})), frozenset({0}))
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from cqels_py.plan.nodes import PatternText, StateRows
from cqels_py.plan.temporal_rules import PlannedRules, RuleProgram, RuleRow

CLASS = "a "
"""The predicate of `?x a <c>` begins with this."""
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


@dataclass(frozen=True, slots=True)
class FactKeys:
    """Which facts a part needs: by predicate those that have one of its values in any of the `columns`; all facts of the
    predicates `everywhere`. Other facts are not needed at all."""

    columns: tuple[frozenset[int], ...]
    everywhere: frozenset[int]


def fact_keys(program: RuleProgram, asked: Mapping[int, int]) -> FactKeys | str:
    """The keys of a program that is `asked` for these predicates, each divided by a column; or why it cannot be divided."""
    search = _Search(program)
    try:
        for predicate, column in asked.items():
            search.ask(predicate, column)
        return search.found()
    except _NoKey as reason:
        return str(reason)


class _NoKey(Exception):
    """The message says why a program is not divided."""


class _Search:
    def __init__(self, program: RuleProgram) -> None:
        self._program = program
        self._rules: dict[int, list[RuleRow]] = defaultdict(list)
        for rule in program.rules:
            self._rules[rule.head].append(rule)
        self._columns: list[set[int]] = [set() for _ in program.predicates]
        self._everywhere: set[int] = set()

    def found(self) -> FactKeys:
        """Raises _NoKey if all facts would be needed everywhere."""
        if not any(self._columns[n] for n in given_predicates(self._program) if n not in self._everywhere):
            raise _NoKey("its rules need all facts in each part")
        return FactKeys(tuple(map(frozenset, self._columns)), frozenset(self._everywhere))

    def ask(self, predicate: int, column: int) -> None:
        """Facts of the predicate are needed where their value in the column belongs."""
        waiting = [(predicate, column, "STATE")]
        while waiting:
            predicate, column, asker = waiting.pop()
            if column in self._columns[predicate]:
                continue
            self._columns[predicate].add(column)
            asker = self._name(predicate) or asker
            for rule in self._rules[predicate]:
                for atom, place in self._atoms(rule, column, asker):
                    if place is None:
                        self._ask_everywhere(atom, asker)
                    else:
                        waiting.append((atom, place, asker))

    def _atoms(self, rule: RuleRow, column: int, asker: str) -> Iterator[tuple[int, int | None]]:
        """The predicates of a rule's body, with the columns that have the value which the head has in a column."""
        source, width = rule.head_columns[column], self._program.predicates[rule.body].arity
        if source < 0:
            raise _NoKey(f"a rule of {asker} sets a value that its facts do not have")
        yield rule.body, source if source < width else None
        if rule.index is not None:
            index = self._program.indexes[rule.index]
            shared = (c for c, probe in zip(index.columns, rule.probe_columns, strict=True) if probe == source)
            yield index.predicate, source - width if source >= width else next(shared, None)

    def _ask_everywhere(self, predicate: int, asker: str) -> None:
        """All facts of the predicate are needed in all parts. Raises _NoKey if rules derive them."""
        if predicate in self._everywhere:
            return
        if (name := self._name(predicate)) and self._rules[predicate]:
            raise _NoKey(f"a rule of {asker} joins facts of {name} with other values")
        self._everywhere.add(predicate)
        for rule in self._rules[predicate]:
            self._ask_everywhere(rule.body, asker)
            if rule.index is not None:
                self._ask_everywhere(self._program.indexes[rule.index].predicate, asker)

    def _name(self, predicate: int) -> str:
        found = self._program.predicates[predicate]
        return f"<{found.name.removeprefix(CLASS)}>" if found.shown else ""


def given_predicates(program: RuleProgram) -> list[int]:
    """The predicates whose facts are triples, by number: those that a rule asks for."""
    asked = {rule.body for rule in program.rules}
    return [
        number
        for number, each in enumerate(program.predicates)
        if each.shown and number in asked and each.arity == (1 if each.name.startswith(CLASS) else 2)
    ]


def state_keys(rules: PlannedRules, states: Sequence[StateRows], variable: str) -> FactKeys | str:
    """The keys of the facts that some STATEs need in parts that a variable divides; or why it does not."""
    missing = next((each for each in states if variable not in each.variables), None)
    if missing is not None:
        return f"STATE {{ {missing.text} }} has no ?{variable}"
    return fact_keys(rules.program, {rules.program.answers[s.number]: s.variables.index(variable) for s in states})


@dataclass(frozen=True, slots=True)
class FactPattern:
    """Triples of a stream that are facts of a predicate.

    `keys`: for a variable the position of the triple whose value divides them; without a variable's key each of its parts needs
    all.
    """

    stream: int
    pattern: PatternText
    keys: tuple[tuple[str, int], ...]

    @property
    def variables(self) -> frozenset[str]:
        """The variables that divide the triples."""
        return frozenset(name for name, _ in self.keys)


def fact_patterns(
    rules: PlannedRules | None, states: Sequence[StateRows], variables: Sequence[str]
) -> tuple[FactPattern, ...]:
    """The triples that the rules need in parts that `variables` divide, those of them that the STATEs have.

    A triple that matches several of them belongs to the parts of each.
    """
    if rules is None or not states:
        return ()
    by_variable = []
    for name in variables:
        if any(name in state.variables for state in states):
            keys = state_keys(rules, states, name)
            assert isinstance(keys, FactKeys), keys
            by_variable.append((name, keys))
    found = []
    for number in given_predicates(rules.program):
        predicate = rules.program.predicates[number]
        is_class = predicate.name.startswith(CLASS)
        name = f"<{predicate.name.removeprefix(CLASS)}>"
        pattern = ("?s", TYPE, name) if is_class else ("?s", name, "?o")
        choices: list[list[tuple[tuple[str, int], ...]]] = [
            [()] if number in keys.everywhere else [((name, 2 * column),) for column in sorted(keys.columns[number])]
            for name, keys in by_variable
        ]
        found += [
            FactPattern(stream, pattern, sum(chosen, ())) for stream in rules.streams for chosen in product(*choices)
        ]
    return tuple(found)
