"""The total order of terms, with the dictionary's texts where values do not decide it."""

from __future__ import annotations

from cqels_py.kernels.compare import compare_values, sign_of
from cqels_py.kernels.jit import jit, jit_inline


@jit_inline
def _same_kind(a, b):  # type: ignore[no-untyped-def]
    """Integers of one datatype, or decimals, doubles or floats with the same number of fraction digits."""
    return a >> 56 == b >> 56 and (a >> 60 == 5 or a >> 60 == 6 or a >> 60 == 7 or a >> 60 == -8)


@jit
def _order_slowly(a, b, texts, spans):  # type: ignore[no-untyped-def]
    order = compare_values(a, b)
    if order != 2:
        return order
    return sign_of(a, b)


@jit_inline
def order_terms(a, b, texts, spans):  # type: ignore[no-untyped-def]
    """-1, 0 (the same term) or 1."""
    if a == b:
        return 0
    if _same_kind(a, b):
        return -1 if (a << 8) < (b << 8) else 1
    return _order_slowly(a, b, texts, spans)
