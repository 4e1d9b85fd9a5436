"""Whole benchmarks: a data set, its queries, and how fast, how promptly and how rightly they are answered.

`suite` knows the suites, `data` writes their streams to files, `processes` runs each query in a process of its own: `child` is that
process, which measures (`throughput`, `latency`, `memory`) and checks (`check`). `report` keeps what comes out, `plots` draws it.
"""
