"""Temporal rules → tables that kernels interpret."""
