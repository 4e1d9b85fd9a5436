"""How fast, beside what: the engine's parts, hand-written kernels, plain Python and re-evaluation in one run (README.md)."""
