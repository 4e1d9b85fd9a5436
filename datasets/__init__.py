"""The scenarios' data: streams as Arrow record batches, static knowledge as N-Triples.

A scenario is a module with `streams(days)` and `static()`, a suite one with `streams(triples, seed=…)` and `static(seed=…)`;
`cqels_py.datasets.tables` has the form of a stream.
"""
