"""The physical plan: frozen, picklable nodes that every runner executes; explain; validation."""
