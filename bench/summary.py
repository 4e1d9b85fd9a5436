"""Writes the tables in docs/figures.md from the result files in bench/results:

    python -m bench.summary [--results FOLDER] [--page FILE] [--check]

The tables replace the text between two markers. They are as recent as the result files: run the benchmarks first.
`--check` writes nothing and exits with status 1 if the page's tables differ from the result files.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.contest import AGAIN, BY_HAND, ENGINE, IN_CPP, PYTHON, SAME_WORK, same_work_as
from bench.markdown import Found, origin, table, times
from bench.report import short
from bench.suite_tables import (
    of_bounded,
    of_connectors,
    of_growing_windows,
    of_ingest,
    of_latency,
    of_many,
    of_more_parts,
    of_pushes,
    of_spark,
    of_startup,
    of_suites,
)

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "bench" / "results", ROOT / "docs" / "figures.md"
START, END = "<!-- figures: written by python -m bench.summary -->\n", "<!-- end of figures -->\n"

_OPERATORS = {
    "ring_index": ("insert, window 1,000,000, keys 10,000", "probe, window 1,000,000, keys 10,000"),
    "star_join": None,
    "chain_join": None,
    "average": None,
    "minimum": None,
    "sums": None,
    "distinct": None,
    "negation": None,
}
"""Benchmarks in the table's order, with the settings to show; None shows all of them."""
_BESIDE = (SAME_WORK, IN_CPP, BY_HAND, PYTHON, AGAIN)


class NoMarkers(Exception):
    """The page has no markers for the tables."""


def results_in(folder: Path) -> dict[str, Found]:
    """The result files by name, without those of `--quick` runs."""
    read = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    return {name: found for name, found in read.items() if not found.get("quick")}


def rendered(results: Mapping[str, Found]) -> str:
    """Markdown tables for every result file present."""
    operators = (*_operators(results), *of_growing_windows(results))
    first = (*of_suites(results), *of_ingest(results), *of_latency(results), *of_pushes(results), *of_many(results))
    suites = (*first, *of_connectors(results), *of_startup(results), *of_spark(results), *of_more_parts(results))
    parts = [*suites, *operators, *_steps(results), *_memory(results), *of_bounded(results), *_soak(results)]
    return "\n".join(parts) if parts else "There are no figures yet.\n"


def replaced(text: str, tables: str) -> str:
    """`text` with the tables between its markers replaced. NoMarkers if a marker is missing."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise NoMarkers(f"the page needs two marker lines around the tables: {START.strip()} and {END.strip()}")
    return f"{before}{START}\n{tables}\n{END}{after}"


def _operators(results: Mapping[str, Found]) -> Iterator[str]:
    rows, origins = [], dict[str, None]()
    shown_beside = _beside(results)
    for name, shown in _OPERATORS.items():
        if name not in results:
            continue
        origins[origin(results[name])] = None
        for setting, summary in results[name]["summary"].items():
            if shown is not None and setting not in shown:
                continue
            medians = {who: rate["median"] for who, rate in summary["arrivals_per_second"].items()}
            for engine in medians:
                if engine.startswith(ENGINE):
                    rate, how = medians[engine], engine.removeprefix(ENGINE)
                    others = [same_work_as(engine) if who == SAME_WORK else who for who in shown_beside]
                    beside = [times(rate, medians[who]) if who in medians else "" for who in others]
                    rows.append([f"{name.replace('_', ' ')}, {setting}{how}", short(rate), *beside])
    if rows:
        yield (
            "Single operators (`python -m bench.compare`): arrivals per second with every result delivered, and the ratio to the "
            f"rate of each competitor ({'; '.join(origins)}):\n"
        )
        yield table(["operator", "engine", *(f"/ {who}" for who in shown_beside)], rows)


def _beside(results: Mapping[str, Found]) -> list[str]:
    """The competitors that appear in any result file; a file may be older than a competitor."""
    found = {rate["competitor"] for name in _OPERATORS if name in results for rate in results[name]["rates"]}
    return [who for who in _BESIDE if who in found]


def _steps(results: Mapping[str, Found]) -> Iterator[str]:
    titles = {
        "peers": "AVG by sensor over the last 10,000 observations of five triples",
        "slides": "COUNT by sensor over the last 10,000 observations of two triples",
    }
    for name, title in titles.items():
        if name not in results:
            continue
        paces = results[name]["figures"]["paces"]
        steps = list(dict.fromkeys(pace["step"] for pace in paces))
        by_contender: dict[str, dict[int, Found]] = {}
        for pace in paces:
            by_contender.setdefault(pace["contender"], {})[pace["step"]] = pace
        rows = [
            [who, *(_pace(mine[step]) if step in mine else "" for step in steps)] for who, mine in by_contender.items()
        ]
        yield (
            f"{title}, by STEP (`python -m bench.suites.{name}`): observations per second, and in parentheses how many times faster "
            f"`engine` is, which takes blocks of observations and delivers changes ({origin(results[name])}):\n"
        )
        yield table(["", *(f"STEP {step:,}" for step in steps)], rows)


def _pace(pace: Found) -> str:
    return f"{short(pace['median'])} ({times(pace['first_is_times_as_fast'], 1)})"


def _memory(results: Mapping[str, Found]) -> Iterator[str]:
    if "memory" not in results:
        return
    rows = [
        [case["name"], f"{case['leaves']:,}", f"{case['bytes_a_leaf']:.0f}", f"{case['grown'] / case['leaves']:.0f}"]
        for case in results["memory"]["figures"]["cases"]
    ]
    yield (
        "Bytes of state per leaf mapping of two ids, with windows of 1,000,000 mappings each, the last rows with more "
        f"(`python -m bench.suites.memory`, {origin(results['memory'])}):\n"
    )
    yield table(["query", "leaf mappings", "bytes in arrays", "resident memory"], rows)


def _soak(results: Mapping[str, Found]) -> Iterator[str]:
    if "soak" not in results:
        return
    found = results["soak"]["figures"]
    yield (
        f"{found['triples']:,} triples, always with new terms, through a window of 100,000 observations "
        f"(`python -m bench.suites.soak`, {origin(results['soak'])}): {short(found['triples_per_second'])} triples per second, "
        f"{found['second_quarter_mb']:.0f} MB of resident memory in the second quarter of the run and "
        f"{found['last_quarter_mb']:.0f} MB in the last.\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    summary, usage = (__doc__ or "").split("\n\n", 1)
    parser = argparse.ArgumentParser(
        prog="python -m bench.summary", description=summary, epilog=usage, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="default: bench/results")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="default: docs/figures.md")
    parser.add_argument("--check", action="store_true", help="only compare the page's tables with the result files")
    given = parser.parse_args(arguments)
    text = given.page.read_text(encoding="utf-8")
    try:
        wanted = replaced(text, rendered(results_in(given.results)))
    except NoMarkers as error:
        print(f"{given.page}: {error}", file=sys.stderr)
        return 2
    if given.check:
        if wanted != text:
            print(
                f"the tables in {given.page} differ from the files in {given.results}; update them: python -m bench.summary",
                file=sys.stderr,
            )
        return int(wanted != text)
    given.page.write_text(wanted, encoding="utf-8")
    print(f"wrote {given.page}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
