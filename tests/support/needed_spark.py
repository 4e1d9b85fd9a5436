"""Tests that start Spark are skipped where it cannot run."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from cqels_py.errors import MissingExtra


def needed_spark(*, connect: bool = False) -> None:
    """Find Java for Spark, or skip the test with the reason. `connect`: what clients of Spark Connect need, too."""
    if find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed: pip install 'cqels_py[spark]'")
    if connect and find_spec("grpc") is None:
        pytest.skip("grpc is not installed: pip install 'cqels_py[spark-connect]'")
    from cqels_py.runners.spark.session import use_java

    try:
        use_java()
    except MissingExtra as error:
        pytest.skip(str(error))
