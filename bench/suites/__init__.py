"""Whole queries through the public interface."""
