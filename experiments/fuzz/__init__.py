"""Random programs, and what the solver says about them: `python -m experiments.fuzz`."""
