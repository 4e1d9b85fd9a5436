"""How long derived facts can last after the facts that they follow from."""

from __future__ import annotations

from cqels_py.plan.temporal_rules import FOREVER, Kind, RuleProgram, RuleRow


def reach(program: RuleProgram) -> int | None:
    """The most microseconds from a fact to the end of the last fact that follows from it; None if it may hold for ever."""
    latest = dict.fromkeys(range(len(program.predicates)), 0)
    for _ in range(len(program.predicates) + 1):
        changed = False
        for rule in program.rules:
            end = latest[rule.body] + _delay(rule)
            if end >= FOREVER:
                return None
            if end > latest[rule.head]:
                latest[rule.head], changed = end, True
        if not changed:
            return (max(latest.values(), default=0) + 1) >> 1
    return None


def lasting(program: RuleProgram) -> tuple[str, ...]:
    """The predicates that may hold for ever: by FOREVER, or by a recursion with a delay."""
    found = {rule.head for rule in program.rules if _delay(rule) >= FOREVER}
    found |= {number for number, each in enumerate(program.predicates) if each.delayed}
    for _ in program.predicates:
        found |= {rule.head for rule in program.rules if rule.body in found}
    return tuple(program.predicates[number].name for number in sorted(found) if program.predicates[number].shown)


def _delay(rule: RuleRow) -> int:
    """In doubled microseconds."""
    if rule.kind is Kind.ALWAYS:
        return rule.lo
    return rule.hi if rule.kind in (Kind.SOMETIME, Kind.SINCE_RIGHT) else 0
