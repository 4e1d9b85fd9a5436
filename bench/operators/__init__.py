"""One operator, or two in a row, a file."""
