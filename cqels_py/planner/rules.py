"""The rewrites of plans, in order: functions from a node to one that delivers the same, applied to all nodes, inputs first.

Three more optimisations are choices of the planner, as they decide which patterns are planned, and under which variables:
`split_by_boundness` (boundness.py), `join_entities_first` and `cut_joins_by_variables` (joins.py). All of them can be left out, by
name; answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from cqels_py.plan.nodes import Node, Plan
from cqels_py.plan.traverse import bottom_up
from cqels_py.planner.duplicates import drop_duplicates
from cqels_py.planner.factorising import factorise_groups

RULES: tuple[Callable[[Node], Node], ...] = (drop_duplicates, factorise_groups)
CHOICES = ("split_by_boundness", "join_entities_first", "cut_joins_by_variables", "count_events")


def rewrite_plan(plan: Plan, without: Collection[str] = ()) -> Plan:
    """Apply the rules to a plan, `without` those of these names."""
    root = plan.root
    for rule in RULES:
        if rule.__name__ not in without:
            root = bottom_up(root, rule)
    return replace(plan, root=root)
