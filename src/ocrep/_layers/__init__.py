"""From inputs to features: activations, the hidden map, the random layer."""
