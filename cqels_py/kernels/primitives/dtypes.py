"""The dtypes of arrays as numpy objects. numpy looks these up each time it is given a class, which is a third of the
cost of making a small array."""

from __future__ import annotations

import numpy as np

UINT8 = np.dtype(np.uint8)
INT8, INT32, INT64 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.int64)
