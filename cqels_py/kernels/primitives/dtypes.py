"""The types of arrays as numpy's objects. Given a class, numpy looks for these each time: a third of what a small array costs."""

from __future__ import annotations

import numpy as np

UINT8 = np.dtype(np.uint8)
INT8, INT32, INT64 = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.int64)
