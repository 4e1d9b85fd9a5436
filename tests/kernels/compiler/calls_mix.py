"""A rehearsal that calls one small kernel, with two kinds of numbers."""

from cqels_py.kernels.structures.hashing import mix

mix(7)
mix(8)
mix(True)
