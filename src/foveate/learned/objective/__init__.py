"""The parts of the training objective, each a pure function of tensors in its own file."""
