"""Runners drive a query's dataflow: in this process, or on Spark."""
