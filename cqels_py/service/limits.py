"""The limits of inputs from outside."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """`body`: bytes of a request's body, as sent; `decompressed`: after decompression. `query`: characters of a query's text.

    `streams`, `queries`: how many there may be. `subscribers`: readers of results at the same time. `results`: kept of each query.
    `state`: bytes that a query may keep (None: no limit). `backlog`: bytes of results
    that may wait for a sink. `answer`: rows of an answer. `pushes`: bodies that are taken in or wait.
    `body_silence`: seconds without a byte of a body after which it is given up; `body_rate`: bytes a second that a body has on
    average, once it has taken `body_grace` seconds.
    `stalled`: seconds after which a subscriber that takes nothing is cut off. `silence`: seconds after which one that gets nothing
    gets a sign of life. Of a one-shot query: `sparql_triples` that are loaded, `sparql_seconds`, and bytes of `sparql_memory`;
    `sparql_queries` at the same time.
    """

    body: int = 32 * MIB
    decompressed: int = 128 * MIB
    query: int = MIB
    streams: int = 1_000
    queries: int = 10_000
    subscribers: int = 10_000
    results: int = 100_000
    state: int | None = None
    backlog: int = 1024 * MIB
    answer: int = 1_000_000
    pushes: int = 256
    body_silence: float = 10.0
    body_rate: float = 4096.0
    body_grace: float = 30.0
    stalled: float = 30.0
    silence: float = 15.0
    sparql_triples: int = 1_000_000
    sparql_seconds: int = 30
    sparql_memory: int = 2048 * MIB
    sparql_queries: int = 4
