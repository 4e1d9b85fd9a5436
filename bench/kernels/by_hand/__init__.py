"""Hand-written kernels, one flat function each: the cost of the work without any generality."""
