"""Stands in for flink_job.py: the output of Flink's print connector for COUNT over the last 40 observations, late and
in pieces.
"""

import json
import socket
import sys
from collections import defaultdict

WINDOW, SENSOR, PROPERTIES = 40, 0, 5


def main(text: str) -> None:
    asked = json.loads(text)
    if "fail" in asked["statements"][-1]:
        raise ValueError("no such table")
    newest: dict[int, int] = {}
    answer: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    with socket.create_connection(("localhost", asked["port"])) as rows:
        print("WARNING: not a change", flush=True)
        for line in rows.makefile():
            o, p, v = map(int, line.split(","))
            if p != SENSOR:
                continue
            changes = [(o, v, 1)]
            newest[o] = v
            if len(newest) > WINDOW:
                gone = min(newest)
                changes.append((gone, newest.pop(gone), -1))
            for number, sensor, sign in changes:
                count, numbers = answer[sensor]
                if count:
                    print(f"-U[{sensor}, {float(count)}, {count}, {numbers}]")
                answer[sensor] = [count + sign, numbers + sign * number]
                count, numbers = answer[sensor]
                print(f"+U[{sensor}, {float(count)}, {count}, {numbers}]" if count else f"-D[{sensor}, 0.0, 0, 0]")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
