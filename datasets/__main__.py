"""Writes the streams and static data of a scenario or suite as files; called by `scripts/make_datasets`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from cqels_py.errors import CqelsError

SCENARIOS = ("flights", "taxi")
"""Their size is given in days."""
SUITES = ("lsbench", "srbench")
"""Their size is given in triples."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/make_datasets", description=__doc__)
    parser.add_argument("scenario", choices=SCENARIOS + SUITES)
    parser.add_argument("--days", type=int, default=7, help="of a scenario: how many days of each stream (default: 7)")
    parser.add_argument(
        "--triples", type=int, default=1_000_000, help="of a suite: how many triples in all (default: 1000000)"
    )
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--output", type=Path, required=True, help="a folder, made if it is not there")
    arguments = parser.parse_args()
    try:
        size = arguments.triples if arguments.scenario in SUITES else arguments.days
        write(arguments.scenario, size, arguments.format, arguments.output)
    except CqelsError as error:
        parser.exit(2, f"{error}\n")
    return 0


def write(scenario: str, size: int, file_format: str, folder: Path) -> None:
    """`STREAM.FORMAT` for each stream, named by the last part of its IRI, and `static.nt`."""
    module = import_module(f"cqels_py.datasets.{scenario}")
    folder.mkdir(parents=True, exist_ok=True)
    for iri, batches in module.streams(size).items():
        path = folder / f"{iri.rsplit('/', 1)[-1]}.{file_format}"
        rows = 0
        with _writer(path, file_format, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        print(f"{path}: {rows:,} triples of <{iri}>", file=sys.stderr)
    (folder / "static.nt").write_bytes(module.static())


def _writer(path: Path, file_format: str, schema: pa.Schema) -> pq.ParquetWriter | pa.csv.CSVWriter:
    if file_format == "csv":
        return pa.csv.CSVWriter(path, schema, write_options=pa.csv.WriteOptions(quoting_style="needed"))
    return pq.ParquetWriter(path, schema, compression="zstd")


if __name__ == "__main__":
    sys.exit(main())
