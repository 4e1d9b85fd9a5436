"""Delta batches and element batches: columns, tick, sign."""
