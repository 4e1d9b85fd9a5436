"""W3C's SPARQL tests and the project's own cases, each run as windows of a continuous query."""
