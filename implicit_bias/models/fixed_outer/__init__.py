"""ReLU networks whose outer layer is fixed: rank two on nearly orthogonal data."""
