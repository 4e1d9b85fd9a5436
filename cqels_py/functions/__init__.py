"""SPARQL's functions over terms given as text: for what the kernels cannot decide from ids alone."""
