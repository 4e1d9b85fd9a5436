"""The step of a pushed element as a program: rows of an entry's address and the address of its record."""
