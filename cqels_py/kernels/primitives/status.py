"""The statuses of kernels on an element's way; others are the operator's own.

With any but DONE the state is as it was before the call, or the kernel goes on from its cursor when it is called again.
"""

DONE = 0
OUTPUT_FULL = 1
"""The arrays for the results are too short."""
PYTHON_NEEDED = 2
"""An array of the state is too short, or something can only be decided in Python."""
