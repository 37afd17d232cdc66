"""Small ReLU networks on orthogonally separable data."""
