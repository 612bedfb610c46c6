"""From a recipe and rows to a training: what the parameters mean, targets, the learn loop, checkpoints."""
