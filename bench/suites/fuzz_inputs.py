"""Whatever files and query texts strangers send: does anything but a CqelsError come out?

    python -m bench.suites.fuzz_inputs [--quick] [--examples N] [--seed N] [--output FOLDER]

from the repository's root. Sound files of every format (compressed ones too) and query texts in all dialects are changed at random
by hypothesis, N of each; a file is read as a stream, stopping at errors and skipping them, and as static data, a query registered. A
case that fails is made small and printed. bench/results/fuzz_inputs.json says how many were tried, and with which seed.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from bench.suites.fuzzed.mutations import files, queries
from bench.suites.fuzzed.promises import check_file, check_query
from bench.suites.outcome import folder_of, parser_of, taken_now

_QUICK = 50


def tried(cases: st.SearchStrategy[Any], check: Callable[[Any], None], examples: int, number: int) -> float:
    """Try so many cases; the seconds that took. The first that fails is raised, as small as it can be made."""
    setting = settings(
        max_examples=examples, database=None, deadline=None, print_blob=False, suppress_health_check=list(HealthCheck)
    )
    started = time.perf_counter()
    setting(seed(number)(given(cases)(check)))()
    return time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("fuzz_inputs", __doc__)
    parser.add_argument("--examples", type=int, default=20_000, metavar="N", help="so many of each (default 20000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="where drawing begins (default 0)")
    asked = parser.parse_args(arguments)
    examples = _QUICK if asked.quick else asked.examples
    logging.disable(logging.CRITICAL)
    forms, sound = Counter[str](), Counter[bool]()

    with TemporaryDirectory() as folder:

        def file(case: tuple[str, bytes]) -> None:
            forms[case[0].split(".")[0]] += 1
            check_file(*case, Path(folder))

        def query(text: str) -> None:
            sound[check_query(text)] += 1

        took = {
            "files": tried(files(), file, examples, asked.seed),
            "queries": tried(queries(), query, examples, asked.seed),
        }
    figures = {
        "seed": asked.seed,
        "files": dict(sorted(forms.items())),
        "queries": {"registered": sound[True], "refused": sound[False]},
        "seconds": {name: round(seconds, 1) for name, seconds in took.items()},
    }
    for name, found in figures.items():
        print(f"{name}: {found}")
    outcome = taken_now(
        "fuzz_inputs", (__doc__ or "").split("\n\n")[0], figures, quick=asked.quick, libraries=["hypothesis"]
    )
    print(f"written to {outcome.write(folder_of(asked))}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
