"""Invalid inputs: valid files and query texts, mutated at random, and the guarantees that must hold for them."""
