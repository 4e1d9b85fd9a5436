"""Benchmarks of single structures of the state, and the same work written by hand for numba."""
