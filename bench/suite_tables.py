"""The tables of docs/figures.md for the suites' queries, for whole-query benchmarks and for growing windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from bench.contest import ENGINE
from bench.markdown import Found, origin, table, times
from bench.report import short
from bench.suites.startup import shown_as

_SUITES = {"srbench": "SRBench", "lsbench": "LSBench"}
_GROWING = ("optional", "not_exists", "top", "group_concat", "partition", "closure", "now")


def of_suites(results: Mapping[str, Found]) -> Iterator[str]:
    """One table per suite from the files of `cqels bench SUITE --json`, with runs of several sizes side by side.

    Rates are shown for each size and runner. Memory is that of the largest local run; all other columns are those of the
    smallest one.
    """
    for suite, title in _SUITES.items():
        runs = sorted(
            (found for found in results.values() if found.get("suite") == suite), key=lambda run: run["triples"]
        )
        if not runs:
            continue
        columns = [(run, runner) for run in runs for runner in _runners(run)]
        local = [run for run, runner in columns if runner == "local"]
        yield (
            f"{title} (`cqels bench {suite}`): triples per second from N-Triples on disk to rendered results, and latencies at 80 % "
            f"of that rate ({'; '.join(dict.fromkeys(map(origin, runs)))}):\n"
        )
        rows = []
        for id_ in dict.fromkeys(query["id"] for run in runs for query in run["queries"]):
            rates = [_rate(_of(run, id_, runner)) for run, runner in columns]
            rows.append([id_, *rates, *_more(id_, local)])
        names = [f"{short(run['triples'])} triples{_how(run, runner)}" for run, runner in columns]
        yield table(["query", *names, *_MORE], rows)


_MORE = ("/ paper", "/ pyoxigraph", "p50 µs", "p99 µs", "peak MB")


def _how(run: Found, runner: str) -> str:
    if runner != "local":
        return ", on Spark"
    threads = run.get("threads")
    return "" if threads is None else f", {threads} thread{'s' * (threads > 1)}"


def _runners(run: Found) -> list[str]:
    return list(dict.fromkeys(query.get("runner") or run["runner"] for query in run["queries"]))


def _of(run: Found, id_: str, runner: str) -> Found:
    wanted = (id_, runner)
    return next(
        (query for query in run["queries"] if (query["id"], query.get("runner") or run["runner"]) == wanted), {}
    )


def _rate(query: Found) -> str:
    rate = query.get("triples_per_second")
    return short(rate) if rate else ""


def _more(id_: str, local: list[Found]) -> list[str]:
    if not local:
        return [""] * len(_MORE)
    first = _of(local[0], id_, "local")
    ratios = [_of(run, id_, "local").get("peer_ratio") for run in local]
    paper, rate = first.get("paper_triples_per_second"), first.get("triples_per_second")
    return [
        times(rate, paper) if rate and paper else "",
        next((times(ratio, 1.0) for ratio in ratios if ratio), ""),
        *(
            f"{value:,.0f}" if (value := first.get(name)) is not None else ""
            for name in ("latency_p50_us", "latency_p99_us")
        ),
        f"{size:,.0f}" if (size := _of(local[-1], id_, "local").get("peak_rss_mb")) else "",
    ]


def of_growing_windows(results: Mapping[str, Found]) -> Iterator[str]:
    """Rates of operators at several window sizes. Equal rates show that the cost depends on changes, not on content."""
    rows, origins = [], dict[str, None]()
    for name in _GROWING:
        if name in results:
            origins[origin(results[name])] = None
            rates = _engine_rates(results[name]["summary"])
            rows.append(
                [name.replace("_", " "), ", ".join(f"{setting}: {short(rate)}" for setting, rate in rates.items())]
            )
    if rows:
        yield (
            "Effect of the window size (`python -m bench.compare`): arrivals per second of whole queries "
            f"({'; '.join(origins)}):\n"
        )
        yield table(["operator", "arrivals per second"], rows)


def _engine_rates(summary: Mapping[str, Any]) -> dict[str, float]:
    return {setting: found["arrivals_per_second"][ENGINE]["median"] for setting, found in summary.items()}


def of_latency(results: Mapping[str, Found]) -> Iterator[str]:
    """Latency of single elements."""
    if "latency" not in results:
        return
    rows = [
        [
            f"{case['query']}, {case['way']}, {case['subscriber']}",
            *(f"{median(case[name]):,.0f}" for name in ("cpu", "p50", "p99")),
            short(case["pushes_per_second"]),
        ]
        for case in results["latency"]["figures"]["cases"]
    ]
    yield (
        "Latency of single elements: microseconds until the subscriber has the results (`python -m bench.suites.latency`, "
        f"{origin(results['latency'])}):\n"
    )
    yield table(["query, input, results", "CPU", "p50", "p99", "elements/s"], rows)


def of_pushes(results: Mapping[str, Found]) -> Iterator[str]:
    """Single pushes beside a naive loop."""
    if "pushes" not in results:
        return
    rows = [
        [
            f"{case['question']}, {case['contender']}",
            f"{median(case['push']):.1f}",
            f"{min(case['push']):.1f} … {max(case['push']):.1f}",
            f"{median(case['waiting']):.1f}",
            f"{median(case['answering']):,.0f}",
        ]
        for case in results["pushes"]["figures"]["cases"]
    ]
    yield (
        "Single pushes, an element each 10 ms into [RANGE 10s STEP 1s], beside a loop that keeps the window's elements and asks "
        "pyoxigraph at each step: microseconds a push, answers included, and medians of the pushes that wait and of those that "
        f"bring an answer (`python -m bench.suites.pushes`, {origin(results['pushes'])}):\n"
    )
    yield table(["query, contender", "a push", "lowest … highest", "waits", "answers"], rows)


def of_connectors(results: Mapping[str, Found]) -> Iterator[str]:
    """Connectors at full speed."""
    if "connectors" not in results:
        return
    rows = [
        [
            case["name"],
            f"{median(case['per_second']):,.0f}",
            f"{min(case['per_second']):,.0f} … {max(case['per_second']):,.0f}",
            ", ".join(f"{who} {share:.0%}" for who, share in case["shares"].items()),
        ]
        for case in results["connectors"]["figures"]["cases"]
    ]
    yield (
        "Connectors: flat JSON messages of three members through a CONSTRUCT with a BIND, counted by sensor in a window of 10 s; "
        "messages, or rows inserted or updated, a second, with all processes on the machine "
        f"(`python -m bench.suites.connectors`, {origin(results['connectors'])}):\n"
    )
    yield table(["from, to", "a second", "lowest … highest", "share of a core"], rows)


def of_many(results: Mapping[str, Found]) -> Iterator[str]:
    """CPU time per triple by number of queries."""
    if "many" not in results:
        return
    cases = results["many"]["figures"]["cases"]
    counts = list(dict.fromkeys(case["queries"] for case in cases))
    rows = [
        [
            f"{kind}, {way}",
            *(f"{median(case['cpu']):,.1f}" for case in cases if (case["kind"], case["way"]) == (kind, way)),
        ]
        for kind, way in dict.fromkeys((case["kind"], case["way"]) for case in cases)
    ]
    yield (
        "Many queries over one stream, windows of 10,000 triples: microseconds of CPU time per triple, with every result delivered "
        f"(`python -m bench.suites.many`, {origin(results['many'])}):\n"
    )
    yield table(["queries, input", *(f"{count:,}" for count in counts)], rows)


def of_ingest(results: Mapping[str, Found]) -> Iterator[str]:
    """Rates of reading files, and of whole queries over files."""
    if "ingest" not in results:
        return
    rows = [
        [
            f"{case['what']}, {case['how']}",
            short(median(case["rates"])),
            f"{short(min(case['rates']))} … {short(max(case['rates']))}",
            times(median(case["rates"]), median(case["rates"]) / case["to_parser"]),
        ]
        for case in results["ingest"]["figures"]["cases"]
    ]
    yield (
        "Reading a file of observations of five triples each into columns of ids; and a whole query over it, a join of five "
        "patterns over the last 10,000 observations with AVG by sensor, to lines of JSON. Triples per second with one thread "
        "unless stated, and the ratio to pyoxigraph's parser alone "
        f"(`python -m bench.suites.ingest`, {origin(results['ingest'])}):\n"
    )
    yield table(["from, to, by", "triples/s", "lowest … highest", "/ pyoxigraph's parser"], rows)


def of_startup(results: Mapping[str, Found]) -> Iterator[str]:
    """Run time of a small job, start of the process included."""
    if "startup" not in results:
        return
    rows = [
        [
            f"{case['query']}, {case['runner']}",
            *shown_as(case["cold"]),
            *shown_as(case["warm"]),
        ]
        for case in results["startup"]["figures"]["cases"]
    ]
    yield (
        "Start-up: seconds from the start of the process to its end for a job of 200 elements per stream, on the first run, which "
        f"compiles (cold), and on later runs (warm; `python -m bench.suites.startup`, {origin(results['startup'])}):\n"
    )
    yield table(["query, run by", "cold", "lowest … highest", "warm", "lowest … highest"], rows)


def of_spark(results: Mapping[str, Found]) -> Iterator[str]:
    """Spark beside the local runner."""
    if "spark" not in results:
        return
    rows = [
        [
            f"{case['rows']:,} rows, {case['competitor']}",
            short(case["rate"]["median"]),
            *(f"{case['milliseconds'][name]:,.0f}" for name in ("p50", "p99")),
            f"{case['to_local']:.2f}",
        ]
        for case in results["spark"]["figures"]["cases"]
    ]
    yield (
        "Spark and the local runner: the mean of each of 10,000 sensors over the last million readings, by rows per micro-batch "
        f"(`python -m bench.suites.spark`, {origin(results['spark'])}):\n"
    )
    yield table(["micro-batch, runner", "rows/s", "p50 ms", "p99 ms", "/ local"], rows)
    rows = [
        [task["name"], *(f"{task[name]:.2f}" for name in ("routing", "evaluation", "bytes", "results"))]
        for task in results["spark"]["figures"]["tasks"]
    ]
    yield "CPU time of the package's part of Spark's tasks for micro-batches of a million of these rows in two parts (same run):\n"
    yield table(
        ["results, input", "routing µs a row", "evaluation µs a row", "bytes sent a row", "results a row"], rows
    )


def of_more_parts(results: Mapping[str, Found]) -> Iterator[str]:
    """The work of the parts of a state on Spark."""
    if "scale_out" not in results:
        return
    rows, whole = [], 0.0
    for cost in results["scale_out"]["figures"]["costs"]:
        whole = cost["whole"] if cost["parts"] == 1 else whole
        rows.append(
            [
                cost["case"],
                str(cost["parts"]),
                f"{cost['whole']:.2f} ({cost['whole'] / whole:.1f} times)",
                f"{cost['busiest']:.2f} ({cost['busiest'] / whole:.2f})",
                f"{cost['bytes']:.0f}",
            ]
        )
    yield (
        "A star of three patterns on Spark, in one part and in 16: CPU microseconds a triple in all tasks and in the busiest, "
        "beside all of one part, and bytes a triple between routing and evaluation "
        f"(`python -m bench.suites.scale_out`, {origin(results['scale_out'])}):\n"
    )
    yield table(["triples", "parts", "CPU µs a triple", "the busiest", "bytes a triple"], rows)


def of_bounded(results: Mapping[str, Found]) -> Iterator[str]:
    """Joins of events without windows: rates by the number of events so far."""
    if "bounded" not in results:
        return
    figures = results["bounded"]["figures"]
    rows = [
        [
            f"{curve['name']}, {curve['batch']:,} at a time",
            f"{curve['points'][-1]['events']:,}",
            *(short(point["per_second"]) for point in _two_of(curve["points"])),
            *("" if point["nbytes"] is None else f"{point['nbytes']:,}" for point in _two_of(curve["points"])),
        ]
        for curve in figures["curves"]
    ]
    yield (
        "Readings above a threshold that was set after a reset, of all events ever, counted by threshold: events of one triple per "
        "second in the second quarter and the last half of the run, and bytes of state after half of it and at its end. All rows "
        "are kept and joined, or DuckDB is asked anew over all events so far; those whose cost grows get the first events only "
        f"(`cqels bench bounded`, {origin(results['bounded'])}). Of {figures['events']:,} events, counters take "
        f"{short(figures['from_texts'])} per second from texts, {short(figures['from_ids'])} from columns of ids and "
        f"{short(figures['kernel'])} in the kernel alone; a kernel by hand takes {short(figures['by_hand'])}.\n"
    )
    yield table(["by", "events", "events/s, second quarter", "events/s, last half", "bytes, half", "bytes, end"], rows)


def _two_of(points: Sequence[Found]) -> tuple[Found, Found]:
    """About the middle and the end: points are at doublings."""
    return points[max(0, len(points) - 2)], points[-1]
