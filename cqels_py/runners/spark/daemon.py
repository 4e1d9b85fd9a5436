"""Spark's daemon of Python workers with the engine imported: the workers that it forks need not import it again."""

from __future__ import annotations

import gc
import os

if __name__ == "__main__":
    # Tasks use all cores already.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    import pyspark.daemon

    import cqels_py.dataflow
    import cqels_py.runners.spark.stage  # noqa: F401

    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()
