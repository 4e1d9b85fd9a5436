"""Terms of some kB in a Spark whose memory for Arrow is small: an executor that lacks it would end, and with it the query.

It starts a Java of its own, so it runs with CQELS_TEST_SERVERS=1, as in continuous integration.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runners.spark.conftest import ROOT
from tests.support.needed_spark import needed_spark

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(os.environ.get("CQELS_TEST_SERVERS") != "1", reason="it starts Java: set CQELS_TEST_SERVERS=1"),
]

PROGRAM = """
import sys
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
import cqels_py.spark
from cqels_py.runners.spark.session import get_session
folder, terms, length, megabytes = Path(sys.argv[1]), *map(int, sys.argv[2:])
session = get_session("local[1]", {
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": f"-XX:MaxDirectMemorySize={megabytes}m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
})
session.sparkContext.setLogLevel("OFF")
names = [f"<http://ex.org/{n % 7}>" for n in range(terms)]
texts = [f'"{n}{"x" * length}"' for n in range(terms)]
table = pa.table({"time": range(terms), "subject": names, "predicate": ["<http://ex.org/v>"] * terms, "object": texts})
(folder / "in").mkdir()
pq.write_table(table, folder / "in" / "0.parquet")
frame = session.readStream.schema("time long, subject string, predicate string, object string").parquet(str(folder / "in"))
query = "SELECT ?s (COUNT(?v) AS ?n) WHERE { STREAM <http://ex.org/s> [ALL] { ?s <http://ex.org/v> ?v } } GROUP BY ?s"
answers = cqels_py.spark.continuous(
    {"http://ex.org/s": frame}, query, state=folder / "state", partitions=1, changelog=True, net=True
)
writer = answers.writeStream.option("checkpointLocation", str(folder / "checkpoint")).format("parquet")
writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
rows = session.read.parquet(str(folder / "out")).toArrow().to_pylist()
print(sorted((row["s"], row["n"]) for row in rows if row["sign"] == 1))
session.stop()
"""


def test_a_micro_batch_is_larger_than_the_memory_for_arrow(tmp_path: Path) -> None:
    needed_spark()
    terms, length, megabytes = 21_000, 2_000, 80
    assert 2 * terms * length > megabytes << 20, "a column that grows is in memory twice"
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(terms), str(length), str(megabytes)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    number = f'"{terms // 7}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert ran.stdout.splitlines()[-1] == str([(f"<http://ex.org/{n}>", number) for n in range(7)])
