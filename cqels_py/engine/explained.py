"""The plan of a query as JSON and as a graph for graphviz, from its text; names stand for IRIs where a prefix is declared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from cqels_py.dataflow.explain import headline
from cqels_py.dataflow.plan_drawing import Box, svg

if TYPE_CHECKING:
    from cqels_py.engine.compile import CompiledQuery

_PREFIX = re.compile(r"\bPREFIX\s+([\w.-]*):\s*<([^<>\s]*)>", re.IGNORECASE)
_IRI = re.compile(r"<([^<>\s]+)>")
_LOCAL = re.compile(r"\w[\w-]*|")
_LEAD = re.compile(r"((?:│  |   )*)([├└]─ )?")
_LEVEL = 3
"""Characters by which an input is further to the right than its operator."""
_WIDTH = 44


def with_prefixes(explanation: str, text: str) -> str:
    """IRIs as names, by the prefixes that the query `text` declares; the longest one that fits.

    >>> with_prefixes("{ ?s <urn:a:b> <urn:c> }", "PREFIX a: <urn:a:> SELECT …")
    '{ ?s a:b <urn:c> }'
    """
    declared = sorted(_PREFIX.findall(text), key=lambda each: -len(each[1]))

    def named(found: re.Match[str]) -> str:
        for prefix, start in declared:
            local = found[1][len(start) :]
            if start and found[1].startswith(start) and _LOCAL.fullmatch(local):
                return f"{prefix}:{local}"
        return found[0]

    return _IRI.sub(named, explanation)


@dataclass(slots=True)
class ExplainedOperator:
    """An operator as `explain` describes it, and the operators that it reads."""

    operator: str
    inputs: list[ExplainedOperator] = field(default_factory=list)


def operators_of(explanation: str) -> ExplainedOperator:
    """The tree that the part `plan` of an explanation shows."""
    lines = explanation.partition("\nplan\n")[2].partition("\n\n")[0].splitlines()
    path: list[ExplainedOperator] = []
    for line in lines:
        lead = _LEAD.match(line, 2)
        assert lead is not None
        depth, text = len(lead[1]) // _LEVEL + bool(lead[2]), line[lead.end() :]
        if path and not lead[2]:
            path[-1].operator += "\n" + text
            continue
        found = ExplainedOperator(text)
        del path[depth:]
        if path:
            path[-1].inputs.append(found)
        path.append(found)
    return path[0]


def as_json(compiled: CompiledQuery, explanation: str) -> str:
    """The answer of `explain`, for programs: an object with the members form, variables, output, streams, windows, memory, warnings,
    and plan, whose operators have a text and their inputs."""
    plan, memory = compiled.plan, compiled.memory
    found: dict[str, Any] = {
        "form": plan.form,
        "variables": list(plan.variables),
        "output": plan.output,
        "streams": list(plan.streams),
        "windows": [{"stream": plan.streams[window.stream], "window": window.text} for window in plan.windows],
        "memory": {"kind": memory.kind, "verdict": str(memory)},
        "warnings": list(compiled.warnings),
        "plan": asdict(operators_of(with_prefixes(explanation, compiled.text))),
    }
    return json.dumps(found, indent=1, ensure_ascii=False)


def as_dot(compiled: CompiledQuery, explanation: str) -> str:
    """The operators as a directed graph in the DOT language: changes go upwards, from windows to the results."""
    root = operators_of(with_prefixes(explanation, compiled.text))
    lines = ["digraph plan {", "  rankdir=BT;", "  node [shape=box, style=rounded, fontname=Helvetica, fontsize=11];"]
    lines += [f"  {line}" for line in _drawn(root, "n")]
    return "\n".join([*lines, "}"])


def as_svg(compiled: CompiledQuery, explanation: str) -> str:
    """The graph as a picture."""
    boxes: list[Box] = []

    def add(node: ExplainedOperator) -> int:
        text, *kept = node.operator.replace("\n", " ").split("; ")
        number = len(boxes)
        boxes.append(Box(text))
        inputs = tuple(add(each) for each in node.inputs)
        boxes[number] = Box(text, inputs, tuple(row for part in kept for row in wrap(part, _WIDTH)))
        return number

    add(operators_of(with_prefixes(explanation, compiled.text)))
    return svg(boxes, headline(compiled.plan))


def _drawn(node: ExplainedOperator, name: str) -> Iterator[str]:
    rows = [row for part in node.operator.replace("; ", "\n").splitlines() for row in wrap(part, _WIDTH)]
    yield f'{name} [label="{"".join(_escaped(row) + chr(92) + "l" for row in rows)}"];'
    for number, each in enumerate(node.inputs):
        yield from _drawn(each, f"{name}_{number}")
        yield f"{name}_{number} -> {name};"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
