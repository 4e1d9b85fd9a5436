"""A Flink job over the lines of a socket. It is run by the Python that CQELS_BENCH_FLINK names, and needs only PyFlink.

    PYTHON flink_job.py '{"port": …, "options": {…}, "statements": […]}'

The view `lines` has the text from the port, in a column `line`; Flink's print connector writes to standard output. The
last statement runs until standard input ends.
"""

import json
import os
import sys
import traceback
from threading import Thread


def main(text: str) -> None:
    asked = json.loads(text)
    job = _started(asked["port"], asked["options"], asked["statements"])
    Thread(target=_fail_with, args=(job,), daemon=True).start()
    sys.stdin.read()
    os._exit(0)


def _started(port: int, options: dict[str, str], statements: list[str]) -> object:
    """The result of the last statement."""
    from pyflink.common import Configuration  # type: ignore[import-not-found]
    from pyflink.datastream import DataStream, StreamExecutionEnvironment  # type: ignore[import-not-found]
    from pyflink.table import StreamTableEnvironment  # type: ignore[import-not-found]

    configuration = Configuration()
    for name, value in options.items():
        configuration.set_string(name, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment.set_parallelism(1)
    tables = StreamTableEnvironment.create(environment)
    # PyFlink has no name for this option.
    lines = DataStream(environment._j_stream_execution_environment.socketTextStream("localhost", port))
    tables.create_temporary_view("lines", tables.from_data_stream(lines).alias("line"))
    *before, last = statements
    for statement in before:
        tables.execute_sql(statement)
    return tables.execute_sql(last)


def _fail_with(job: object) -> None:
    try:
        job.wait()  # type: ignore[attr-defined]
    except Exception:
        traceback.print_exc()
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
