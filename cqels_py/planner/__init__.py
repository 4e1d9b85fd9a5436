"""Algebra to physical plan: operators, indexes, expression programs; and refusal of what cannot be evaluated exactly."""

from cqels_py.planner.planner import plan_query

__all__ = ["plan_query"]
