"""Forward propagation of temporal rules over intervals."""
