"""Facts that belong to one part of a divided state of rules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.dataflow.ownership import Condition
from cqels_py.distribution.rule_keys import FactKeys, state_keys
from cqels_py.plan.nodes import StateRows
from cqels_py.plan.temporal_rules import PlannedRules

Int64 = npt.NDArray[np.int64]


class OwnFacts:
    """The facts that the part in a cell needs to answer some STATEs. The variables of its coordinates divide the rules, if they are
    variables of the STATEs."""

    def __init__(self, rules: PlannedRules, states: Sequence[StateRows], cell: Sequence[Condition]) -> None:
        self._rules = [
            (coordinate, *_tables(rules, state_keys(rules, states, coordinate.variable)))
            for coordinate in cell
            if any(coordinate.variable in state.variables for state in states)
        ]

    def mine(self, facts: Int64) -> npt.NDArray[np.bool_]:
        """Which rows (predicate's number, ids, two more columns) the part needs."""
        mine = np.ones(len(facts), np.bool_)
        predicate = facts[:, 0]
        for coordinate, everywhere, divided in self._rules:
            needed = everywhere[predicate]
            for column, predicates in enumerate(divided):
                asked = predicates[predicate]
                if asked.any():
                    needed |= asked & coordinate.mine(np.ascontiguousarray(facts[:, 1 + column]))
            mine &= needed
        return mine


def _tables(rules: PlannedRules, keys: FactKeys | str) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """By predicate whether all its facts are needed; and by column and predicate whether it is divided there."""
    assert isinstance(keys, FactKeys), keys
    predicates, width = len(rules.program.predicates), rules.program.width
    everywhere = np.zeros(predicates, np.bool_)
    everywhere[list(keys.everywhere)] = True
    divided = np.zeros((width, predicates), np.bool_)
    for predicate, columns in enumerate(keys.columns):
        divided[list(columns), predicate] = True
    return everywhere, divided
