"""Jelly that goes on at a frame: with the saved tables the bytes are those of a writer that never stopped."""

from __future__ import annotations

import io
import json
from random import Random

import pyoxigraph as ox
import pytest

from cqels_py.formats.jelly_graphs import JellyFrames
from cqels_py.state.named_values import restore, values_of
from tests.support.servers import needed_module


def graphs(random: Random, count: int, names: int) -> list[list[ox.Quad]]:
    """Graphs with more different names, prefixes and datatypes than the tables hold."""
    found = []
    for number in range(count):
        quads = [
            ox.Quad(
                ox.NamedNode(f"http://ex.org/{random.randrange(200)}/s{random.randrange(names)}"),
                ox.NamedNode(f"http://ex.org/p{random.randrange(3)}"),
                random.choice(
                    [
                        ox.Literal("1", datatype=ox.NamedNode(f"http://ex.org/d{random.randrange(40)}")),
                        ox.Literal("één", language="nl"),
                        ox.Literal('a "b"\n'),
                        ox.BlankNode(f"b{random.randrange(9)}"),
                        ox.NamedNode(f"urn:x{random.randrange(names)}"),
                    ]
                ),
                ox.DefaultGraph() if place == 0 else ox.NamedNode(f"http://ex.org/g{number}"),
            )
            for place in range(random.randrange(1, 12))
        ]
        found.append(quads)
    return found


@pytest.mark.parametrize("names", [20, 9_000])
def test_the_bytes_are_the_same(names: int) -> None:
    needed_module("pyjelly", "jelly")
    random = Random(names)
    written = graphs(random, 1_500, names)
    whole, parts = io.BytesIO(), io.BytesIO()
    frames = JellyFrames(whole)
    for graph in written:
        frames.write(graph)
    frames = JellyFrames(parts)
    for place, graph in enumerate(written):
        if place == 0 or random.random() < 0.01:
            state = json.loads(json.dumps(values_of(frames)))
            frames = JellyFrames(parts)
            restore(frames, state)
        frames.write(graph)
    assert parts.getvalue() == whole.getvalue()
    assert (len(values_of(frames)["tables"][2][0][0]) == 4_000) == (names == 9_000)  # type: ignore[index, arg-type, call-overload]
