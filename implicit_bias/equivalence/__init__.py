"""Which networks are one function: symmetries of ReLU networks, and comparing modulo them."""
