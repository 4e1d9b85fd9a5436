"""Hostile inputs, each with limits on memory and time."""
