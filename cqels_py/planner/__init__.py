"""Algebra to physical plan: operators, indexes, expression programs. Queries that cannot be evaluated exactly are refused."""

from cqels_py.planner.planner import plan_query
from cqels_py.planner.rules import CHOICES, RULES, rewrite_plan

__all__ = ["CHOICES", "RULES", "plan_query", "rewrite_plan"]
