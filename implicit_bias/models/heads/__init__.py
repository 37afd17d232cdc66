"""Linear heads at several exits of a frozen trunk, on hard, soft and mixed labels."""
