"""Sensor readings arrive as JSON files; the mean temperatures of sensors in warm rooms go to Parquet.

    python examples/sensors_on_spark.py FOLDER

FOLDER/readings: files with a line {"sensor": "s1", "celsius": 21.5, "at": "2024-05-01T12:00:00Z"} for each reading.
FOLDER/warm: the results. FOLDER/state and FOLDER/checkpoint: the job resumes from these.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import cqels_py.spark

STREAM = "http://ex.org/readings"
QUERY = """
PREFIX : <http://ex.org/>
SELECT ?sensor ?room (AVG(?celsius) AS ?mean)
WHERE {
  STREAM :readings [RANGE 10m] { ?sensor :celsius ?celsius }
  ?sensor :room ?room .
}
GROUP BY ?sensor ?room
HAVING (AVG(?celsius) > 25)
"""
ROOMS = b"""
<http://ex.org/sensor/s1> <http://ex.org/room> "kitchen" .
<http://ex.org/sensor/s2> <http://ex.org/room> "cellar" .
"""


def triples(readings: DataFrame) -> DataFrame:
    """One triple per reading, with terms in N-Triples syntax."""
    return readings.selectExpr(
        "at AS time",
        "concat('<http://ex.org/sensor/', sensor, '>') AS subject",
        "'<http://ex.org/celsius>' AS predicate",
        """concat('"', celsius, '"^^<http://www.w3.org/2001/XMLSchema#decimal>') AS object""",
    )


def warm(readings: DataFrame, state: Path) -> DataFrame:
    """The continuous query: from data frame to data frame, between any source and any sink of Spark."""
    return cqels_py.spark.continuous(
        {STREAM: triples(readings)}, QUERY, state=state, partitions=2, static=ROOMS, lateness=60_000_000
    )


def main(folder: Path, spark: SparkSession) -> None:
    """Read the existing files, then stop. Without the trigger, the job would wait for more."""
    readings = spark.readStream.schema("sensor string, celsius string, at timestamp").json(str(folder / "readings"))

    def write(frame: DataFrame, batch: int) -> None:
        # One folder per micro-batch: a repeated micro-batch replaces its rows, so no result is there twice.
        frame.write.mode("overwrite").parquet(str(folder / "warm" / f"batch={batch}"))

    writer = warm(readings, folder / "state").writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    writer.foreachBatch(write).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1], "readings").is_dir():
        sys.exit(f"usage: {sys.argv[0]} FOLDER, where FOLDER/readings has the files of readings")
    main(Path(sys.argv[1]).absolute(), cqels_py.spark.session())
