"""Spark's daemon of Python workers with the engine loaded: a worker that it forks need not load it again."""

from __future__ import annotations

import gc
import os

if __name__ == "__main__":
    # Tasks share the machine's cores already.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    import pyspark.daemon

    import cqels_py.dataflow
    import cqels_py.runners.spark.stage  # noqa: F401

    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
