"""Algebra to algebra: the rewrites, in the order in which `rules` has them."""

from cqels_py.rewrites.rules import OPTIONAL, REQUIRED, rewrite

__all__ = ["OPTIONAL", "REQUIRED", "rewrite"]
