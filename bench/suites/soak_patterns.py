"""Does a pattern's memory stay constant while events with ever-new keys pass through it without end?

    python -m bench.suites.soak_patterns [--elements N] [--guarantee] [--quick]

`A SEQ B` on a key within 50 seconds: each element of two triples has a new IRI, and each A a key that no event had before; its B
comes 20,000 elements later. 50,000 elements are within reach. With 100,000,000 elements (default) these are 150 million different
terms. Resident memory, the dictionary's terms and bytes, and the query's bytes are recorded after each block; `--guarantee` puts
the runs of a last event into persistent heaps. Memory is constant if it grows by at most a twentieth from the second quarter of the
run to the last; otherwise the exit status is 1. Writes bench/results/soak_patterns.json.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import cqels_py as cqels
from bench.suites.observations import PREFIX, STREAM, Int64, Property, numbered, table
from bench.suites.outcome import folder_of, parser_of, taken_now
from bench.suites.soak import MOST_GROWTH, Sample, growth, quarter, sample_now
from cqels_py.batches.results import ResultBatch

ELEMENTS, QUICK = 100_000_000, 300_000
_BLOCK = 50_000
_LATER = 10_000
"""So many keys come between that of an A and that of the B after it."""

_A, _B = f"?%s :kind <{PREFIX}kind/0> ; :key ?k", f"?%s :kind <{PREFIX}kind/1> ; :key ?k"
QUERY = f"""PREFIX : <{PREFIX}>
SELECT ?a ?b {{ MATCH WITHIN WINDOW {{ EVENT ON <{STREAM}> {{ {_A % "a"} }} SEQ EVENT ON <{STREAM}> {{ {_B % "b"} }} }} }}"""
"""One key: lists."""
TWO_KEYS = f"""PREFIX : <{PREFIX}>
SELECT ?a ?b ?c {{ MATCH WITHIN WINDOW {{
  EVENT ON <{STREAM}> {{ {_A % "a"} }}
  SEQ EVENT ON <{STREAM}> {{ {_B % "b"} ; :group ?g }}
  SEQ EVENT ON <{STREAM}> {{ ?c :kind <{PREFIX}kind/0> ; :group ?g }} }} }}"""
"""The runs of a group begin in any order: heaps, with a guarantee."""


def _keys(numbers: Int64) -> Int64:
    # The keys of A are new, those of B have been there.
    made: Int64 = numbers // 2 + _LATER * (1 - numbers % 2)
    return made


PROPERTIES = (
    Property("kind", lambda numbers: numbers % 2, lambda codes: numbered(f"<{PREFIX}kind/", codes, ">", digits=1)),
    Property("key", _keys, lambda codes: numbered(f"<{PREFIX}key/", codes, ">")),
    Property("group", lambda numbers: numbers // 64, lambda codes: numbered(f"<{PREFIX}group/", codes, ">")),
)


class Matches:
    """A subscriber that counts."""

    count = 0

    def take(self, batch: ResultBatch) -> None:
        self.count += len(batch)


def soak(elements: int, window: str, matches: Matches, *, guarantee: bool) -> Iterator[Sample]:
    """The run, sample by sample; `triples` are those of its elements."""
    engine = cqels.Engine()
    query = engine.register((TWO_KEYS if guarantee else QUERY).replace("WINDOW", window), guarantee=guarantee)
    query.subscribe_batches(matches.take, ids=True)
    properties = PROPERTIES if guarantee else PROPERTIES[:2]
    started = time.perf_counter()
    for first in range(0, elements, _BLOCK):
        block = min(_BLOCK, elements - first)
        engine.push_batch(STREAM, table(first, block, properties))
        yield sample_now(engine, query, (first + block) * len(properties), started)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("soak_patterns", __doc__)
    parser.add_argument("--elements", type=int, metavar="N", help=f"default {ELEMENTS:,}")
    parser.add_argument("--guarantee", action="store_true", help="a pattern of two keys, with guarantee=True")
    given = parser.parse_args(arguments)
    elements = given.elements or (QUICK if given.quick else ELEMENTS)
    if elements < 8 * _BLOCK and not given.quick:
        parser.error(f"fewer than {8 * _BLOCK:,} elements say nothing")
    samples, matches = [], Matches()
    for sample in soak(elements, "25s" if given.quick else "50s", matches, guarantee=given.guarantee):
        samples.append(sample)
        if len(samples) % 100 == 0:
            print(
                f"{len(samples) * _BLOCK:,} elements, {sample.seconds:.0f} s, {sample.resident_mb:.0f} MB",
                file=sys.stderr,
            )
    more = growth(samples)
    rate = elements / samples[-1].seconds
    figures = {
        "elements": elements,
        "elements_per_second": round(rate),
        "guarantee": given.guarantee,
        "matches": matches.count,
        "second_quarter_mb": quarter(samples, 1),
        "last_quarter_mb": quarter(samples, 3),
        "growth": round(more, 4),
        "samples": [asdict(sample) for sample in samples[:: max(1, len(samples) // 200)]],
    }
    outcome = taken_now("soak_patterns", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick)
    path = outcome.write(folder_of(given))
    print(
        f"{elements:,} elements and {matches.count:,} matches in {samples[-1].seconds:.0f} s ({rate / 1e6:.2f} M a second): "
        f"{quarter(samples, 1):.0f} MB in the second quarter, {quarter(samples, 3):.0f} MB in the last ({more:+.1%})"
    )
    print(f"written to {path}", file=sys.stderr)
    return 0 if given.quick or more <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
