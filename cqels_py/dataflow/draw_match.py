"""The automata of MATCH as pictures, in the language of graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from cqels_py.dataflow.explain_match import edge_text, event_text, within_text
from cqels_py.plan.nodes import MatchRows, Plan
from cqels_py.plan.traverse import nodes_of


def has_automata(plan: Plan) -> bool:
    """Does the query have MATCH?"""
    return any(isinstance(node, MatchRows) for node in nodes_of(plan.root))


def automata_dot(plan: Plan) -> str:
    """A directed graph in the DOT language, with a cluster for each MATCH of a query."""
    matches = [node for node in nodes_of(plan.root) if isinstance(node, MatchRows)]
    lines = [
        "digraph automata {",
        "  rankdir=LR;",
        "  node [shape=circle, fontname=Helvetica];",
        "  edge [fontname=Helvetica];",
    ]
    for number, node in enumerate(matches):
        lines += [
            f"  subgraph cluster_{number} {{",
            *(f"    {line}" for line in _cluster(plan, node, f"m{number}")),
            "  }",
        ]
    return "\n".join([*lines, "}"])


def _cluster(plan: Plan, node: MatchRows, name: str) -> Iterator[str]:
    legend = [f"{number}: {event_text(plan, event)}" for number, event in enumerate(node.events, 1)]
    title = f"MATCH {'' if node.policy == 'ALL' else f'{node.policy} '}{within_text(node)}{' CONSUME' if node.consume else ''}"
    yield f"label={_quoted([title, *legend])}; labeljust=l; fontname=Helvetica;"
    for number, state in enumerate(node.states):
        shape = ", shape=doublecircle" if state.final else ""
        yield f'{name}_{number} [label="{state.event + 1}"{shape}];'
        if state.initial:
            yield f'{name}_before_{number} [label="", shape=point]; {name}_before_{number} -> {name}_{number};'
    for t in node.transitions:
        absent = [] if t.absent < 0 else [f"no {node.absent[t.absent].event + 1} between"]
        label = [edge_text(t).strip(), *absent]
        yield f"{name}_{t.source} -> {name}_{t.target} [label={_quoted([each for each in label if each])}];"


def _quoted(lines: list[str]) -> str:
    """A text of several lines, each at the left."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') + "\\l" for line in lines)
    return '"' + "".join(escaped) + '"'
