"""How kernels come to be there: compiled when first called and kept in files, all at once on a machine's first use.

`files` keeps them, `ahead` looks forward when the first one is missing: `recording` learns what a query calls, and each `worker`
compiles a part of that. `indices` is the compiler: numba's, but for indices, none of which is negative.
"""
