"""Benchmarks of one operator, or two in a row; one file each."""
