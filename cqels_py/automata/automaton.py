"""A parallelized complex event automaton: states, and transitions that each join runs of several states."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cqels_py.errors import UsageError

if TYPE_CHECKING:
    from cqels_py.automata.evaluation import Evaluation

Valuation = dict[Hashable, tuple[int, ...]]
"""Each label's positions in the stream."""


@dataclass(frozen=True)
class Predicate:
    """A condition on one tuple: its relation, values at positions (from 0), and pairs of positions with equal values."""

    relation: str
    constants: Mapping[int, Hashable] = field(default_factory=dict)
    equal: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Key:
    """The values at some positions of a tuple; of tuples that do not meet the conditions there is none."""

    positions: Sequence[int]
    constants: Mapping[int, Hashable] = field(default_factory=dict)
    equal: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Transition:
    """A tuple that meets `predicate` joins one run of each of the `sources`, and brings the automaton into the state `target`.

    `sources`: for each state a pair of keys by relation: of the last tuple of its run, and of the tuple at hand. They have to be
    defined and equal. `labels`: the names under which the tuple's position is noted.
    """

    sources: Mapping[Hashable, tuple[Mapping[str, Key], Mapping[str, Key]]]
    predicate: Predicate
    labels: Iterable[Hashable]
    target: Hashable

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        if not self.labels:
            raise UsageError(f"the transition into {self.target!r} has no label: give it one, such as {{'o'}}")
        for state, (left, right) in self.sources.items():
            lengths = {len(key.positions) for keys in (left, right) for key in keys.values()}
            if len(lengths) > 1:
                raise UsageError(
                    f"the keys of the transition from {state!r} into {self.target!r} have different lengths"
                )


class Automaton:
    """Transitions and final states: `run` it over tuples (relation, value, …), or `start` it and push tuples one by one.

    Its results are valuations: for each label the positions of the tuples that were read under it. A valuation that several runs
    give is there several times.
    """

    def __init__(self, transitions: Iterable[Transition], final: Iterable[Hashable]) -> None:
        self.transitions = tuple(transitions)
        self.final = frozenset(final)
        targets = {transition.target for transition in self.transitions}
        for transition in self.transitions:
            for state in transition.sources:
                if state not in targets:
                    raise UsageError(
                        f"no transition leads into {state!r}, from which one leads into {transition.target!r}"
                    )
        for state in self.final - targets:
            raise UsageError(f"no transition leads into the final state {state!r}")

    @property
    def states(self) -> tuple[Hashable, ...]:
        """All states, in the order of the transitions into them."""
        return tuple(dict.fromkeys(transition.target for transition in self.transitions))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Automaton:
        """The automaton of a JSON object with `transitions` {P, U, B, L, q} and `final`, as the paper names their parts.

        P: states; U {rel, const {position: value}, eq [[p, q]]}: the predicate; B {state: {left, right}}: keys by relation, as lists
        of positions or as objects {pos, const, eq}; L: labels; q: the target. UsageError for other content.

        >>> first = {"P": [], "U": {"rel": "T"}, "B": {}, "L": ["o"], "q": "q0"}
        >>> list(Automaton.from_json({"transitions": [first], "final": ["q0"]}).run([("T", 2), ("S", 1)]))
        [[{'o': (0,)}], []]
        """
        try:
            transitions = [
                Transition(
                    {state: _keys_of(each["B"].get(state), state, each["q"]) for state in each["P"]},
                    Predicate(each["U"]["rel"], *_conditions(each["U"])),
                    each["L"],
                    each["q"],
                )
                for each in document["transitions"]
            ]
            return cls(transitions, document["final"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"not an automaton: {type(error).__name__} {error}; expected transitions with P, U, B, L and q, and final"
            ) from None

    def to_json(self) -> dict[str, Any]:
        """The JSON form that `from_json` reads."""
        transitions = [
            {
                "P": list(each.sources),
                "U": {"rel": each.predicate.relation, **_condition_json(each.predicate)},
                "B": {
                    state: {side: {r: _key_json(key) for r, key in keys.items()} for side, keys in _sides(pair)}
                    for state, pair in each.sources.items()
                },
                "L": list(each.labels),
                "q": each.target,
            }
            for each in self.transitions
        ]
        return {"states": list(self.states), "transitions": transitions, "final": sorted(self.final, key=repr)}

    @classmethod
    def from_query(cls, atoms: Iterable[Sequence[Hashable]]) -> Automaton:
        """The automaton of a hierarchical conjunctive query; labels are the numbers of its atoms, from 0.

        An atom is (relation, argument, …): texts that begin with "?" are variables, anything else is a constant. UsageError if the
        query is not hierarchical: no automaton is equivalent to it then (Theorem 4.2).

        >>> pairs = Automaton.from_query([("T", "?x"), ("R", "?x", "?y")])
        >>> list(pairs.run([("R", 1, 5), ("T", 1)]))
        [[], [{0: (1,), 1: (0,)}]]
        """
        from cqels_py.automata.translation import translated

        return cls(*translated([tuple(atom) for atom in atoms]))

    def start(self, window: int | None = None) -> Evaluation:
        """Begin a run over a stream. `window`: how many positions apart the first and the last tuple of a match may be."""
        from cqels_py.automata.evaluation import Evaluation

        return Evaluation(self, window)

    def run(self, stream: Iterable[Sequence[Hashable]], window: int | None = None) -> Iterator[list[Valuation]]:
        """For each tuple (relation, value, …) of a stream the valuations that end with it."""
        evaluation = self.start(window)
        for each in stream:
            yield evaluation.push(each)


def _conditions(document: Mapping[str, Any]) -> tuple[dict[int, Hashable], list[tuple[int, int]]]:
    constants = {int(position): value for position, value in document.get("const", {}).items()}
    return constants, [(one, other) for one, other in document.get("eq", [])]


def _keys_of(document: Any, state: Hashable, target: Hashable) -> tuple[dict[str, Key], dict[str, Key]]:
    if document is None:
        raise ValueError(f"B says nothing about {state!r}, from which a transition leads into {target!r}")
    left, right = ({relation: _key(each) for relation, each in document[side].items()} for side in ("left", "right"))
    return left, right


def _key(document: Any) -> Key:
    return Key(document) if isinstance(document, list) else Key(document["pos"], *_conditions(document))


def _sides(pair: tuple[Mapping[str, Key], Mapping[str, Key]]) -> Iterator[tuple[str, Mapping[str, Key]]]:
    return zip(("left", "right"), pair, strict=True)


def _key_json(key: Key) -> dict[str, Any]:
    return {"pos": list(key.positions), **_condition_json(key)}


def _condition_json(condition: Predicate | Key) -> dict[str, Any]:
    constants = {str(position): value for position, value in condition.constants.items()}
    return {"const": constants, "eq": [list(pair) for pair in condition.equal]}
