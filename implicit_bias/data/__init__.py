"""What a run is given: inputs and labels, checked and read-only."""
