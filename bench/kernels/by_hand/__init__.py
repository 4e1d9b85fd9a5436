"""Hand-written kernels, one flat function each: what the work costs if nothing is general."""
