"""SPARQL's functions over terms given as text, for everything that kernels cannot decide from ids alone."""
