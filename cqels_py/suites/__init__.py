"""Benchmark suites: a data set with its queries, their throughput and latency, and a check of their answers.

`suite` lists the suites, `data` writes their streams to files, and `processes` runs each query in a process of its own.
That process is `child`: it measures (`throughput`, `latency`, `memory`) and checks (`check`). `report` stores the
outcome, `plots` draws it.
"""
