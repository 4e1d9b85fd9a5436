"""Inputs that are meant to stop an engine, each with the limits that it must stay within."""
