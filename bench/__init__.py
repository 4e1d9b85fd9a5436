"""Benchmarks: the engine's parts compared with hand-written kernels, plain Python and re-evaluation in the same run
(README.md).
"""
