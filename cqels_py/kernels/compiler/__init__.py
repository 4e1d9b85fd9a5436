"""How kernels are compiled and cached: at their first call, or all at once on a machine's first use.

`cache` and `cache_files` keep compiled kernels on disk. When the first one is missing, `parallel_build` compiles all
that a query needs: `recording` finds out which kernels it calls, and each `build_worker` compiles a part of them.
`unsigned_indices` is numba's compiler with one change: array indices are never negative.
"""
