"""Algebra to algebra: the rewrites, in the order in which `rules.RULES` has them."""

from cqels_py.rewrites.rules import RULES, optimize

__all__ = ["RULES", "optimize"]
