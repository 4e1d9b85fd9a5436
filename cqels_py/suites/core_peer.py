"""CORE, over the events that standard input describes: run by a Python that has `pycer`, apart from this package.

Reads a JSON object {query, kinds, events: [[kind, key, value], …]} and writes {events_per_second, matches}. Events are made before
the clock starts; its time is that of taking them in and of writing the output.
"""

import json
import sys
import time


def main() -> None:
    import pycer  # type: ignore[import-not-found, unused-ignore]

    asked = json.load(sys.stdin)
    server = pycer.PyOfflineServer()
    declared = ",\n".join(f"EVENT {kind} {{ id:int, k:int, v:int }}" for kind in asked["kinds"])
    stream = server.declare_stream(f"CREATE STREAM S {{\n{declared}\n}}")
    ids = {event.name: event.id for event in stream.events_info}
    server.add_query(asked["query"])
    number = pycer.PyIntValue
    events = [
        pycer.PyEvent(ids[kind], [number(place), number(key), number(value)])
        for place, (kind, key, value) in enumerate(asked["events"])
    ]
    began = time.perf_counter()
    server.send_events(events)
    output = server.get_output()
    seconds = time.perf_counter() - began
    matches = sum(line.startswith("[") for line in output.splitlines())
    with open(sys.argv[1], "w", encoding="utf-8") as answer:
        json.dump({"events_per_second": len(events) / seconds, "matches": matches}, answer)


if __name__ == "__main__":
    main()
