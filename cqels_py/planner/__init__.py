"""Algebra to physical plan: operators, indexes, expression programs; and refusal of what cannot be evaluated exactly."""

from cqels_py.planner.planner import plan_query
from cqels_py.planner.rules import CHOICES, RULES, rewrite_plan

__all__ = ["CHOICES", "RULES", "plan_query", "rewrite_plan"]
