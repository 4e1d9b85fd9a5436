"""The scenarios' data: streams as Arrow record batches, static data as N-Triples.

A scenario is a module with `streams(days)` and `static()`, a suite is one with `streams(triples, seed=…)` and
`static(seed=…)`. `cqels_py.datasets.tables` defines the columns of a stream.
"""
