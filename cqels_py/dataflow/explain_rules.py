"""What explain says about rules and STATE."""

from __future__ import annotations

from cqels_py.plan.nodes import StateRows


def state_text(node: StateRows) -> str:
    """A STATE: its triples, and when its rows change."""
    when = "as soon as what holds does" if node.step is None else f"every {node.step:,} microseconds"
    return f"state {{ {node.text} }}, changes {when}; keeps what holds now or will, by the rules"
