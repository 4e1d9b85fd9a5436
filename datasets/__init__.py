"""The scenarios' data: streams as Arrow record batches, static knowledge as N-Triples.

A scenario is a module with `streams(days)` and `static()`; `cqels_py.datasets.tables` has the form of a
stream.
"""
