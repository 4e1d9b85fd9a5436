"""Does the engine give the same answers as pyoxigraph to generated queries?

    python -m bench.suites.fuzz [--cases N] [--seed N] [--features A,B] [--jobs N]

from the repository's root. Each case is a query of any dialect with some of the features, over generated elements and
static data. At each tick a plain function computes the content of the windows, and pyoxigraph answers the rest of the
query over that. The engine's results at batches of 1, 3 and all elements must follow from these answers, and a table with
mode=upsert must show what their changelog sums up to. A failing case
is shrunk and printed, with both answers: `--seed N --cases 1` (and the same features) runs it again. Cases that the
engine refuses, or that `deviations` excludes, are counted by reason. As many numbers of JSON-LD go through every entrance, and
have to be the terms that exact arithmetic makes of them; as many sums and means of numbers near the bounds of words and doubles are
compared with fractions. The exit status is 1 if there was a difference.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bench.suites.fuzz.case import Case
from bench.suites.fuzz.compare import Verdict, judge
from bench.suites.fuzz.drawing import FEATURES
from bench.suites.fuzz.json_numbers import differences
from bench.suites.fuzz.judging import judged
from bench.suites.fuzz.shrinking import shrunk
from bench.suites.fuzz.summary import Summary, described
from bench.suites.fuzz.sums import sum_differences

_TOLD = 500


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.suites.fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000, metavar="N", help="default 1000")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first case; default 0")
    parser.add_argument("--features", default=",".join(FEATURES), help="separated by commas; default: all")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="number of processes; 0: one per core; default 1"
    )
    parser.add_argument("--stop-after", type=int, default=10, metavar="N", help="differences; default 10")
    given = parser.parse_args(arguments)
    features = [name for name in given.features.split(",") if name]
    if unknown := sorted(set(features) - set(FEATURES)):
        parser.error(f"no features: {', '.join(unknown)}; there are {', '.join(FEATURES)}")
    summary = Summary()
    for case, verdict in judged(range(given.seed, given.seed + given.cases), features, given.jobs):
        summary.add(case, verdict)
        if summary.total % _TOLD == 0:
            print(summary.counts(), file=sys.stderr, flush=True)
        if verdict.state == "different":
            print(_failure(case, verdict), flush=True)
        if summary.states["different"] >= given.stop_after:
            break
    print(summary.text())
    numbers = differences(range(given.seed, given.seed + given.cases))
    print("\n".join([*numbers[: given.stop_after], f"{given.cases:,} numbers of JSON-LD: {len(numbers):,} different"]))
    sums = sum_differences(range(given.seed, given.seed + given.cases))
    print(
        "\n".join(
            [*sums[: given.stop_after], f"{given.cases:,} sums near the bounds of words: {len(sums):,} different"]
        )
    )
    return 1 if summary.states["different"] or numbers or sums else 0


def _failure(case: Case, verdict: Verdict) -> str:
    small = shrunk(case, lambda each: judge(each).kind == verdict.kind)
    return described(small, judge(small))


if __name__ == "__main__":
    sys.exit(main())
