"""A short name of a plan, the same in every process: saved state can be restored into a plan of the same name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from enum import Enum

from cqels_py.plan.nodes import Plan, Shared

_ABOUT_RESULTS = frozenset({"name", "template", "warnings"})


def digest_of(plan: Plan) -> str:
    """Sixteen hexadecimal digits, which differ where plans keep different state or deliver other results.

    The order of sets, which differs from process to process, has no influence.
    """
    shared: set[int] = set()
    text = json.dumps([_plain(getattr(plan, f.name), shared) for f in fields(plan) if f.name not in _ABOUT_RESULTS])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: object, shared: set[int]) -> object:
    """A plan's value as JSON has it; a shared sub-plan only once."""
    if isinstance(value, Shared):
        if value.number in shared:
            return ["Shared", value.number]
        shared.add(value.number)
    if is_dataclass(value):
        return [type(value).__name__, *(_plain(getattr(value, f.name), shared) for f in fields(value))]
    if isinstance(value, tuple):
        return [_plain(each, shared) for each in value]
    if isinstance(value, frozenset):
        return sorted(json.dumps(_plain(each, shared)) for each in value)
    return value.value if isinstance(value, Enum) else value
