"""Values that are in very many triples: the tasks that route triples look at a sample, so that a user knows which ones are heavy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.dictionary import Dictionary
from cqels_py.distribution.heavy_values import tests_of
from cqels_py.distribution.stages import PlannedStage
from cqels_py.formats.rendering import render_terms
from cqels_py.plan.nodes import Plan, is_variable
from cqels_py.plan.traverse import scans_of
from cqels_py.state.named_values import Plain

_SAMPLE = 20_000
"""Triples of a task's micro-batch."""
_LEAST = 1_000
"""Triples of a micro-batch, of fewer nothing is said."""
_SEED = 46
_BLANK = "_:"
_SEEN, _PARTS = "seen", "parts"
Frequent: TypeAlias = "dict[str, dict[str, float]]"
"""By variable and N-Triples text, the fraction of the triples with the variable that have the value."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A position of the triples of a stream that match the constants (0: a variable): it has a variable that divides the state.

    `known`: ids of its values that have partitions of their own already.
    """

    variable: str
    stream: int
    constants: tuple[int, ...]
    position: int
    known: tuple[int, ...]


def watched_of(plan: Plan, stage: PlannedStage, dictionary: Dictionary) -> tuple[Watched, ...]:
    """The positions of variables by which a plan's first stage is divided; none for rules, whose heavy values cannot be divided."""
    if stage.shares is None or plan.rules is not None:
        return ()
    names = [name for name, _ in stage.shares.axes]
    heavy = list(tests_of(stage.blocks, None))
    found = []
    for scan in scans_of(stage.root):
        constants = tuple(0 if is_variable(text) else dictionary.encode_one(text) for text in scan.pattern)
        for position, text in enumerate(scan.pattern):
            if is_variable(text) and text[1:] in names:
                known = tuple(id_ for name, id_, _ in heavy if name == text[1:])
                found.append(Watched(text[1:], plan.windows[scan.window].stream, constants, position, known))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Sampled:
    """About how many triples have a variable (`all`), and those of its values that have many (`values`), by N-Triples text."""

    variable: str
    all: int
    values: Mapping[str, int]

    def plain(self) -> Plain:
        """For `from_plain`."""
        return [self.variable, self.all, [*self.values], [*self.values.values()]]

    @staticmethod
    def from_plain(given: Sequence[object]) -> Sampled:
        variable, all_, texts, counts = given
        assert isinstance(variable, str)
        assert isinstance(all_, int)
        assert isinstance(texts, list)
        assert isinstance(counts, list)
        return Sampled(variable, all_, dict(zip(texts, counts, strict=True)))


def sampled(batch: ElementBatch, watched: Sequence[Watched], parts: int, dictionary: Dictionary) -> list[Sampled]:
    """The values that a task's elements have in so many partitions."""
    if not watched or not batch.triples:
        return []
    places = np.arange(batch.triples)
    if batch.triples > _SAMPLE:
        places = np.random.default_rng(_SEED).integers(0, batch.triples, _SAMPLE)
    stream = batch.stream[np.searchsorted(batch.first, places, side="right") - 1]
    # Of each position of a triple; those of graphs are 0 where there are none.
    columns = [column[places] if len(column) else np.zeros(len(places), np.int64) for column in batch.positions]
    ids: dict[str, list[Ids]] = {}
    for each in watched:
        matching = stream == each.stream
        for column, constant in zip(columns, each.constants, strict=False):
            if constant:
                matching &= column == constant
        mine = columns[each.position][matching]
        for known in each.known:
            mine = mine[mine != known]
        ids.setdefault(each.variable, []).append(mine)
    found = []
    for variable, arrays in ids.items():
        values, counts = np.unique(np.concatenate(arrays), return_counts=True)
        total, scale = int(counts.sum()), batch.triples / len(places)
        # Of several tasks one may have less of it than another.
        many = counts * 4 * parts > total
        texts = render_terms(values[many], dictionary).to_pylist()
        mine_of = {
            text: round(count * scale)
            for text, count in zip(texts, counts[many].tolist(), strict=True)
            if text and not text.startswith(_BLANK)
        }
        found.append(Sampled(variable, round(total * scale), mine_of))
    return found


def together(tasks: Iterable[Sampled], parts: int) -> list[Sampled]:
    """The values that several tasks have seen, one for each variable, with the values that matter to so many partitions."""
    totals: Counter[str] = Counter()
    values: dict[str, Counter[str]] = {}
    for each in tasks:
        totals[each.variable] += each.all
        values.setdefault(each.variable, Counter()).update(each.values)
    return [
        Sampled(name, totals[name], {text: n for text, n in counts.most_common() if n * 4 * parts > totals[name]})
        for name, counts in values.items()
    ]


def frequent(seen: Iterable[Sampled], parts: int) -> Frequent:
    """The values that are in more than half of the triples that each of so many partitions would have if all had equally many.

    >>> frequent([Sampled("s", 10_000, {"<a>": 4_000, "<b>": 500})], 4)
    {'s': {'<a>': 0.4}}
    """
    found: Frequent = {}
    for each in seen:
        for text, count in each.values.items() if each.all >= _LEAST else ():
            if count * 2 * parts > each.all:
                found.setdefault(each.variable, {})[text] = round(count / each.all, 3)
    return found


def noted(before: Mapping[str, Any], now: Sequence[Sampled], parts: int) -> tuple[dict[str, Any], Frequent]:
    """A note of the values seen so far, for `noted_values`, and the values that have become frequent.

    `before`: the last note.
    """
    known = [Sampled.from_plain(each) for each in before.get(_SEEN, [])]
    seen = together([*known, *now], parts)
    former = frequent(known, parts)
    new = {
        name: fresh
        for name, values in frequent(seen, parts).items()
        if (fresh := {text: share for text, share in values.items() if text not in former.get(name, {})})
    }
    return {_SEEN: [each.plain() for each in seen], _PARTS: parts}, new


def noted_values(note: Mapping[str, Any]) -> Frequent:
    """The frequent values of a note."""
    return frequent(map(Sampled.from_plain, note.get(_SEEN, [])), note.get(_PARTS, 1))
