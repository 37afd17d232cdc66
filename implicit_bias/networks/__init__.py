"""Every torch module of the package with its initial weights, and the protocols of networks."""
