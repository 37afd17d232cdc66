"""ReLU networks and their gates, frozen and not."""
