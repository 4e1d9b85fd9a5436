"""Does any damaged file or query text cause anything but a CqelsError, and is each IRI that is written read again?

    python -m bench.suites.fuzz_inputs [--quick] [--examples N] [--seed N] [--output FOLDER]

from the repository's root. Valid files of every format (also compressed) and query texts in all dialects are mutated at
random by hypothesis, N of each. A file is read as a stream, once stopping at errors and once skipping them, and as
static data; a query is registered. A failing case is shrunk and printed. Brackets of all formats are nested up to 100,000
deep, N / 100 documents of each in a process of its own, with limits of memory and time. bench/results/fuzz_inputs.json
records the number of cases and the seed.
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

from bench.suites.fuzzed.iris import check_iris, iris
from bench.suites.fuzzed.mutations import files, queries
from bench.suites.fuzzed.nested import run_apart
from bench.suites.fuzzed.promises import check_file, check_query
from bench.suites.outcome import folder_of, parser_of, taken_now

_QUICK = 50


def tried(cases: st.SearchStrategy[Any], check: Callable[[Any], None], examples: int, number: int) -> float:
    """Try so many cases; returns the seconds. The first failing case is raised, shrunk as far as possible."""
    setting = settings(
        max_examples=examples, database=None, deadline=None, print_blob=False, suppress_health_check=list(HealthCheck)
    )
    started = time.perf_counter()
    setting(seed(number)(given(cases)(check)))()
    return time.perf_counter() - started


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("fuzz_inputs", __doc__)
    parser.add_argument("--examples", type=int, default=20_000, metavar="N", help="cases of each kind (default 20000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the random cases (default 0)")
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
            "IRIs": tried(iris(), lambda drawn: check_iris(drawn, Path(folder)), max(examples // 20, 20), asked.seed),
        }
    started = time.perf_counter()
    nested = run_apart(examples // 100, asked.seed)
    took["nested"] = time.perf_counter() - started
    figures = {
        "seed": asked.seed,
        "files": dict(sorted(forms.items())),
        "queries": {"registered": sound[True], "refused": sound[False]},
        "nested": nested,
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
