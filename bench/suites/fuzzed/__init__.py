"""Inputs that are wrong: sound files and query texts, changed at random, and the promise that they are held to."""
