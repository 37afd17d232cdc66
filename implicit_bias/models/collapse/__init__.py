"""Neural collapse: unconstrained features of K classes under linear layers."""
